// Package verify says which scheme has signed a captured request, or why the request does
// not verify. It helps to find the mistake between a sender and a receiver. It never
// prints a secret.
package verify

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

// Options are what a request is judged with. The zero value has no secret.
type Options struct {
	secrets   []namedText
	at        time.Time // zero means now
	tolerance time.Duration
	url       string
}

// Flags defines the flags that set the options.
func (o *Options) Flags(flags *flag.FlagSet) {
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
	flags.StringVar(&o.url, "url", "", "the `URL` as it is registered at a sender that signs it, such as Square, Twilio and HubSpot (default: the request's own)")
}

// Check takes the secret of the environment, too, and returns all that is wrong with the
// options.
func (o *Options) Check(env func(string) string) error {
	if text := env("WEBHOOK_SECRET"); text != "" {
		o.secrets = append(o.secrets, namedText{"WEBHOOK_SECRET", text})
	}
	var wrong []error
	if len(o.secrets) == 0 {
		wrong = append(wrong, errors.New("there is no secret: give -secret-file, WEBHOOK_SECRET or -secret"))
	}
	if o.tolerance < time.Second {
		wrong = append(wrong, errors.New("-tolerance is less than a second: timestamps are whole seconds"))
	}
	return errors.Join(wrong...)
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

func (o *Options) now() time.Time {
	if o.at.IsZero() {
		return time.Now()
	}
	return o.at
}

// Request reads a request from a file, as raw HTTP or as a curl command, and says
// whether one of the schemes verifies. A name of "" or "-" is in.
func (o *Options) Request(name string, in io.Reader) (Report, error) {
	if name != "" && name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return Report{}, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxCapture+1))
	if err != nil {
		return Report{}, fmt.Errorf("reading the request: %w", err)
	}
	if len(text) > maxCapture {
		return Report{}, fmt.Errorf("the request is larger than %d MiB", maxCapture>>20)
	}
	c, err := readCapture(text)
	if err != nil {
		return Report{}, err
	}
	return report(c, o), nil
}
