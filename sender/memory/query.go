package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/surehook/surehook/sender"
)

func (e *event) stored() sender.StoredEvent {
	return sender.StoredEvent{EventInfo: e.info, Version: e.version, Redacted: e.redacted, Subscriber: e.to.subscriber, Subscription: e.to.subscription}
}

// Event implements sender.QueryStore.
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

// Events implements sender.QueryStore.
func (s *Store) Events(ctx context.Context, q sender.EventQuery) (page []sender.StoredEvent, next string, err error) {
	limit, before, err := place(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	err = s.inTx(ctx, func(*Tx) error {
		for examined, e := range backward(s.events[:s.after(before-1)]) {
			matches := q.Matches(e.info, e.to.subscriber)
			if matches && len(page) == limit || examined == sender.MaxExamined {
				next = numberCursor(e.no + 1)
				return nil
			}
			if matches {
				page = append(page, e.stored())
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

// Subscriptions implements sender.QueryStore.
func (s *Store) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) (page []sender.Subscription, next string, err error) {
	limit, after, err := place(q.Limit, q.Cursor, 0)
	if err != nil {
		return nil, "", err
	}
	err = s.inTx(ctx, func(*Tx) error {
		for examined, sub := range s.subscriptions[min(after, int64(len(s.subscriptions))):] {
			asked := !sub.deleted && q.Matches(sub.Subscription)
			if asked && len(page) == limit || examined == sender.MaxExamined {
				next = numberCursor(sub.no - 1)
				return nil
			}
			if asked {
				page = append(page, sub.shown())
			}
		}
		return nil
	})
	return page, next, err
}

// place is the limit of a page, and the number from which on it is read: first, if
// there is no cursor.
func place(limit int, cursor string, first int64) (n int, from int64, err error) {
	if n = cmp.Or(limit, pageDefault); n < 1 || n > pageMax {
		return 0, 0, fmt.Errorf("%w limit %d: it must be from 1 to %d", sender.ErrInvalid, limit, pageMax)
	}
	if cursor == "" {
		return n, first, nil
	}
	b, err := cursors.DecodeString(cursor)
	if err == nil {
		from, err = strconv.ParseInt(string(b), 10, 64)
	}
	if err != nil || from < 1 || numberCursor(from) != cursor {
		return 0, 0, fmt.Errorf("%w cursor: it must be one that a page before came with", sender.ErrInvalid)
	}
	return n, from, nil
}

func numberCursor(no int64) string {
	return cursors.EncodeToString(strconv.AppendInt(nil, no, 10))
}
