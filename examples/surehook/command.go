package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// command is one of the program's.
type command struct {
	name, summary string
	args          string // after the flags: "[FILE]"
	about         string // a paragraph or two
	example       string
	arguments     [2]int // how few and how many there may be; -1: any number

	// flags defines the command's own flags, and returns what runs it once they are read.
	flags func(f *flag.FlagSet) func(ctx context.Context, t *terminal, args []string) error
}

// start reads the flags, wherever they stand between the arguments, and runs the command.
func (c command) start(ctx context.Context, t *terminal, args []string) error {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&t.json, "json", false, "print JSON")
	run := c.flags(f)
	var rest []string
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			c.help(f, t.out)
			return err
		} else if err != nil {
			return c.wrongFlag(f, err)
		}
		if f.NArg() == 0 {
			break
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
	switch least, most := c.arguments[0], c.arguments[1]; {
	case len(rest) < least:
		return fmt.Errorf("it needs %s: surehook %s -h shows an example", c.args, c.name)
	case most >= 0 && len(rest) > most:
		return fmt.Errorf("%q is one argument too many: usage: %s", rest[most], c.usage())
	}
	return run(ctx, t, rest)
}

func (c command) usage() string {
	return strings.TrimSpace("surehook " + c.name + " [flags] " + c.args)
}

func (c command) help(f *flag.FlagSet, out io.Writer) {
	fmt.Fprintf(out, "usage: %s\n\n%s\n\nexample:\n  %s\n\nflags:\n", c.usage(), c.about, strings.ReplaceAll(c.example, "\n", "\n  "))
	f.SetOutput(out)
	f.PrintDefaults()
}

// wrongFlag says which flag was meant.
func (c command) wrongFlag(f *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	var names []string
	f.VisitAll(func(fl *flag.Flag) { names = append(names, fl.Name) })
	return fmt.Errorf("there is no flag -%s%s surehook %s -h lists all", name, suggestion(name, names, "-"), c.name)
}

// suggestion asks for the nearest of the names, if it is near or begins with what was
// typed.
func suggestion(typed string, names []string, prefix string) string {
	best, least := "", 3
	for _, name := range names {
		d := distance(typed, name)
		if strings.HasPrefix(name, typed) {
			d = min(d, 2)
		}
		if d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ":"
	}
	return ": did you mean " + prefix + best + "?"
}

// distance is how many letters must be changed, added or left out (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// errSaid ends a command with exit code 1 that has said itself what is wrong.
var errSaid = errors.New("said already")

// noError says that what was asked for was tried, and refused.
type noError struct{ err error }

func (e *noError) Error() string { return e.err.Error() }
func (e *noError) Unwrap() error { return e.err }

func no(format string, args ...any) error { return &noError{fmt.Errorf(format, args...)} }

func isNo(err error) bool {
	var e *noError
	return errors.As(err, &e)
}
