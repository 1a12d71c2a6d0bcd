package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

type restoredOptions struct {
	place            databasePlace
	asPublished, yes bool
}

func restoredCommand() command {
	return command{
		name: "restored", summary: "make a database safe that was brought back to an earlier state",
		about: `Call it once after a backup was restored, a dump was moved to another machine, or a failover
has lost commits, and before anything else works with the database. Otherwise it would give
out versions and positions again that receivers have seen, and they would drop what is new.
It shows first what it will do, and asks (-yes does not ask). To do it again does no harm.

Events that wait for their deliveries get them, and filters decide which. A filter decides
by the event's data in the payload version of its subscription, and this program has no
converters of your catalogue. So it refuses if events wait, unless -as-published is given. If
your service has a catalogue, rather call the store's Restored in your program:
docs/restores.md shows it.`,
		example: "surehook restored -database postgres://app@db/app -schema hooks",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			o := &restoredOptions{}
			o.place.flags(f)
			f.BoolVar(&o.asPublished, "as-published", false, "the service has no catalogue (or no subscription has a filter): filters decide by the data as it was published")
			f.BoolVar(&o.yes, "yes", false, "do not ask")
			return func(ctx context.Context, t *terminal, _ []string) error { return restored(ctx, t, o) }
		},
	}
}

func restored(ctx context.Context, t *terminal, o *restoredOptions) error {
	d, err := o.place.open(ctx, t.env, false)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.canSend(ctx); err != nil {
		return err
	}
	h, err := history.New(d.store, nil)
	if err != nil {
		return err
	}
	c, err := h.Counts(ctx)
	if err != nil {
		return answered(err)
	}
	t.say("events that wait for their deliveries, which it makes first: %d", c.Unexpanded)
	t.say("the versions of objects go on above the highest one here and %d more", rules.LostVersions)
	t.say("the positions of events go on above the last one here and %d more", rules.LostPositions)
	if c.Unexpanded > 0 && !o.asPublished {
		return no("nothing was changed: events wait, and filters decide by what a catalogue's converters make of them, which this program does not have. Give -as-published if the service has no catalogue, or no subscription has a filter. Otherwise call the store's Restored in your program (docs/restores.md)")
	}
	if !o.yes {
		if err := t.confirm(ctx, "do it?", "nothing was changed"); err != nil {
			return err
		}
	}
	convert := noConverters
	if o.asPublished {
		convert = nil
	}
	done, err := d.store.Restored(ctx, convert)
	if err != nil {
		return fmt.Errorf("it is not finished, do it again: %w", answered(err))
	}
	return printRestored(t, done)
}

// noConverters is for events that come between the look and the work: what a filter cannot
// decide is delivered.
func noConverters(string, string, string, json.RawMessage) (string, json.RawMessage, error) {
	return "", nil, errors.New("the command line has no converters")
}

// canSend returns an error unless the sender's tables are those of this program. What else a
// dispatcher needs, such as WAL, the copy of a file need not have yet.
func (d *database) canSend(ctx context.Context) error {
	all, err := d.states(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		switch {
		case s.Set != "sender":
		case s.State == "absent":
			return errNoTables
		case s.State == "behind":
			return no("the sender's tables are at version %d of %d: run surehook migrate up first", s.Version, s.Known)
		case !s.fits:
			return no("the sender's tables are at version %d, for newer releases than this program, which knows %d: run a newer one", s.Version, s.Known)
		}
	}
	return nil
}

func printRestored(t *terminal, done sender.Restoration) error {
	if t.json {
		return t.encode(map[string]int64{"expanded": int64(done.Expanded), "version": done.Version, "position": done.Position})
	}
	t.say("restored: %s; the next versions are above %d, the next positions above %d",
		counted(int64(done.Expanded), "event expanded", "events expanded"), done.Version, done.Position)
	return nil
}
