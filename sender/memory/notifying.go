package memory

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// notifying is how far a notice is on its way to a notifier.
type notifying struct {
	due   time.Time
	tries int
}

// Notices implements history.Store.
func (s *Store) Notices(ctx context.Context, q history.NoticeQuery) (page []sender.Notice, next string, err error) {
	limit, before, err := rules.Number(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	err = s.inTx(ctx, func(*Tx) error {
		last := before
		for _, n := range slices.Backward(s.notices) {
			if n.no >= before || !q.Matches(&n.Notice) {
				continue
			}
			if len(page) == limit {
				next = rules.NumberCursor(last)
				return nil
			}
			page, last = append(page, n.Notice), n.no
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// AcknowledgeNotice implements history.Store.
func (s *Store) AcknowledgeNotice(ctx context.Context, id, subscriber string) (out sender.Notice, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		n := s.notice(id)
		if n == nil || subscriber != "" && n.Subscriber != subscriber {
			return fmt.Errorf("%w: notice %q", sender.ErrNotFound, id)
		}
		if n.AcknowledgedAt.IsZero() {
			set(tx, &n.AcknowledgedAt, s.now())
		}
		out = n.Notice
		return nil
	})
	return out, err
}

// notice returns nil if there is none.
func (s *Store) notice(id string) *notice {
	for _, n := range s.notices {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// ClaimNotices implements dispatch.Store.
func (s *Store) ClaimNotices(ctx context.Context, lease time.Duration, limit int) (claimed []dispatch.ClaimedNotice, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		now := s.now()
		due := filter(s.notices, func(n *notice) bool {
			return n.NotifiedAt.IsZero() && n.AcknowledgedAt.IsZero() && !s.dueSince(n).After(now)
		})
		slices.SortStableFunc(due, func(a, b *notice) int { return s.dueSince(a).Compare(s.dueSince(b)) })
		for _, n := range due[:min(limit, len(due))] {
			at := s.notifying[n.ID]
			at.due, at.tries = now.Add(lease), at.tries+1
			setKey(tx, s.notifying, n.ID, at)
			claimed = append(claimed, dispatch.ClaimedNotice{Notice: n.Notice, Tries: at.tries})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// dueSince is from when on a notice can be claimed.
func (s *Store) dueSince(n *notice) time.Time {
	if at, ok := s.notifying[n.ID]; ok {
		return at.due
	}
	return n.CreatedAt
}

// SettleNotice implements dispatch.Store.
func (s *Store) SettleNotice(ctx context.Context, id string, again time.Duration) error {
	return s.inTx(ctx, func(tx *Tx) error {
		n := s.notice(id)
		switch {
		case n == nil || !n.NotifiedAt.IsZero():
		case again == 0:
			set(tx, &n.NotifiedAt, s.now())
		default:
			at := s.notifying[id]
			at.due = s.now().Add(again)
			setKey(tx, s.notifying, id, at)
		}
		return nil
	})
}
