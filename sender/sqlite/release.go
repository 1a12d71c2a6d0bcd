package sqlite

import (
	"context"

	"github.com/surehook/surehook/sender"
)

// Release implements sender.DispatchStore.
func (s *Store) Release(ctx context.Context, rs []sender.Release) error {
	if len(rs) == 0 {
		return nil
	}
	released := false
	err := s.write(ctx, func(w *work) error {
		b, err := s.newBatch(w, &sender.Batch{})
		if err == nil {
			released, err = b.release(rs)
		}
		return fail("releasing claims", err)
	})
	if err == nil && released {
		s.Wake()
	}
	return err
}

func (b *batch) release(rs []sender.Release) (released bool, err error) {
	for i := range rs {
		le := b.leases.find(rs[i].Key)
		if le == nil || le.number != rs[i].Token {
			continue
		}
		sub, err := b.known.subscription(b.work, le.key.Subscription)
		if err != nil {
			return false, err
		}
		h, err := b.headOf(le.key.Subscription)
		if err != nil {
			return false, err
		}
		was := b.leases.remove(le)
		row := waiting{key: was.key, due: b.now, number: was.number - 1, tries: was.tries - 1, first: was.first, single: was.single}
		if row.tries == 0 {
			row.first = 0
		}
		if !rs[i].Due.IsZero() {
			row.due = rs[i].Due.UnixMicro()
		}
		if err := b.wait(h, row); err != nil {
			return false, err
		}
		if sub.state == stateActive {
			h.lower(row.due)
		}
		released = true
	}
	return released, b.store()
}
