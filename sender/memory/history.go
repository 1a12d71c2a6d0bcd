package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// Delivery implements history.Store.
func (s *Store) Delivery(ctx context.Context, id string, q history.AttemptQuery) (out sender.Delivery, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		d := s.deliveryByID(id)
		if d == nil {
			return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
		}
		out = d.summary(s.now())
		out.Body, out.Attempts = bytes.Clone(d.body()), copied(d.selected(q))
		return nil
	})
	return out, err
}

// Deliveries implements history.Store. It looks at every delivery of the
// subscription, of the event, or of all, until the page is full.
func (s *Store) Deliveries(ctx context.Context, q history.DeliveryQuery) (page []sender.Delivery, next string, err error) {
	limit, after, err := rules.Delivery(q.Limit, q.Cursor, dispatch.DeliveryKey{})
	if err != nil {
		return nil, "", err
	}
	err = s.inTx(ctx, func(*Tx) error {
		now := s.now()
		var last *delivery
		examined := 0
		for d := range s.newestFirst(q, after) {
			if matches := d.matches(&q); len(page) == limit && matches || examined == history.MaxExamined {
				next = rules.DeliveryCursor(dispatch.DeliveryKey{Event: last.event.no, Subscription: last.sub.no})
				return nil
			} else if matches {
				page = append(page, d.summary(now))
			}
			last = d
			examined++
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// newestFirst yields the deliveries of the event and the subscription that a query names,
// whatever their status, from a cursor on: by event, newest first, then by subscription,
// oldest first.
func (s *Store) newestFirst(q history.DeliveryQuery, after dispatch.DeliveryKey) iter.Seq[*delivery] {
	return func(yield func(*delivery) bool) {
		visit := func(d *delivery) bool {
			beyond := after.Event == 0 || d.event.no < after.Event || d.event.no == after.Event && d.sub.no > after.Subscription
			matches := q.Subscription == "" || d.sub.ID == q.Subscription
			return !beyond || !matches || yield(d)
		}
		switch {
		case q.Event != "":
			if e := s.eventByID[q.Event]; e != nil {
				all(e.deliveries, visit)
			}
		case q.Subscription != "":
			if sub := s.subscription[q.Subscription]; sub != nil {
				for _, d := range slices.Backward(sub.deliveries) {
					if !visit(d) {
						return
					}
				}
			}
		default:
			events := s.events
			if after.Event > 0 {
				events = events[:s.after(after.Event)]
			}
			for _, e := range slices.Backward(events) {
				if !all(e.deliveries, visit) {
					return
				}
			}
		}
	}
}

// matches tells whether a query asks for a delivery. It does not compare the event's and
// the subscription's ids.
func (d *delivery) matches(q *history.DeliveryQuery) bool {
	var last sender.Attempt
	if n := len(d.attempts); n > 0 {
		last = d.attempts[n-1]
	}
	return (q.Status == "" || d.status() == q.Status) && q.MatchesLast(last.Class, last.StatusCode) &&
		(q.Subscriber == "" || d.sub.owner.ID == q.Subscriber) && q.MatchesEvent(d.event.info)
}

func all(ds []*delivery, visit func(*delivery) bool) bool {
	for _, d := range ds {
		if !visit(d) {
			return false
		}
	}
	return true
}
