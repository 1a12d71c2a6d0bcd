package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pagesize"
	"github.com/surehook/surehook/sender"
)

// Bounds of the time that one call asks about.
const (
	maxRollups     = 7 * 24 * time.Hour
	maxHourRollups = 35 * 24 * time.Hour
)

// check refuses a query that is not of the form that is asked for.
func (q *DeliveryQuery) check() error {
	errs := append(checkEventFilter(q.EventType, q.Object, q.Since, q.Until),
		ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "event", Text: q.Event}, ident.Text{Name: "subscription", Text: q.Subscription}, ident.Text{Name: "subscriber", Text: q.Subscriber})...)
	switch q.Status {
	case "", sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusHeld, sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusCancelled, sender.StatusSuperseded:
	default:
		errs = append(errs, fmt.Errorf("%w status %q: it must be pending, awaiting_retry, held, delivered, dead_lettered, cancelled or superseded", sender.ErrInvalid, q.Status))
	}
	switch q.Class {
	case sender.ClassNone, sender.ClassDNS, sender.ClassConnect, sender.ClassTLS, sender.ClassTimeout, sender.ClassReset, sender.ClassStatus, sender.ClassRedirect, sender.ClassBlocked, sender.ClassInterrupted, sender.ClassProtocol:
	default:
		errs = append(errs, fmt.Errorf("%w error class %q: it must be dns, connect, tls, timeout, reset, status, redirect, blocked, interrupted or protocol", sender.ErrInvalid, q.Class))
	}
	if q.StatusCode != 0 && (q.StatusCode < 100 || q.StatusCode > 999) {
		errs = append(errs, fmt.Errorf("%w status code %d: it must be an HTTP status of three digits, or 0 for any", sender.ErrInvalid, q.StatusCode))
	}
	var err error
	if q.Limit, err = pagesize.Of(sender.ErrInvalid, q.Limit); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Events lists events, the newest first, and returns the cursor of the following page, ""
// after the last. They come without bodies unless EventQuery.Bytes asks for these. A page can
// be short, or empty, before the last: see MaxExamined. ErrInvalid: a filter, the limit, the
// bound of bytes or the cursor is malformed.
//
// An event is listed from its commit on, before it is expanded too. So the pages together have
// every event that was committed before the first of them was asked for, and is kept. One that
// was committed since may be missing.
func (h *History) Events(ctx context.Context, q EventQuery) ([]sender.StoredEvent, string, error) {
	errs := append(checkEventFilter(q.Type, q.Object, q.Since, q.Until), ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscriber", Text: q.Subscriber})...)
	if q.Bytes < 0 {
		errs = append(errs, fmt.Errorf("%w bound of %d bytes: it must be positive, or 0 for events without bodies", sender.ErrInvalid, q.Bytes))
	}
	limit, err := pagesize.Of(sender.ErrInvalid, q.Limit)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, "", err
	}
	q.Limit = limit
	return h.store.Events(ctx, q)
}

// Event returns an event with its body, or ErrNotFound. Its deliveries are those
// that Deliveries lists of it.
func (h *History) Event(ctx context.Context, id string) (sender.StoredEvent, error) {
	return h.store.Event(ctx, id)
}

// Subscriptions lists subscriptions that are not deleted, oldest first unless the query
// says otherwise, and returns the cursor of the following page, "" after the last. A page
// can be short, or empty, before that: see MaxExamined. ErrInvalid: a filter, the limit or
// the cursor is malformed.
func (h *History) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
	limit, err := pagesize.Of(sender.ErrInvalid, q.Limit)
	switch q.Status {
	case "", sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled, sender.SubscriptionClosing:
	default:
		err = errors.Join(err, fmt.Errorf("%w status %q: it must be active, paused, disabled or closing", sender.ErrInvalid, q.Status))
	}
	if err := errors.Join(append(ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscriber", Text: q.Subscriber}, ident.Text{Name: "id", Text: q.ID}, ident.Text{Name: "URL", Text: q.URL}), err)...); err != nil {
		return nil, "", err
	}
	q.Limit = limit
	return h.store.Subscriptions(ctx, q)
}

// Counts returns the totals, from rows that are kept up with every change: it costs the
// same however large the backlog is.
func (h *History) Counts(ctx context.Context) (Counts, error) { return h.store.Counts(ctx) }

// Rollups returns those of the minutes that began at from or later and before to, oldest
// first. Minutes in which nothing happened are left out. On PostgreSQL what other
// processes count is among them a second later. ErrInvalid: to is not after from, or more
// than seven days after it.
func (h *History) Rollups(ctx context.Context, from, to time.Time) ([]Rollup, error) {
	if err := checkSpan(from, to, maxRollups); err != nil {
		return nil, err
	}
	return h.store.Rollups(ctx, from, to)
}

// HourRollups returns a Rollup for each hour (UTC) that began at from or later and before
// to, oldest first: those of its minutes merged, with the hour's beginning as Minute.
// Hours in which nothing happened are left out. It is for long spans: it reads a row for
// each hour, and for each minute of the last one or two hours. ErrInvalid: to is not after
// from, or more than 35 days after it.
func (h *History) HourRollups(ctx context.Context, from, to time.Time) ([]Rollup, error) {
	if err := checkSpan(from, to, maxHourRollups); err != nil {
		return nil, err
	}
	return h.store.HourRollups(ctx, nextHour(from), nextHour(to))
}

// nextHour is the first hour that begins at a time or later.
func nextHour(t time.Time) time.Time {
	hour := t.UTC().Truncate(time.Hour)
	if hour.Before(t) {
		return hour.Add(time.Hour)
	}
	return hour
}

func checkSpan(from, to time.Time, longest time.Duration) error {
	if d := to.Sub(from); d <= 0 || d > longest {
		return fmt.Errorf("%w times: from %s to %s: to must be the later one, by at most %v", sender.ErrInvalid,
			from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), longest)
	}
	return nil
}

// Why explains the state of a delivery, or returns ErrNotFound.
func (h *History) Why(ctx context.Context, id string) (Why, error) {
	f, err := h.store.Facts(ctx, id)
	if err != nil {
		return Why{}, err
	}
	return h.why(ctx, &f)
}
