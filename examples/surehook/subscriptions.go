package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// subscription has the members of the reference server's JSON that are printed.
type subscription struct {
	ID             string     `json:"id"`
	SubscriberID   string     `json:"subscriber_id"`
	URL            string     `json:"url"`
	EventTypes     []string   `json:"event_types"`
	Status         string     `json:"status"`
	FailingSince   *time.Time `json:"failing_since"`
	DisabledAt     *time.Time `json:"disabled_at"`
	DisabledReason *string    `json:"disabled_reason"`
	LastSuccessAt  *time.Time `json:"last_success_at"`
	LastFailureAt  *time.Time `json:"last_failure_at"`
	Backlog        int64      `json:"backlog"`
	DeadLettered   int64      `json:"dead_lettered"`
}

type subscriptionPage struct {
	Data       []subscription `json:"data"`
	NextCursor *string        `json:"next_cursor"`
}

// looked is how many subscriptions are looked at before they are sorted.
const looked = 10_000

func subscriptionsCommand() command {
	return command{
		name: "subscriptions", summary: "list subscriptions, those in trouble first",
		about: `Lists subscriptions with their status, since when they fail, how many of their deliveries
have not ended, and how many dead letters they have. Those that are disabled, paused or
failing come first, then those with the largest backlog.`,
		example: "surehook subscriptions -status disabled",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			var status, subscriber string
			var limit int
			o.flags(f)
			f.StringVar(&status, "status", "", "a `status`: active, paused, disabled or closing")
			f.StringVar(&subscriber, "subscriber", "", "the `id` of their owner")
			f.IntVar(&limit, "limit", 50, "how many are listed at most")
			return func(ctx context.Context, t *terminal, _ []string) error {
				if limit < 1 {
					return fmt.Errorf("-limit is %d: it must be 1 or more", limit)
				}
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				all, more, err := gatherSubscriptions(ctx, t, b, status, subscriber)
				if err != nil {
					return err
				}
				slices.SortStableFunc(all, worse)
				shown := all[:min(limit, len(all))]
				if t.json {
					return t.encode(map[string]any{"data": shown, "more": more || len(all) > limit})
				}
				printSubscriptions(t, shown)
				if more {
					t.say("there are more than %d: only the oldest were looked at", len(all))
				} else if len(all) > limit {
					t.say("there are %d in all: -limit lists more", len(all))
				}
				return nil
			}
		},
	}
}

func gatherSubscriptions(ctx context.Context, t *terminal, b backend, status, subscriber string) (all []subscription, more bool, err error) {
	all, cursor := []subscription{}, ""
	for {
		p, err := b.subscriptions(ctx, status, subscriber, cursor)
		if err != nil {
			return nil, false, err
		}
		all = append(all, p.Data...)
		if p.NextCursor == nil || len(all) >= looked {
			t.unfinished()
			return all, p.NextCursor != nil, nil
		}
		t.progress("looking: %d found", len(all))
		cursor = *p.NextCursor
	}
}

// worse sorts what needs somebody before what does not.
func worse(a, b subscription) int {
	return cmp.Or(cmp.Compare(b.trouble(), a.trouble()), cmp.Compare(b.Backlog, a.Backlog))
}

func (s *subscription) trouble() int {
	switch {
	case s.Status == "disabled":
		return 3
	case s.Status == "paused":
		return 2
	case s.FailingSince != nil:
		return 1
	}
	return 0
}

func printSubscriptions(t *terminal, list []subscription) {
	if len(list) == 0 {
		t.say("there are none")
		return
	}
	rows := [][]string{{"STATUS", "FAILING SINCE (UTC)", "BACKLOG", "DEAD LETTERS", "OF", "TO", "ID"}}
	for _, s := range list {
		failing := "-"
		if s.FailingSince != nil {
			failing = clock(*s.FailingSince)
		}
		rows = append(rows, []string{s.Status, failing, strconv.FormatInt(s.Backlog, 10), strconv.FormatInt(s.DeadLettered, 10), s.SubscriberID, s.URL, s.ID})
	}
	t.table(rows)
	for _, s := range list {
		if s.DisabledReason != nil && s.DisabledAt != nil {
			t.say("%s was disabled at %s UTC: %s", s.ID, clock(*s.DisabledAt), *s.DisabledReason)
		}
	}
}

func pauseCommand() command {
	return command{
		name: "pause", summary: "hold a subscription's deliveries until it is resumed",
		args: "ID", arguments: [2]int{1, 1},
		about: `Holds the deliveries of a subscription, and those to come, until it is resumed. Attempts
that are on the wire are left to end.`,
		example: "surehook pause wsub_06h0…",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			o.flags(f)
			return func(ctx context.Context, t *terminal, args []string) error {
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				s, err := b.pause(ctx, args[0])
				if err != nil {
					return err
				}
				if t.json {
					return t.encode(s)
				}
				t.say("%s is %s; surehook resume %s sends what is held", s.ID, s.Status, s.ID)
				return nil
			}
		},
	}
}

func resumeCommand() command {
	return command{
		name: "resume", summary: "have a paused or disabled subscription get its deliveries again",
		args: "ID", arguments: [2]int{1, 1},
		about: `Makes a paused or disabled subscription active again. What is held for it is sent at
once, and its schedules begin anew. Mend the endpoint first.`,
		example: "surehook resume wsub_06h0…",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var o target
			var which resumption
			o.flags(f)
			f.BoolVar(&which.none, "none", false, "cancel what is held, and send only what comes")
			f.Var(&which.since, "since", "of what is held, send what was published at a `time` or later: 2026-01-31T12:00:00Z, or how long ago: 24h, 7d; the rest is cancelled")
			f.BoolVar(&which.force, "force", false, "with -database: also if an event is so old that receivers may have forgotten it, and would apply it twice")
			return func(ctx context.Context, t *terminal, args []string) error {
				if which.none && !which.since.IsZero() {
					return errors.New("there are both -none and -since: give one of them")
				}
				b, err := o.open(ctx, t)
				if err != nil {
					return err
				}
				defer b.close()
				s, err := b.resume(ctx, args[0], which)
				if err != nil {
					return err
				}
				if t.json {
					return t.encode(s)
				}
				t.say("%s is %s; surehook deliveries -subscription %s shows what comes of it", s.ID, s.Status, s.ID)
				return nil
			}
		},
	}
}

// resumption says what is sent of what a subscription holds.
type resumption struct {
	none, force bool
	since       moment
}
