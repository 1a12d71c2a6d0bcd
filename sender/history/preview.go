package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/filter"
)

// MaxPreviewed is the most events whose bodies a preview reads.
const MaxPreviewed = 200

// PreviewQuery is a filter that a subscription might have.
type PreviewQuery struct {
	Subscriber string   // the subscription's owner
	EventTypes []string // as in sender.NewSubscription; none: all types
	Filter     string   // the expression
	// PayloadVersion is the date to which the subscription is pinned, as in its Settings: "" for
	// the oldest versions. Nil: the filter is asked about events as they were published, which
	// a new subscription gets in the newest version.
	PayloadVersion *string
	Events         int // how many to look at: up to MaxPreviewed; 0: 100
}

// Preview is what a filter would have done with stored events.
type Preview struct {
	Events   int       // that were looked at: the newest that the subscription would have got without a filter
	Matching int       // of these, those that the filter matches
	Redacted int       // of these, those whose bodies are gone, so that no filter matches them
	Unmade   int       // of these, those whose payload version cannot be made: they get there whatever the filter says, once it can
	Since    time.Time // when the oldest of them was published
	More     bool      // there may be older ones
}

// Preview tells how many of the last events of some types a filter would match, before any
// subscription has it. It asks in the payload version that the subscription gets. It
// passes over at most MaxExamined events of other types and of other subscribers, and
// reads each event that counts by itself. ErrInvalid: the filter, a type, the payload
// version or the number is not valid.
func (h *History) Preview(ctx context.Context, q PreviewQuery) (Preview, error) {
	f, err := q.check()
	if err != nil {
		return Preview{}, err
	}
	s := sender.Subscription{Subscriber: q.Subscriber, EventTypes: q.EventTypes}
	var p Preview
	list := EventQuery{Limit: MaxPreviewed}
	for examined := 0; ; {
		page, next, err := h.store.Events(ctx, list)
		if err != nil {
			return Preview{}, err
		}
		for i := range page {
			if p.Events == q.Events || examined == MaxExamined {
				p.More = true
				return p, nil
			}
			examined++
			if e := &page[i]; e.Subscription == "" && sender.Matches(s, e.Type, e.Subscriber, "", "") {
				if err := h.previewOne(ctx, f, q.PayloadVersion, e.ID, &p); err != nil {
					return Preview{}, err
				}
			}
		}
		if list.Cursor = next; next == "" {
			return p, nil
		}
		examined++ // a page can be empty
	}
}

// Preview is [History.Preview] for the subscriber's own subscriptions; q.Subscriber may be
// left out.
func (o *Owned) Preview(ctx context.Context, q PreviewQuery) (Preview, error) {
	if o.subscriber == "" {
		return Preview{}, errNobody
	}
	q.Subscriber = o.subscriber
	return o.all.Preview(ctx, q)
}

func (h *History) previewOne(ctx context.Context, f *filter.Filter, pinned *string, id string, p *Preview) error {
	e, err := h.store.Event(ctx, id)
	if errors.Is(err, sender.ErrNotFound) { // pruned in the meantime
		return nil
	}
	if err != nil {
		return err
	}
	p.Events++
	p.Since = e.CreatedAt
	body := e.Body
	if pinned != nil {
		body, _, err = h.convert.Body(e.Type, e.Body, *pinned)
	}
	switch {
	case e.Redacted:
		p.Redacted++
	case err != nil:
		p.Unmade++
	case f.Match(body):
		p.Matching++
	}
	return nil
}

// check reports everything that is not valid, and fills in defaults.
func (q *PreviewQuery) check() (f *filter.Filter, err error) {
	var errs []error
	f, err = filter.Parse([]byte(q.Filter))
	if err != nil {
		errs = append(errs, fmt.Errorf("%w filter: %w", sender.ErrInvalid, err))
	}
	if len(q.EventTypes) == 0 {
		q.EventTypes = []string{"*"}
	}
	for _, asked := range q.EventTypes {
		errs = append(errs, checkEventFilter(asked, sender.Object{}, time.Time{}, time.Time{})...)
	}
	if v := q.PayloadVersion; v != nil && *v != "" {
		if _, err := time.Parse(time.DateOnly, *v); err != nil {
			errs = append(errs, fmt.Errorf("%w payload version %q: it must be a date as 2026-11-25", sender.ErrInvalid, *v))
		}
	}
	if q.Events == 0 {
		q.Events = 100
	}
	if q.Events < 0 || q.Events > MaxPreviewed {
		errs = append(errs, fmt.Errorf("%w number of events %d: it must be from 1 to %d", sender.ErrInvalid, q.Events, MaxPreviewed))
	}
	errs = append(errs, ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscriber", Text: q.Subscriber})...)
	return f, errors.Join(errs...)
}
