package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
)

type listenOptions struct {
	target
	to, secretFile, from, types, subscriber string
	attempts                                int
	timeout                                 time.Duration
	anyHost, stopExpired                    bool
}

func listenCommand() command {
	return command{
		name: "listen", summary: "bring a service's events to a URL on this machine",
		about: `Reads the feed of events and posts each to a URL on this machine, signed anew with a
secret that it prints. Nothing needs to reach this machine: no tunnel, no relay. It
ends with Ctrl-C, and says how to go on from there.

An endpoint that does not answer with 2xx gets the same event again, after 1 s, 2 s, 4 s
and so on, up to 30 s. Events come one after another.`,
		example: "SUREHOOK_TOKEN=… surehook listen -server https://hooks.example.com -to http://127.0.0.1:3000/webhooks -types 'invoice.*'",
		flags: func(f *flag.FlagSet) func(context.Context, *terminal, []string) error {
			o := &listenOptions{}
			o.target.flags(f)
			f.StringVar(&o.to, "to", "", "the `URL` on this machine")
			f.BoolVar(&o.anyHost, "any-host", false, "-to may be another machine, which then gets the events")
			f.StringVar(&o.secretFile, "secret-file", "", "a `file` with the secret to sign with (or WEBHOOK_SECRET; default: a new one, which is printed)")
			f.StringVar(&o.from, "from", "now", "where to begin: now, beginning, or a `cursor` that listen has printed")
			f.StringVar(&o.types, "types", "*", "the event `types` to post, with commas between: exact, \"prefix.*\" or \"*\"")
			f.StringVar(&o.subscriber, "subscriber", "", "with -database: the `id` of the subscriber whose events are read (default: everybody's)")
			f.IntVar(&o.attempts, "attempts", 5, "how often an event is posted to an endpoint that fails before it is passed over; 0: until it succeeds")
			f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long the endpoint may take to answer")
			f.BoolVar(&o.stopExpired, "stop-if-expired", false, "end if events after the cursor are not kept any more, in place of going on with the oldest that is")
			return func(ctx context.Context, t *terminal, _ []string) error { return listen(ctx, t, o) }
		},
	}
}

func listen(ctx context.Context, t *terminal, o *listenOptions) error {
	u, err := url.Parse(o.to)
	switch {
	case o.to == "":
		return errors.New("where to? Give -to http://127.0.0.1:PORT/PATH")
	case err == nil && u.Host != "" && !o.anyHost && !local(u.Hostname()): // newPoster refuses what has no host
		return fmt.Errorf("-to %s is not this machine: the events would leave it (-any-host allows that)", u.Redacted())
	case o.from == "":
		return errors.New("-from is empty: it must be now, beginning or a cursor that listen has printed")
	case o.attempts < 0:
		return fmt.Errorf("-attempts is %d: it must be 1 or more, or 0 to try until it succeeds", o.attempts)
	}
	secret, from, err := secretOf(o.secretFile, t)
	if err != nil {
		return err
	}
	to, err := newPoster(o.to, secret, o.timeout)
	if err != nil {
		return err
	}
	b, err := o.open(ctx, t)
	if err != nil {
		return err
	}
	defer b.close()
	source, err := b.events(o.subscriber)
	if err != nil {
		return err
	}
	l := &listener{t: t, source: source, to: to, types: strings.Split(o.types, ","), attempts: o.attempts, stopExpired: o.stopExpired}
	if err := l.begin(ctx, o.from); err != nil {
		return err
	}
	shown := ""
	if from == "" {
		shown = secret.Reveal()
		t.say("the secret, for as long as this runs: %s", shown)
	} else {
		t.say("signed with the secret of %s", from)
	}
	t.say("posting to %s; Ctrl-C ends", o.to)
	if t.json {
		if err := t.encode(listening{"listening", o.to, shown, l.cursor}); err != nil {
			return err
		}
	}
	return l.run(ctx)
}

// The lines of -json. Kind tells them apart.
type (
	listening struct {
		Kind   string `json:"kind"`
		To     string `json:"to"`
		Secret string `json:"secret,omitempty"` // if it was made
		Cursor string `json:"cursor"`
	}
	attempted struct {
		Kind       string    `json:"kind"`
		Event      sentEvent `json:"event"`
		Attempt    int       `json:"attempt"`
		StatusCode *int      `json:"status_code"`
		DurationMS int64     `json:"duration_ms"`
		Error      *string   `json:"error"`
		Delivered  bool      `json:"delivered"`
	}
	gone struct {
		Kind   string `json:"kind"`
		Cursor string `json:"cursor"`
	}
	listened struct {
		Kind       string `json:"kind"`
		Delivered  int    `json:"delivered"`
		PassedOver int    `json:"passed_over"`
		Cursor     string `json:"cursor"`
	}
)

type listener struct {
	t                     *terminal
	source                catchup.Source
	to                    *poster
	types                 []string
	attempts              int
	stopExpired           bool
	cursor                string
	delivered, passedOver int
}

// listenPage bounds what one page has: after an interruption part of one is read again.
const listenPage = 50

// begin finds the cursor to begin with.
func (l *listener) begin(ctx context.Context, from string) error {
	for _, one := range l.types {
		if one == "" || strings.ContainsAny(one, " /") {
			return fmt.Errorf("-types has %q: it must be types such as invoice.paid, invoice.* or *, with commas between", one)
		}
	}
	switch from {
	case "beginning":
		return nil
	case feed.Now:
		p, err := l.source.Page(ctx, feed.Now, 1, 0)
		var refused *catchup.StatusError
		if errors.As(err, &refused) && refused.Status == 422 {
			return no("the server does not know where now is (it is older than this program): give -from beginning")
		}
		l.cursor = p.Next
		return refusedFeed(err)
	}
	l.cursor = from
	_, err := l.source.Page(ctx, from, 1, 0)
	if errors.Is(err, catchup.ErrExpired) {
		return nil // run meets it again, and says so
	}
	return refusedFeed(err)
}

// refusedFeed tells what the service refuses from what another try may change.
func refusedFeed(err error) error {
	var refused *catchup.StatusError
	if !errors.As(err, &refused) || answersLater(refused.Status) {
		return err
	}
	switch refused.Status {
	case 401:
		return no("the server refuses the token (401): see SUREHOOK_TOKEN or -token-file")
	case 422:
		return no("the server refuses it (422: %s): -from must be now, beginning or a cursor that listen has printed", refused.Detail)
	}
	return &noError{err}
}

func (l *listener) run(ctx context.Context) error {
	for failed, gaps := 0, 0; ctx.Err() == nil; {
		p, err := l.source.Page(ctx, l.cursor, listenPage, 25*time.Second)
		var expired *catchup.ExpiredError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &expired):
			if err := l.expired(expired.Next); err != nil {
				return err
			}
			if gaps++; gaps > 1 { // a sender that sends us back for ever is not to be asked without a pause
				_ = pause(ctx, delay(0))
			}
		case isNo(refusedFeed(err)):
			return errors.Join(refusedFeed(err), l.end())
		case err != nil:
			again := delay(failed)
			failed++
			l.t.note("the feed cannot be read (%v): again in %v", err, again)
			_ = pause(ctx, again) // the loop looks at ctx
		default:
			failed = 0
			l.page(ctx, p)
		}
	}
	return l.end()
}

// delay is how long to wait after a number of earlier failures: 1 s, doubled up to 30 s.
func delay(failed int) time.Duration { return min(time.Second<<min(failed, 5), 30*time.Second) }

func (l *listener) expired(next string) error {
	if l.t.json {
		if err := l.t.encode(gone{"expired", next}); err != nil {
			return err
		}
	}
	if l.stopExpired {
		return no("the cursor has expired: events that follow it are not kept any more. Make sure of the state that they would have brought, then go on with the oldest that is kept: -from %s", next)
	}
	l.cursor = next
	l.t.say("the cursor has expired: events that follow it are not kept any more, and are missing here. It goes on with the oldest that is kept")
	return nil
}

// page posts the events of a page. When ctx ends meanwhile, the cursor moves behind those
// that are done.
func (l *listener) page(ctx context.Context, p catchup.Page) {
	for i, body := range p.Events {
		if l.event(ctx, body) {
			continue
		}
		if i > 0 {
			short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if done, err := l.source.Page(short, l.cursor, i, 0); err == nil && len(done.Events) == i {
				l.cursor = done.Next
			}
		}
		return
	}
	l.cursor = p.Next
}

// event posts an event until it is delivered or passed over. It returns false if ctx ended
// before.
func (l *listener) event(ctx context.Context, body []byte) (done bool) {
	if ctx.Err() != nil {
		return false
	}
	var e struct {
		sentEvent
		Redacted bool `json:"redacted"`
	}
	err := json.Unmarshal(body, &e)
	if err == nil && e.ID == "" {
		err = errors.New("it has no id")
	}
	if err != nil {
		l.t.note("something in the feed that is not an event is passed over: %v", err)
		l.passedOver++
		return true
	}
	if !l.wanted(e.Type) {
		return true
	}
	about := fmt.Sprintf("%s %s/%s, version %d", e.Type, e.Object.Type, e.Object.ID, e.Version)
	if e.Redacted {
		l.passedOver++
		l.t.note("%s (%s) is passed over: it was redacted", about, e.ID)
		return true
	}
	for n := 1; ; n++ {
		a := l.post(ctx, e.ID, body, n)
		last := l.attempts > 0 && n >= l.attempts
		l.attempt(ctx, e.sentEvent, about, n, &a, last)
		switch {
		case a.good():
			l.delivered++
			return true
		case last:
			l.passedOver++
			return true
		}
		if pause(ctx, delay(n-1)) != nil {
			return false
		}
	}
}

// post makes an attempt. One that has begun ends, and whoever ends the program meanwhile
// learns what it waits for.
func (l *listener) post(ctx context.Context, id string, body []byte, attempt int) answer {
	came := make(chan answer, 1)
	go func() { came <- l.to.post(context.WithoutCancel(ctx), id, body, attempt) }()
	select {
	case a := <-came:
		return a
	case <-ctx.Done():
		l.t.note("ending: waiting for the endpoint's answer, for up to %v; Ctrl-C again does not wait", l.to.http.Timeout)
		return <-came
	}
}

func (l *listener) wanted(eventType string) bool {
	for _, one := range l.types {
		if sender.TypeMatches(one, eventType) {
			return true
		}
	}
	return false
}

func (l *listener) attempt(ctx context.Context, e sentEvent, about string, n int, a *answer, last bool) {
	if l.t.json {
		line := attempted{Kind: "attempt", Event: e, Attempt: n, StatusCode: orNull(a.status), DurationMS: a.took.Milliseconds(), Delivered: a.good()}
		if a.err != nil {
			line.Error = orNull(a.err.Error())
		}
		_ = l.t.encode(line) // as with every other print
		return
	}
	then := ""
	switch {
	case a.good() && n > 1:
		then = fmt.Sprintf(" (attempt %d)", n)
	case a.good():
	case last:
		then = fmt.Sprintf(" (attempt %d, the last: passed over)", n)
	case ctx.Err() != nil:
		then = fmt.Sprintf(" (attempt %d)", n)
	default:
		then = fmt.Sprintf(" (attempt %d, again in %v)", n, delay(n-1))
	}
	l.t.say("%s  %s  %s  → %v%s", time.Now().Format("15:04:05"), about, e.ID, a, then)
}

func (l *listener) end() error {
	if l.t.json {
		return l.t.encode(listened{"end", l.delivered, l.passedOver, l.cursor})
	}
	l.t.say("ended: %d delivered, %d passed over", l.delivered, l.passedOver)
	if l.cursor != "" {
		l.t.say("to go on from here: -from %s", l.cursor)
	}
	return nil
}
