package sqlite

import (
	"context"

	"github.com/surehook/surehook/sender"
)

const deleteLease = `DELETE FROM surehook_leases WHERE subscription = ? AND event = ?`

// Release implements sender.DispatchStore.
func (s *Store) Release(ctx context.Context, rs []sender.Release) error {
	return s.write(ctx, func(w *work) error {
		b := batch{work: w, store: s, now: s.now(), heads: newHeads(w)}
		return fail("releasing", b.release(rs))
	})
}

func (b *batch) release(rs []sender.Release) error {
	keys := make([]any, 0, takeLeases.columns*len(rs))
	for _, r := range rs {
		keys = append(keys, r.Key.Subscription, r.Key.Event, r.Token)
	}
	rows, err := b.takeLeases(keys)
	if err != nil {
		return err
	}
	for _, r := range rs {
		l := rows[r.Key]
		if l == nil || int64(l.number) != r.Token {
			continue
		}
		delete(rows, r.Key)
		if err := b.takeBack(l, max(b.now, micros(r.Due))); err != nil {
			return err
		}
	}
	return b.heads.store()
}

// takeBack undoes a claim, whose lease is taken away. What was the first attempt
// of a schedule is so again.
func (b *batch) takeBack(l *live, due int64) error {
	h := b.heads.by[l.subscription]
	left, err := b.left(h, l.epoch, l.event)
	if err != nil {
		return err
	}
	l.number--
	if left {
		if l.single {
			return nil
		}
		return b.end(h, l, sender.StatusCancelled, sender.ClassNone)
	}
	l.tries--
	if l.epoch < h.epoch {
		l.tries, l.stood = 0, 0
	}
	if l.tries == 0 {
		l.firstAt = 0
	}
	h.lower(b.now) // it may have kept others back: see Settings.MaxInFlight
	return b.wait(h, l, due, rankFresh)
}
