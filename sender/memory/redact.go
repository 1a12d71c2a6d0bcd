package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// Redact implements history.Store.
func (s *Store) Redact(ctx context.Context, p history.RedactParams) (out history.Redacted, err error) {
	from, upTo, err := rules.RedactPass(&p)
	if err != nil {
		return out, err
	}
	err = s.inTx(ctx, func(tx *Tx) error {
		if p.Subscriber != "" && s.subscriber[p.Subscriber] == nil {
			return fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, p.Subscriber)
		}
		if p.Cursor == "" {
			upTo = s.last
		}
		var found []*event
		for _, e := range s.events[s.after(from):s.after(upTo)] {
			if len(found) == p.Limit {
				out.Cursor = rules.RedactCursor(from, upTo)
				break
			}
			from = e.no
			named := e.info.Object == p.Object
			if p.Subscriber != "" {
				named = e.to.subscriber == p.Subscriber
			}
			if named {
				found = append(found, e)
			}
		}
		for _, e := range slices.Backward(found) { // so that what is behind in a line need not come out before it ends
			if !e.redacted {
				out.Events++
				out.Deliveries += tx.redact(e)
			}
		}
		return nil
	})
	if err != nil {
		return history.Redacted{}, err
	}
	return out, nil
}

// redact returns how many deliveries it has ended.
func (tx *Tx) redact(e *event) (cancelled int) {
	set(tx, &e.redacted, true)
	set(tx, &e.body, nil)
	for _, d := range e.deliveries {
		attempts := slices.Clone(d.attempts)
		for i := range attempts {
			attempts[i].Snippet, attempts[i].Headers = nil, ""
		}
		set(tx, &d.attempts, attempts)
		set(tx, &d.kept, nil)
		if d.live != nil && !d.live.dropped {
			if d.live.leased.IsZero() {
				cancelled++
			}
			tx.resume(d, false, tx.store.now())
		}
	}
	return cancelled
}
