package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

var errNoPage = errors.New("sender/console: there is no such page")

// badInput says what is wrong with a form or a query.
type badInput string

func (b badInput) Error() string { return string(b) }

// conflict says why something cannot be done now.
type conflict string

func (c conflict) Error() string { return string(c) }

// partly is the error of an action on several things: some tells whether it has changed any.
type partly struct {
	error
	some bool
}

func (p partly) Unwrap() error { return p.error }

// problem is a page that says what went wrong.
type problem struct {
	Heading, Message string
	Ours             bool
	Made             time.Time // when the id was made of what is not there; zero: it does not tell
	Ways             []crumb   // where to go on
}

// absent is what the page of a thing says that is not there, by the first part of its path: what
// the thing is, how long it is kept, and where to go on.
var absent = map[string]struct {
	one, kept string
	ways      []crumb
}{
	"deliveries": {
		"delivery", "A delivery that has ended is kept for a time, and a dead letter for longer: see the service's retention. A notice of it stays until somebody acknowledges it.",
		[]crumb{{"Dead letters", "dead-letters"}, {"Deliveries", "deliveries"}, {"Notices", "notices"}},
	},
	"subscriptions": {
		"subscription", "One that was deleted is known for a time after the last record of it is gone: see the service's retention. A notice of it stays until somebody acknowledges it.",
		[]crumb{{"Subscriptions", "subscriptions"}, {"Notices", "notices"}},
	},
	"events":    {"event", "An event is kept for a time, and for longer while one of its deliveries is: see the service's retention.", []crumb{{"Events", "events"}}},
	"replays":   {"replay", "One that has ended is kept for as long as events are: see the service's retention.", []crumb{{"Replays", "replays"}}},
	"notices":   {"notice", "One that was acknowledged is kept for a time: see the service's retention.", []crumb{{"Notices", "notices?all=1"}}},
	"customers": {"customer", "One that was deleted is known while there are records of its deliveries.", []crumb{{"Deliveries", "deliveries"}}},
	"jobs":      {"job", "One that has ended is kept for a time.", []crumb{{"Jobs", "jobs"}}},
}

// explained says of a thing that is not there what it was.
func (p problem) explained(r *http.Request) problem {
	_, path, _ := strings.Cut(r.Pattern, "/")
	kind, _, _ := strings.Cut(path, "/")
	id, a := r.PathValue("id"), absent[kind]
	if id == "" || a.one == "" {
		return p
	}
	p.Message = "There is no " + a.one + " " + id + ": it was never there, or it is not kept any more. " + a.kept
	p.Ways = a.ways
	if kind == "deliveries" { // its event's id, and a number
		id, _, _ = strings.Cut(strings.TrimPrefix(id, "dlv_"), "_")
	}
	p.Made = newid.Time(id)
	return p
}

// fail answers with a page that says what was wrong. It logs the error unless the
// visitor caused it. One who has left has ended the request, so that it failed in whatever it
// was about to do.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, p := c.problem(err)
	if status == http.StatusNotFound {
		p = p.explained(r)
	}
	if status >= http.StatusInternalServerError && !left(r.Context()) {
		c.cfg.Logger.LogAttrs(r.Context(), slog.LevelError, "console: a request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	c.write(w, r, status, "problem", c.layout(r, view{title: p.Heading, data: p, static: true}))
}

// left tells whether the visitor has left before the answer.
func left(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// problem says how an error is answered.
func (c *Console) problem(err error) (int, problem) {
	var bad badInput
	var now conflict
	plain := strings.NewReplacer("sender: ", "", "jobs: ", "").Replace(err.Error())
	switch {
	case errors.Is(err, errNoPage), errors.Is(err, sender.ErrNotFound), errors.Is(err, jobs.ErrNotFound):
		return http.StatusNotFound, problem{Heading: "Not found", Message: "There is nothing here: it was never there, or it is not kept any more."}
	case errors.As(err, &bad), errors.Is(err, sender.ErrInvalid), errors.Is(err, jobs.ErrInvalid):
		return http.StatusUnprocessableEntity, problem{Heading: "That cannot be", Message: plain}
	case errors.As(err, &now), errors.Is(err, sender.ErrStatus), errors.Is(err, sender.ErrCancelled), errors.Is(err, sender.ErrRedacted),
		errors.Is(err, sender.ErrRetention), errors.Is(err, sender.ErrConflict), errors.Is(err, jobs.ErrFinished):
		return http.StatusConflict, problem{Heading: "That cannot be done now", Message: plain}
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, problem{Heading: "That took too long", Ours: true,
			Message: "It was given up after " + c.cfg.Timeout.String() + ". Ask for less, or try again."}
	case dberr.Classify(err) != dberr.Other:
		return http.StatusServiceUnavailable, problem{Heading: "The database does not answer", Ours: true,
			Message: "Nothing is lost: what was committed is delivered once it is back. Try again in a moment; the log says more."}
	}
	return http.StatusInternalServerError, problem{Heading: "That did not work", Message: "Something went wrong here. The log says what.", Ours: true}
}
