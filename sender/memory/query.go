package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

func (e *event) stored() sender.StoredEvent {
	return sender.StoredEvent{EventInfo: e.info, Version: e.version, Redacted: e.redacted, Subscriber: e.to.subscriber, Subscription: e.to.subscription}
}

// Event implements history.Store and feed.Store.
func (s *Store) Event(ctx context.Context, id string) (out sender.StoredEvent, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		e := s.eventByID[id]
		if e == nil {
			return fmt.Errorf("%w: event %q", sender.ErrNotFound, id)
		}
		out = e.stored()
		out.Body = bytes.Clone(e.body)
		return nil
	})
	return out, err
}

// Events implements history.Store.
func (s *Store) Events(ctx context.Context, q history.EventQuery) (page []sender.StoredEvent, next string, err error) {
	limit, before, err := rules.Number(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	err = s.inTx(ctx, func(*Tx) error {
		bound := rules.NewBytes(int64(q.Bytes))
		for examined, e := range backward(s.events[:s.after(before-1)]) {
			matches := q.Matches(e.info, e.to.subscriber)
			if examined == history.MaxExamined || matches && (len(page) == limit || !bound.Take(e.no, int64(len(e.body)))) {
				next = rules.NumberCursor(e.no + 1)
				return nil
			}
			if matches {
				stored := e.stored()
				if q.Bytes > 0 {
					stored.Body = bytes.Clone(e.body)
				}
				page = append(page, stored)
			}
		}
		return nil
	})
	return page, next, err
}

// backward yields what is in a list, last first, and how many were before it.
func backward[T any](list []T) func(yield func(int, T) bool) {
	return func(yield func(int, T) bool) {
		for i, x := range slices.Backward(list) {
			if !yield(len(list)-1-i, x) {
				return
			}
		}
	}
}

// Subscriptions implements history.Store.
func (s *Store) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) (page []sender.Subscription, next string, err error) {
	if q.Failing {
		return s.failing(ctx, q)
	}
	limit, after, err := rules.Number(q.Limit, q.Cursor, 0)
	if err != nil {
		return nil, "", err
	}
	err = s.inTx(ctx, func(*Tx) error {
		for examined, sub := range s.subscriptions[min(after, int64(len(s.subscriptions))):] {
			matches := !sub.deleted && rules.Listed(&q, sub.Subscription)
			if matches && len(page) == limit || examined == history.MaxExamined {
				next = rules.NumberCursor(sub.no - 1)
				return nil
			}
			if matches {
				page = append(page, sub.shown())
			}
		}
		return nil
	})
	return page, next, err
}

// failing lists the subscriptions that fail, those that have failed for longest first.
func (s *Store) failing(ctx context.Context, q sender.SubscriptionQuery) (page []sender.Subscription, next string, err error) {
	limit, since, after, err := rules.Failing(q.Limit, q.Cursor)
	if err != nil {
		return nil, "", err
	}
	err = s.inTx(ctx, func(*Tx) error {
		var all []*subscription
		for _, sub := range s.subscriptions {
			at := sub.failingSince()
			if !sub.deleted && rules.Listed(&q, sub.Subscription) && (q.Cursor == "" || at > since || at == since && sub.no > after) {
				all = append(all, sub)
			}
		}
		slices.SortFunc(all, func(a, b *subscription) int {
			return cmp.Or(cmp.Compare(a.failingSince(), b.failingSince()), cmp.Compare(a.no, b.no))
		})
		for i, sub := range all {
			if i == limit {
				last := all[i-1]
				next = rules.FailingCursor(last.failingSince(), last.no)
				break
			}
			page = append(page, sub.shown())
		}
		return nil
	})
	return page, next, err
}

// failingSince is in microseconds, as the cursor has it: an order by a finer clock would pass
// subscriptions over between two pages.
func (sub *subscription) failingSince() int64 { return sub.Health.FailingSince.UnixMicro() }
