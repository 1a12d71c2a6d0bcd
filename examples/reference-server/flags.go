package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// options are what the program was started with.
type options struct {
	addr, database        string
	operatorToken         string
	secretKey             string // several: the newest first, with a comma between
	policy                dispatch.Policy
	timeout               time.Duration
	retention             sender.Retention
	limits                limits
	allowPrivate, workers bool
	challenge             bool // callback URLs must answer one before they are registered
	addressed             bool // POST /events must name a subscriber
	showVersion, restored bool
	probe                 bool       // ask the server that runs, and exit
	backup                string     // where a copy of the SQLite file is written to
	level                 slog.Level // the least that is logged
}

// given is what the flags say, before it is put together.
type given struct {
	options
	schedule                string
	horizon, disableAfter   time.Duration
	jitter                  float64
	keepEvents, keepDead    time.Duration
	ownPolicies             bool
	databaseFile, tokenFile string
	secretKeyFile           string
}

const (
	// maxTimeout is how long an attempt may take. Receivers give themselves less, so
	// that they answer before they are given up.
	maxTimeout = 10 * time.Second

	// Receivers are taken to remember events for the default. So a delivery can come until
	// remembered after its event was published, and what is sent again at the end of the
	// reach, which is no shorter than the horizon, is tried for the horizon.
	remembered = dedup.DefaultRetention - dedup.RetentionMargin
	maxHorizon = remembered / 2

	// minOperatorToken keeps an operator from a token that strangers can guess by trying.
	minOperatorToken = 12
	// A token of fewer characters than 128 bits have in base64 is warned of. Over the API, wrong
	// ones are refused as fast as right ones are taken: to slow them down would let a stranger's
	// guesses keep the operator out, who may come from the same address.
	goodOperatorToken = 22

	defaultDatabase = "surehook.db"
)

func (g *given) flags(usage io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("reference-server", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&g.addr, "addr", "127.0.0.1:8080", "listen `address`")
	f.StringVar(&g.database, "database", "", "SQLite `file`, or a postgres:// URL (default \""+defaultDatabase+"\")")
	f.StringVar(&g.databaseFile, "database-file", "", "`file` that -database is read from, so that the process list does not show a password")
	f.StringVar(&g.operatorToken, "operator-token", "", "bearer `token` of the operator, of 12 random characters or more, unless the server listens on its own machine alone (default: generated, and printed at each start)")
	f.StringVar(&g.tokenFile, "operator-token-file", "", "`file` that -operator-token is read from")
	f.StringVar(&g.secretKey, "secret-key", "", "`keys` that encrypt signing secrets at rest, the newest first, with commas between: each 32 bytes in base64 (default: one, generated beside a SQLite file)")
	f.StringVar(&g.secretKeyFile, "secret-key-file", "", "`file` that -secret-key is read from; each key can have a line of its own")
	f.StringVar(&g.schedule, "schedule", "1m,5m,30m,2h,12h", "`delays` before the retries; the last one repeats")
	f.DurationVar(&g.horizon, "horizon", 72*time.Hour, "no attempt is made later than this after the first")
	f.Float64Var(&g.jitter, "jitter", 0.2, "each delay is varied by up to this `fraction`")
	f.DurationVar(&g.timeout, "timeout", maxTimeout, "per attempt, from dial to the end of the response: at most 10s")
	f.DurationVar(&g.disableAfter, "disable-after", 120*time.Hour, "continuous failure for this long disables a subscription")
	f.BoolVar(&g.ownPolicies, "own-policies", false, "subscriptions may have retry delays (from 10s, up to 30 attempts), a horizon (up to -horizon) and a time until disabling (up to -disable-after) of their own")
	f.DurationVar(&g.keepEvents, "keep-events", 30*day, "how long events, and the records of deliveries that have ended, are kept")
	f.DurationVar(&g.keepDead, "keep-dead-letters", 365*day, "how long dead letters are kept")
	f.IntVar(&g.limits.subscriptions, "max-subscriptions", 100, "subscriptions of one subscriber; 0: no limit")
	f.IntVar(&g.limits.jobs, "max-jobs", 10, "unfinished jobs of one subscriber; 0: no limit")
	f.IntVar(&g.limits.requests, "max-requests", 50, "requests a second of one subscriber, to each process; 0: no limit")
	f.BoolVar(&g.challenge, "challenge", false, "a callback URL must answer a signed webhook.challenge before it is registered")
	f.BoolVar(&g.addressed, "require-subscriber", false, "POST /events must name a subscriber: an event is never for everybody by mistake")
	f.BoolVar(&g.allowPrivate, "allow-private-networks", false, "callback URLs may lead to loopback and private addresses, and use http; metadata services of clouds stay closed")
	f.BoolVar(&g.workers, "workers", true, "false: serve the API only")
	f.TextVar(&g.level, "log-level", slog.LevelInfo, "the least `level` that is logged: debug, info, warn or error")
	f.BoolVar(&g.restored, "restored", false, "the database was brought back to an earlier state, or moved by a dump: let versions and cursors go on above what is lost, and exit")
	f.StringVar(&g.backup, "backup", "", "write a copy of the SQLite file, which may be in use, to this `file`, and exit")
	f.BoolVar(&g.probe, "probe", false, "ask the server that listens on -addr whether it is ready, and exit with 0 or 1")
	f.BoolVar(&g.showVersion, "version", false, "print the version and exit")
	return f
}

const day = 24 * time.Hour

// parse reads the flags, and takes the others from the environment. All problems are
// reported at once.
func parse(args []string, env func(string) (string, bool), usage io.Writer) (options, error) {
	var g given
	f := g.flags(usage)
	if err := f.Parse(args); err != nil {
		return g.options, err
	}
	errs := fromEnvironment(f, env)
	if f.NArg() > 0 {
		errs = append(errs, fmt.Errorf("%q is no flag: there are no other arguments", f.Arg(0)))
	}
	errs = append(errs, g.readFiles()...)
	errs = append(errs, g.problems()...)
	delays, err := parseSchedule(g.schedule)
	if err != nil {
		errs = append(errs, err)
	}
	g.policy = dispatch.Policy{
		Backoff:      backoff.Policy{Schedule: delays, Horizon: g.horizon, Jitter: jitterOf(g.jitter)},
		DisableAfter: g.disableAfter,
	}
	if g.ownPolicies {
		g.policy.Own = sender.PolicyBounds{Allowed: true, MaxHorizon: g.horizon, MaxDisableAfter: g.disableAfter}
	}
	g.retention = sender.Retention{Events: g.keepEvents, Delivered: g.keepEvents, DeadLetters: g.keepDead}
	// A delivery that is not kept cannot be sent again.
	g.retention.Reach = min(g.retention.WithDefaults().Reach, g.keepEvents, g.keepDead, remembered-g.horizon)
	g.database = cmp.Or(g.database, defaultDatabase)
	if info, err := os.Stat(g.database); err == nil && info.IsDir() { // beside which a key would be made
		errs = append(errs, fmt.Errorf("-database: %s is a directory: name a file in it", g.database))
	}
	return g.options, errors.Join(errs...)
}

// problems are the values that cannot be.
func (g *given) problems() (errs []error) {
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(g.timeout <= 0 || g.timeout > maxTimeout, "-timeout is %v: it must be above 0 and at most %v", g.timeout, maxTimeout)
	bad(g.horizon <= 0 || g.horizon > maxHorizon, "-horizon is %v: it must be above 0 and at most %v, since receivers remember events for %v", g.horizon, maxHorizon, dedup.DefaultRetention)
	bad(g.disableAfter <= 0, "-disable-after is %v: it must be above 0", g.disableAfter)
	bad(g.ownPolicies && (g.horizon < time.Minute || g.disableAfter < time.Hour), "-own-policies needs a -horizon of at least 1m and a -disable-after of at least 1h: they are %v and %v", g.horizon, g.disableAfter)
	bad(g.jitter < 0 || g.jitter > 1 || g.jitter != g.jitter, "-jitter is %v: it must be from 0 to 1", g.jitter)
	bad(g.operatorToken != "" && len(g.operatorToken) < minOperatorToken && !onlyHere(g.addr),
		"-operator-token has %d characters: it must have at least %d where others can reach the server, so that nobody can guess it (openssl rand -hex 32 makes one)", len(g.operatorToken), minOperatorToken)
	bad(strings.ContainsFunc(g.operatorToken, func(r rune) bool { return r <= ' ' || r > '~' }), "-operator-token has a character that a header cannot carry: it must be of visible ASCII characters, without spaces")
	for _, l := range []struct {
		name string
		n    int
	}{{"subscriptions", g.limits.subscriptions}, {"jobs", g.limits.jobs}, {"requests", g.limits.requests}} {
		bad(l.n < 0, "-max-%s is %d: it must be above 0, or 0 for no limit", l.name, l.n)
	}
	// Retries need the event, and so does who sends a dead letter again.
	bad(g.horizon > 0 && g.keepEvents < g.horizon, "-keep-events is %v: it must be at least -horizon, which is %v", g.keepEvents, g.horizon)
	bad(g.horizon > 0 && g.keepDead < g.horizon, "-keep-dead-letters is %v: it must be at least -horizon, which is %v", g.keepDead, g.horizon)
	return errs
}

// onlyHere reports whether a server that listens on addr can be reached from its own machine alone.
func onlyHere(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip, notIP := netip.ParseAddr(host)
	return err == nil && (host == "localhost" || notIP == nil && ip.Unmap().IsLoopback())
}

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
