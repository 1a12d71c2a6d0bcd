package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender/dispatch"
)

// options are what the program was started with.
type options struct {
	addr, database           string
	operatorToken, secretKey string
	policy                   dispatch.Policy
	timeout                  time.Duration
	allowPrivate, workers    bool
	showVersion, restored    bool
	level                    slog.Level // the least that is logged
}

// maxTimeout is how long an attempt may take. Receivers give themselves less, so
// that they answer before they are given up.
const maxTimeout = 10 * time.Second

// parse reads the flags, and takes the others from the environment. All problems are
// reported at once.
func parse(args []string, env func(string) (string, bool), usage io.Writer) (options, error) {
	var o options
	var schedule string
	var jitter float64
	var horizon, disableAfter time.Duration
	f := flag.NewFlagSet("reference-server", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "listen `address`")
	f.StringVar(&o.database, "database", "surehook.db", "SQLite `file`, or a postgres:// URL")
	f.StringVar(&o.operatorToken, "operator-token", "", "bearer `token` of the operator (default: generated, and printed at each start)")
	f.StringVar(&o.secretKey, "secret-key", "", "`key` that encrypts signing secrets at rest: 32 bytes, base64 (default: generated beside a SQLite file)")
	f.StringVar(&schedule, "schedule", "1m,5m,30m,2h,12h", "`delays` before the retries; the last one repeats")
	f.DurationVar(&horizon, "horizon", 72*time.Hour, "no attempt is made later than this after the first")
	f.Float64Var(&jitter, "jitter", 0.2, "each delay is varied by up to this `fraction`")
	f.DurationVar(&o.timeout, "timeout", maxTimeout, "per attempt, from dial to the end of the response: at most 10s")
	f.DurationVar(&disableAfter, "disable-after", 120*time.Hour, "continuous failure for this long disables a subscription")
	f.BoolVar(&o.allowPrivate, "allow-private-networks", false, "callback URLs may lead to loopback and private addresses, and use http; metadata services of clouds stay closed")
	f.BoolVar(&o.workers, "workers", true, "false: serve the API only")
	f.TextVar(&o.level, "log-level", slog.LevelInfo, "the least `level` that is logged: debug, info, warn or error")
	f.BoolVar(&o.restored, "restored", false, "the database was brought back to an earlier state, or moved by a dump: let versions and cursors go on above what is lost, and exit")
	f.BoolVar(&o.showVersion, "version", false, "print the version and exit")

	// The environment first, so that the command line has the last word.
	var errs []error
	f.VisitAll(func(fl *flag.Flag) {
		name := "SUREHOOK_" + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
		value, ok := env(name)
		if !ok {
			return
		}
		if err := f.Set(fl.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("the environment variable %s is not one that -%s takes", name, fl.Name))
		}
	})
	if err := f.Parse(args); err != nil {
		return o, errors.Join(append(errs, err)...)
	}
	if f.NArg() > 0 {
		errs = append(errs, fmt.Errorf("%q is no flag: there are no other arguments", f.Arg(0)))
	}
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(o.timeout <= 0 || o.timeout > maxTimeout, "-timeout is %v: it must be above 0 and at most %v", o.timeout, maxTimeout)
	bad(horizon <= 0, "-horizon is %v: it must be above 0", horizon)
	bad(disableAfter <= 0, "-disable-after is %v: it must be above 0", disableAfter)
	bad(jitter < 0 || jitter > 1 || jitter != jitter, "-jitter is %v: it must be from 0 to 1", jitter)
	bad(o.operatorToken != "" && len(o.operatorToken) < minOperatorToken, "-operator-token has %d characters: it must have at least %d", len(o.operatorToken), minOperatorToken)
	delays, err := parseSchedule(schedule)
	if err != nil {
		errs = append(errs, err)
	}
	o.policy = dispatch.Policy{
		Backoff:      backoff.Policy{Schedule: delays, Horizon: horizon, Jitter: jitterOf(jitter)},
		DisableAfter: disableAfter,
	}
	o.database = cmp.Or(o.database, "surehook.db")
	return o, errors.Join(errs...)
}

// minOperatorToken keeps an operator from a token that can be guessed by trying.
const minOperatorToken = 8

func parseSchedule(text string) (backoff.Schedule, error) {
	var delays []time.Duration
	for word := range strings.SplitSeq(text, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(word))
		if err != nil {
			return nil, fmt.Errorf("-schedule %q: %q is not a duration: give delays such as 1m,5m,30m", text, word)
		}
		delays = append(delays, d)
	}
	s, err := backoff.Fixed(delays...)
	if err != nil {
		return nil, fmt.Errorf("-schedule %q: %w", text, err)
	}
	return s, nil
}

// jitterOf tells no jitter from the zero value, which means the default.
func jitterOf(fraction float64) backoff.Jitter {
	if fraction == 0 {
		return backoff.None()
	}
	return backoff.Proportional(fraction)
}

func (o *options) postgres() bool {
	return strings.HasPrefix(o.database, "postgres://") || strings.HasPrefix(o.database, "postgresql://")
}
