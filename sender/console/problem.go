package console

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/surehook/surehook/internal/dberr"
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
}

// fail answers with a page that says what was wrong. It logs the error unless the
// visitor caused it. One who has left has ended the request, so that it failed in whatever it
// was about to do.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, p := c.problem(err)
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
