package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

type replayOptions struct {
	target
	filter
	rate                float64
	dry, yes, force     bool
	followID, cancelled string
}

func replayCommand() command {
	return command{
		name: "replay", summary: "send all deliveries again that match a filter",
		about: `Shows first what it would send, and asks (-yes does not ask, -dry-run only shows). Then it
follows the replay to its end; if it is interrupted, the replay goes on without it. What
is replayed goes behind all that is fresh. A dispatcher must run somewhere.`,
		example: "surehook replay -status dead_lettered -subscription wsub_06h0… -since 24h -rate 50",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			o := &replayOptions{}
			o.target.flags(f)
			o.filter.flags(f, "dead_lettered (the default), delivered or superseded")
			f.Float64Var(&o.rate, "rate", 0, "how many deliveries a second; 0: as fast as there is room")
			f.BoolVar(&o.dry, "dry-run", false, "show what it would send, and change nothing")
			f.BoolVar(&o.yes, "yes", false, "do not ask")
			f.BoolVar(&o.force, "force", false, "with -database: also what is so old that receivers may have forgotten it, and would apply it twice")
			f.StringVar(&o.followID, "follow", "", "follow the replay (with a server: the job) with this `id`")
			f.StringVar(&o.cancelled, "cancel", "", "cancel the replay with this `id`; what it has sent stays sent")
			return func(ctx context.Context, t *terminal, _ []string) error { return replayMatching(ctx, t, o) }
		},
	}
}

func replayMatching(ctx context.Context, t *terminal, o *replayOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	b, err := o.open(ctx, t)
	if err != nil {
		return err
	}
	defer b.close()
	if _, remote := b.(*server); remote && o.force {
		return errForce // before anybody is asked
	}
	switch {
	case o.cancelled != "":
		if err := b.cancelReplay(ctx, o.cancelled); err != nil {
			return err
		}
		return follow(ctx, t, b, o.cancelled, "cancelled")
	case o.followID != "":
		return follow(ctx, t, b, o.followID, "finished")
	}
	if o.status == "" {
		o.status = "dead_lettered"
	}
	m, err := b.preview(ctx, o.filter)
	if err != nil {
		return err
	}
	if err := printMatched(t, &m, o.status); err != nil || m.Count == 0 || o.dry {
		return err
	}
	if !o.yes {
		if err := t.confirm(ctx, fmt.Sprintf("send %s again?", counted(m.Count, "delivery", "deliveries")), "nothing was sent"); err != nil {
			return err
		}
	}
	// A user who interrupts it now must learn the id all the same.
	id, err := b.replay(context.WithoutCancel(ctx), o.filter, o.rate, o.force)
	if err != nil {
		return err
	}
	t.say("replay %s has begun", id)
	if t.json {
		if err := t.encode(replayState{ID: id, Status: "running", Matched: m.Count}); err != nil {
			return err
		}
	}
	return follow(ctx, t, b, id, "finished")
}

func (o *replayOptions) check() error {
	if !(o.rate >= 0) || math.IsInf(o.rate, 0) {
		return fmt.Errorf("-rate is %v: it must be above 0, or 0 for as fast as there is room", o.rate)
	}
	if o.followID != "" && o.cancelled != "" {
		return errors.New("there are both -follow and -cancel: give one of them")
	}
	if o.followID+o.cancelled != "" && (o.filter != filter{} || o.rate != 0 || o.dry || o.force) {
		return errors.New("-follow and -cancel are about a replay that has begun: leave out -dry-run, -rate, -force and what selects deliveries")
	}
	return nil
}

func printMatched(t *terminal, m *matched, status string) error {
	if t.json {
		return t.encode(m)
	}
	delivered := status == "delivered"
	status = strings.ReplaceAll(status, "_", "-")
	t.say("%s", counted(m.Count, status+" delivery matches", status+" deliveries match"))
	if m.Oldest != nil && m.Newest != nil {
		t.say("published between %s and %s UTC", clock(*m.Oldest), clock(*m.Newest))
	}
	for _, s := range m.Subscriptions {
		t.say("  %6d  %s", s.Count, s.ID)
	}
	if delivered && m.Count > 0 {
		t.say("a receiver that remembers these events takes them for duplicates, and applies none of them again unless it was told to (Receiver.Reapply)")
	}
	return nil
}

// followTries is how often a replay that was read before is tried to be read again, which
// takes half a minute: a server may be started anew meanwhile.
const followTries = 5

// follow waits for the end of a replay. Any other end than the one that is wanted is a no.
func follow(ctx context.Context, t *terminal, b backend, id, wanted string) error {
	for left := 0; ; {
		r, err := b.replayed(ctx, id)
		switch {
		case ctx.Err() != nil:
			return no("the replay goes on: surehook replay -follow %s looks on, -cancel %s ends it", id, id)
		case err != nil && !isNo(err) && left > 0:
			again := delay(followTries - left)
			left--
			t.note("the replay cannot be read (%v): again in %v", err, again)
			_ = pause(ctx, again) // the loop looks at ctx
			continue
		case err != nil && !isNo(err):
			return fmt.Errorf("%w; a replay goes on without this program: surehook replay -follow %s looks on", err, id)
		case err != nil:
			return err
		case r.Ended:
			return ended(t, &r, wanted)
		}
		left = followTries
		t.progress("%s: %s sent", r.Status, r.sentOf())
		_ = pause(ctx, 300*time.Millisecond) // the loop looks at ctx
	}
}

// sentOf is how many are sent again, and of how many if that is known.
func (r *replayState) sentOf() string {
	switch {
	case !r.More:
		return fmt.Sprintf("%d of %d", r.Sent, r.Matched)
	case r.Matched > 0:
		return fmt.Sprintf("%d of at least %d", r.Sent, r.Matched)
	}
	return strconv.FormatInt(r.Sent, 10)
}

// tooOld says how many of those skipped had become too old.
func (r *replayState) tooOld() string {
	if r.TooOld == 0 {
		return ""
	}
	return fmt.Sprintf(", of these %d that had become so old that receivers may have forgotten their events", r.TooOld)
}

func ended(t *terminal, r *replayState, wanted string) error {
	t.unfinished()
	if t.json {
		if err := t.encode(r); err != nil {
			return err
		}
	} else {
		t.say("%s: %s sent again, %d skipped%s", r.Status, r.sentOf(), r.Skipped, r.tooOld())
		if r.Failure != "" {
			t.say("it failed: %s", r.Failure)
		}
	}
	if r.Status != wanted {
		return errSaid
	}
	return nil
}
