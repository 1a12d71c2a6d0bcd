package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

type migrateOptions struct {
	place                        databasePlace
	sets, dialect, manager, into string
	first                        int64
}

func migrateCommand() command {
	return command{
		name: "migrate", summary: "make the tables, or print their SQL for another tool",
		args: "up|status|print", arguments: [2]int{1, 1},
		about: `up brings the tables up to date. status says how far they are; its exit code is 1 if a file
is missing of a set that is there. print writes the files for another tool: to standard
output, or with -dir each into a file of its own. With a database, print leaves out what
that one has. Files only go forward: there is no down.

The sets: sender (to send), dedup (to receive), jobs, inbox, catchup.`,
		example: "surehook migrate up -database postgres://app@db/app -sets sender,dedup\nsurehook migrate print -sets sender -dialect postgres -for goose -dir migrations -first 20261125090000",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			o := &migrateOptions{}
			o.place.flags(f)
			f.StringVar(&o.sets, "sets", "", "which `sets` of tables, with commas between (up and status: those that are there)")
			f.StringVar(&o.dialect, "dialect", "", "print: sqlite or postgres (default: the database's)")
			f.StringVar(&o.manager, "for", "plain", "print: for which `tool`: plain, goose, dbmate, golang-migrate or flyway")
			f.StringVar(&o.into, "dir", "", "print: the `folder` for the files")
			f.Int64Var(&o.first, "first", 1, "print: the first file's `number`, if you have others before it")
			return func(ctx context.Context, t *terminal, args []string) error {
				var stray string
				f.Visit(func(fl *flag.Flag) {
					if strings.HasPrefix(fl.Usage, "print: ") {
						stray = fl.Name
					}
				})
				if stray != "" && args[0] != "print" {
					return fmt.Errorf("-%s is for surehook migrate print", stray)
				}
				switch args[0] {
				case "up":
					return migrateUp(ctx, t, o)
				case "status":
					return migrateStatus(ctx, t, o)
				case "print":
					return migratePrint(ctx, t, o)
				}
				return fmt.Errorf("%q: it must be up, status or print", args[0])
			}
		},
	}
}

const someSets = "-sets sender (to send), -sets dedup (to receive), or -sets sender,dedup"

func migrateUp(ctx context.Context, t *terminal, o *migrateOptions) error {
	var sets []tableSet
	var err error
	if o.sets != "" {
		if sets, err = chosen(o.sets); err != nil {
			return err
		}
	}
	d, err := o.place.open(ctx, t.env, o.sets != "")
	if _, missing := errors.AsType[noFile](err); missing {
		return fmt.Errorf("%w, or say which tables a new one is to have: %s", err, someSets)
	}
	if err != nil {
		return err
	}
	defer d.close()
	before, err := d.states(ctx)
	if err != nil {
		return err
	}
	if o.sets == "" {
		if sets, err = chosen(present(before)); err != nil {
			return errors.New("there are no tables yet: say which to make: " + someSets)
		}
	}
	for _, set := range sets {
		t.progress("%s …", set.name)
		if err := set.up(ctx, d); err != nil {
			return &noError{err}
		}
	}
	after, err := d.states(ctx)
	if err != nil {
		return err
	}
	t.unfinished()
	return printUp(t, sets, before, after)
}

func printUp(t *terminal, sets []tableSet, before, after []setState) error {
	type applied struct {
		Set     string   `json:"set"`
		Version int      `json:"version"`
		Applied []string `json:"applied"`
	}
	done := []applied{}
	for _, set := range sets {
		for i, s := range after {
			if s.Set != set.name {
				continue
			}
			done = append(done, applied{s.Set, s.Version, before[i].Missing[:len(before[i].Missing)-len(s.Missing)]})
		}
	}
	if t.json {
		return t.encode(map[string]any{"sets": done})
	}
	for _, a := range done {
		if len(a.Applied) == 0 {
			t.say("%s: up to date, at version %d", a.Set, a.Version)
		} else {
			t.say("%s: applied %s, at version %d now", a.Set, strings.Join(a.Applied, ", "), a.Version)
		}
	}
	return nil
}

// present are the names of the sets that are there, with commas between.
func present(all []setState) string {
	var names []string
	for _, s := range all {
		if s.State != "absent" {
			names = append(names, s.Set)
		}
	}
	return strings.Join(names, ",")
}

func migrateStatus(ctx context.Context, t *terminal, o *migrateOptions) error {
	var asked []tableSet
	if o.sets != "" {
		var err error
		if asked, err = chosen(o.sets); err != nil {
			return err
		}
	}
	d, err := o.place.open(ctx, t.env, false)
	if err != nil {
		return err
	}
	defer d.close()
	all, err := d.states(ctx)
	if err != nil {
		return err
	}
	rows, fits := [][]string{{"SET", "STATE", "VERSION", "SINCE (UTC)", "MISSING"}}, true
	shown := []setState{}
	for _, s := range all {
		named := slices.ContainsFunc(asked, func(set tableSet) bool { return set.name == s.Set })
		if len(asked) > 0 && !named {
			continue
		}
		if s.State == "behind" || !s.fits || named && s.State == "absent" {
			fits = false
		}
		shown = append(shown, s)
		missing := strings.Join(s.Missing, ", ")
		if s.State == "absent" {
			missing = ""
		}
		rows = append(rows, []string{s.Set, s.State, fmt.Sprintf("%d of %d", s.Version, s.Known), dash(s.AppliedAt), missing})
	}
	if t.json {
		err = t.encode(map[string]any{"sets": shown})
	} else {
		t.table(rows)
	}
	if err == nil && !fits {
		err = errSaid
	}
	return err
}
