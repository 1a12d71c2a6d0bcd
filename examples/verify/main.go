// Command verify says which scheme has signed a captured request, or why the request does
// not verify. It helps to find the mistake between a sender and a receiver.
//
//	go run ./examples/verify -secret-file secret.txt request.http
//
// README.md beside it says what it reads. It exits with 0 if a scheme verifies, 1 if
// none does, and 2 if it could not try. It never prints a secret.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/surehook/surehook/signing"
)

const (
	exitVerified = 0
	exitRefused  = 1
	exitUsage    = 2
)

type options struct {
	secrets   []namedText
	at        time.Time // zero means now
	tolerance time.Duration
	url       string
	file      string
}

func main() {
	os.Exit(run(os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, env func(string) string, in io.Reader, out, problems io.Writer) int {
	o, err := parse(args, env, problems)
	if errors.Is(err, flag.ErrHelp) {
		return exitUsage
	}
	if err != nil {
		fmt.Fprintln(problems, "verify:", err)
		return exitUsage
	}
	c, err := o.read(in)
	if err != nil {
		fmt.Fprintln(problems, "verify:", err)
		return exitUsage
	}
	if report(out, c, o) {
		return exitVerified
	}
	return exitRefused
}

func parse(args []string, env func(string) string, problems io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {
		fmt.Fprintln(problems, "usage: verify [flags] [FILE]\n\nFILE (or standard input) has a request, as raw HTTP or as a curl command.")
		flags.PrintDefaults()
	}
	flags.Func("secret", "a `secret` to try; may be repeated. Others can see it in the list of processes: -secret-file or WEBHOOK_SECRET is better", func(text string) error {
		o.secrets = append(o.secrets, namedText{fmt.Sprintf("secret %d", len(o.secrets)+1), text})
		return nil
	})
	flags.Func("secret-file", "a `file` with a secret in each line; may be repeated", func(name string) error {
		texts, err := secretLines(name)
		for _, text := range texts {
			o.secrets = append(o.secrets, namedText{fmt.Sprintf("secret %d", len(o.secrets)+1), text})
		}
		return err
	})
	flags.Func("at", "the receiver's clock as a `time`: RFC 3339 or seconds since 1970 (default: now)", func(text string) (err error) {
		o.at, err = parseTime(text)
		return err
	})
	flags.DurationVar(&o.tolerance, "tolerance", signing.DefaultTolerance, "how far a timestamp may be from the clock")
	flags.StringVar(&o.url, "url", "", "the `URL` as it is registered at Square or Twilio (default: the request's own)")
	if err := flags.Parse(args); err != nil {
		return o, flag.ErrHelp // the flag set has said what is wrong
	}
	if text := env("WEBHOOK_SECRET"); text != "" {
		o.secrets = append(o.secrets, namedText{"WEBHOOK_SECRET", text})
	}
	o.file = flags.Arg(0)
	var wrong []error
	if len(o.secrets) == 0 {
		wrong = append(wrong, errors.New("there is no secret: give -secret-file, WEBHOOK_SECRET or -secret"))
	}
	if flags.NArg() > 1 {
		wrong = append(wrong, fmt.Errorf("there are %d files: give one, after the flags", flags.NArg()))
	}
	if o.tolerance < time.Second {
		wrong = append(wrong, errors.New("-tolerance is less than a second: timestamps are whole seconds"))
	}
	return o, errors.Join(wrong...)
}

func parseTime(text string) (time.Time, error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, errors.New("it must be like 2026-01-31T12:00:00Z or 1769860800")
	}
	return at, nil
}

func (o options) now() time.Time {
	if o.at.IsZero() {
		return time.Now()
	}
	return o.at
}

func (o options) read(in io.Reader) (capture, error) {
	if o.file != "" && o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return capture{}, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxCapture+1))
	if err != nil {
		return capture{}, fmt.Errorf("reading the request: %w", err)
	}
	if len(text) > maxCapture {
		return capture{}, fmt.Errorf("the request is larger than %d MiB", maxCapture>>20)
	}
	return readCapture(text)
}
