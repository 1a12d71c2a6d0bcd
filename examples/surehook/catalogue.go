package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/history"
)

func catalogueCommand() command {
	return command{
		name: "catalogue", summary: "tell which changes of a catalogue of event types break customers",
		args: "diff OLD NEW", arguments: [2]int{3, 3},
		about: `Compares two states of a catalogue, which are files with the JSON that json.Marshal makes of
a *catalogue.Catalogue: the one that is deployed, and the one that is to be. It lists the
changes, those that break customers first. The exit code is 1 if there are some of these, so
that a CI job fails. With -live it reads the service's database, and names the subscriptions
that would break.`,
		example: "surehook catalogue diff deployed.json catalogue.json\nsurehook catalogue diff deployed.json catalogue.json -live -database hooks.db",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			var place databasePlace
			var live bool
			f.BoolVar(&live, "live", false, "name the subscriptions in the database that would break")
			place.flags(f)
			return func(ctx context.Context, t *terminal, args []string) error {
				if args[0] != "diff" {
					return fmt.Errorf("it is catalogue diff OLD NEW, not catalogue %s", args[0])
				}
				if !live && (place.database != "" || place.file != "" || place.schema != "") {
					return fmt.Errorf("a database is read with -live alone")
				}
				return diffCatalogues(ctx, t, args[1], args[2], place, live)
			}
		},
	}
}

// brokenSubscription is a subscription that changes break.
type brokenSubscription struct {
	ID             string             `json:"id"`
	Subscriber     string             `json:"subscriber_id"`
	URL            string             `json:"url"`
	PayloadVersion string             `json:"payload_version"`
	Changes        []catalogue.Change `json:"changes"`
}

func diffCatalogues(ctx context.Context, t *terminal, before, after string, place databasePlace, live bool) error {
	old, err := readCatalogue(before)
	if err != nil {
		return err
	}
	now, err := readCatalogue(after)
	if err != nil {
		return err
	}
	changes := catalogue.Compare(old, now)
	broken := []brokenSubscription{}
	if live {
		if broken, err = findBroken(ctx, t, place, changes); err != nil {
			return err
		}
	}
	breaking := 0
	for _, c := range changes {
		if c.Breaks {
			breaking++
		}
	}
	if t.json {
		out := map[string]any{"changes": append([]catalogue.Change{}, changes...)}
		if live {
			out["subscriptions"] = broken
		}
		err = t.encode(out)
	} else {
		printChanges(t, changes, breaking)
		printBroken(t, broken, live && breaking+len(broken) > 0)
	}
	if err == nil && breaking+len(broken) > 0 {
		err = errSaid
	}
	return err
}

func readCatalogue(file string) ([]catalogue.Type, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	types, err := catalogue.Read(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "sender/catalogue: "))
	}
	return types, nil
}

func findBroken(ctx context.Context, t *terminal, place databasePlace, changes []catalogue.Change) ([]brokenSubscription, error) {
	db, err := place.open(ctx, t.env, false)
	if err != nil {
		return nil, err
	}
	defer db.close()
	h, err := history.New(db.store, nil)
	if err != nil {
		return nil, err
	}
	found, err := catalogue.FindBroken(ctx, h, changes)
	if err != nil {
		return nil, answered(err)
	}
	all := []brokenSubscription{}
	for _, b := range found {
		s := b.Subscription
		all = append(all, brokenSubscription{s.ID, s.Subscriber, s.URL, s.Settings.PayloadVersion, b.Changes})
	}
	return all, nil
}

func printChanges(t *terminal, changes []catalogue.Change, breaking int) {
	if len(changes) == 0 {
		t.say("nothing that customers would see has changed")
		return
	}
	print := func(breaks bool) {
		for _, c := range changes {
			if c.Breaks == breaks {
				t.say("  %s%s", c, pins(c))
			}
		}
	}
	if breaking > 0 {
		t.say("these break customers:")
		print(true)
	}
	if breaking < len(changes) {
		t.say("these break nobody:")
		print(false)
	}
}

// pins says which subscriptions get what a change has broken.
func pins(c catalogue.Change) string {
	switch {
	case !c.Breaks || c.From == "" && c.Until == "":
		return ""
	case c.From == "":
		return " (pinned before " + c.Until + ")"
	case c.Until == "":
		return " (pinned to " + c.From + " or later)"
	}
	return " (pinned to " + c.From + " or later, before " + c.Until + ")"
}

func printBroken(t *terminal, broken []brokenSubscription, asked bool) {
	if !asked {
		return
	}
	if len(broken) == 0 {
		t.say("no live subscription gets any of that")
		return
	}
	rows := [][]string{{"SUBSCRIPTION", "OF", "PINNED TO", "URL", "BROKEN BY"}}
	for _, b := range broken {
		types := map[string]bool{}
		var names []string
		for _, c := range b.Changes {
			if !types[c.Type] {
				types[c.Type] = true
				names = append(names, c.Type)
			}
		}
		rows = append(rows, []string{b.ID, b.Subscriber, b.PayloadVersion, b.URL, strings.Join(names, " ")})
	}
	t.say("")
	t.table(rows)
}
