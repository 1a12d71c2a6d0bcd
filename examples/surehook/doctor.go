package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/sender"
)

type doctorOptions struct {
	target
	keyFile                           string
	reach, horizon, receivers, events time.Duration
}

func doctorCommand() command {
	return command{
		name: "doctor", summary: "check the database, or the server, and say what to do",
		about: `Checks what goes wrong in practice: missing migrations, commits that are not durable, a
pooler, a sealing key that does not fit, clocks, retention, disk space, work that nobody
does. Each line is ok, warn or FAIL, with what to do. The exit code is 1 if one FAILs.`,
		example: "surehook doctor -database postgres://app@db/app -schema hooks -secret-key-file key.txt",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			o := &doctorOptions{}
			o.target.flags(f)
			d := sender.Retention{}.WithDefaults()
			f.StringVar(&o.keyFile, "secret-key-file", "", "a `file` with the sealing key, in base64: ID=KEY as the service names it, or the KEY alone as the reference server does; older keys in further lines (or SUREHOOK_SECRET_KEY)")
			f.DurationVar(&o.reach, "reach", d.Reach, "the sender's Retention.Reach: how far back it sends events again")
			f.DurationVar(&o.horizon, "horizon", dedup.DefaultHorizon, "for how long the sender tries a delivery, or the longest that it allows subscriptions")
			f.DurationVar(&o.events, "keep-events", d.Events, "the sender's Retention.Events and Delivered: how long it keeps events and records")
			f.DurationVar(&o.receivers, "receivers", d.Receivers, "how long receivers remember what they have applied")
			return func(ctx context.Context, t *terminal, _ []string) error { return doctor(ctx, t, o) }
		},
	}
}

// finding is one line.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warn or fail
	Detail string `json:"detail"`
	Do     string `json:"do,omitempty"`
}

const (
	ok   = "ok"
	warn = "warn"
	fail = "fail"
)

// findings are what the checks have found, in order.
type findings struct{ all []finding }

func (f *findings) add(check, status, detail, do string) {
	f.all = append(f.all, finding{check, status, detail, do})
}

// failed adds an error of a check itself.
func (f *findings) failed(check string, err error) {
	f.add(check, fail, "it cannot be read: "+err.Error(), "see that the role may read it")
}

func doctor(ctx context.Context, t *terminal, o *doctorOptions) error {
	b, err := o.open(ctx, t)
	if err != nil {
		return err
	}
	defer b.close()
	found := &findings{}
	switch b := b.(type) {
	case *server:
		if o.keyFile != "" {
			return errors.New("-secret-key-file is for a -database: nothing that is sealed can be read through a server")
		}
		b.doctor(ctx, found)
	case *stored:
		if err := examine(ctx, t, b, o, found); err != nil {
			return err
		}
	}
	checkRetention(o, found)
	if err := ctx.Err(); err != nil {
		return err
	}
	return printFindings(t, found.all)
}

func printFindings(t *terminal, all []finding) error {
	failed, warned := 0, 0
	for _, f := range all {
		switch f.Status {
		case fail:
			failed++
		case warn:
			warned++
		}
	}
	if t.json {
		if err := t.encode(map[string]any{"ok": failed == 0, "checks": all}); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			t.say("%-4s  %-12s %s", strings.ReplaceAll(f.Status, fail, "FAIL"), f.Check, f.Detail)
			if f.Do != "" {
				t.say("%s→ %s", strings.Repeat(" ", 19), f.Do)
			}
		}
		t.say("%d checks: %d to mend, %d to look at", len(all), failed, warned)
	}
	if failed > 0 {
		return errSaid
	}
	return nil
}

// checkRetention compares what the sender's configuration says with the receivers'. No
// database knows either.
func checkRetention(o *doctorOptions, found *findings) {
	r := sender.Retention{Reach: o.reach, Receivers: o.receivers, Events: o.events, Delivered: o.events}.WithDefaults()
	r.DeadLetters = max(r.DeadLetters, r.Reach) // its own setting is not asked for
	for _, err := range r.Problems(o.horizon) {
		found.add("retention", fail, strings.TrimPrefix(err.Error(), "sender: "), "change the sender's Retention, or have the receivers remember longer")
		return
	}
	found.add("retention", ok, fmt.Sprintf("events are sent again for %s and then tried for %s, and receivers remember for %s (as -reach, -horizon and -receivers say)", days(o.reach), days(o.horizon), days(o.receivers)), "")
}

// days is a long duration for people.
func days(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
