// Command surehook is for whoever works with webhooks. It brings a service's events to a
// program on this machine, sends samples, finds out why a delivery has not arrived, sends
// it again, and looks after the database.
//
//	go run ./examples/surehook help
//
// It works through a reference server, or directly on the database of any service that
// embeds the library. README.md has each command with its output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// The exit codes.
const (
	exitDone    = 0
	exitNo      = 1 // it was tried, and the answer is no
	exitUntried = 2 // it could not be tried: wrong flags, no file, no connection
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait
	os.Exit(run(ctx, os.Args[1:], &terminal{
		in: os.Stdin, out: os.Stdout, problems: os.Stderr, env: os.Getenv,
		asks: isTerminal(os.Stdin), watched: isTerminal(os.Stderr),
	}))
}

// output remembers the first error of writing, so that the commands need not look.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// run is program, which has not done what it was to do if its output is not whole.
func run(ctx context.Context, args []string, t *terminal) int {
	out := &output{Writer: t.out}
	t.out = out
	code := program(ctx, args, t)
	if out.err != nil {
		fmt.Fprintf(t.problems, "surehook: the output is not whole: %v\n", out.err)
		return exitUntried
	}
	return code
}

// isTerminal tells whether a person is at the other end. The null device is a character
// device too, and nobody is there.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// commands are all, in the order in which help lists them.
func commands() []command {
	return []command{
		listenCommand(), triggerCommand(), verifyCommand(),
		deliveriesCommand(), whyCommand(), redeliverCommand(), replayCommand(),
		subscriptionsCommand(), pauseCommand(), resumeCommand(), noticesCommand(), acknowledgeCommand(),
		migrateCommand(), restoredCommand(), doctorCommand(), catalogueCommand(), versionCommand(),
	}
}

// program runs a command, and returns the exit code.
func program(ctx context.Context, args []string, t *terminal) int {
	if len(args) == 0 {
		help(t.problems)
		return exitUntried
	}
	name := args[0]
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, name) {
		if len(args) > 1 && name == "help" {
			return program(ctx, []string{args[1], "-h"}, t)
		}
		help(t.out)
		return exitDone
	}
	var names []string
	for _, c := range commands() {
		if c.name == name {
			err := c.start(ctx, t, args[1:])
			if err != nil && ctx.Err() != nil && !isNo(err) {
				err = errors.New("interrupted")
			}
			return code(t, name, err)
		}
		names = append(names, c.name)
	}
	return code(t, "", fmt.Errorf("there is no command %q%s surehook help lists all", name, suggestion(name, names, "")))
}

func help(out io.Writer) {
	fmt.Fprint(out, "usage: surehook COMMAND [flags]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %-13s %s\n", c.name, c.summary)
	}
	fmt.Fprint(out, `
surehook COMMAND -h says more, with an example. With -json every command prints JSON.
Exit codes: 0 done; 1 tried, and the answer is no; 2 could not be tried.
`)
}

func code(t *terminal, command string, err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitDone
	case errors.Is(err, errSaid):
		return exitNo
	}
	name := "surehook"
	if command != "" {
		name += " " + command
	}
	t.unfinished()
	fmt.Fprintf(t.problems, "%s: %s\n", name, printable(err.Error()))
	if isNo(err) {
		return exitNo
	}
	return exitUntried
}
