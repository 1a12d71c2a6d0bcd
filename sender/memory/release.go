package memory

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// Release implements sender.DispatchStore.
func (s *Store) Release(ctx context.Context, rs []sender.Release) error {
	return s.inTx(ctx, func(tx *Tx) error {
		now := s.now()
		for _, r := range rs {
			d := s.deliveries[r.Key]
			if d == nil || !d.holds(r.Token) {
				continue
			}
			row := *d.live
			row.number--
			if row.tries--; row.tries == 0 && row.first.Equal(row.leased) { // else attempts before it were not counted
				row.first = time.Time{}
			}
			switch {
			case !r.Due.IsZero():
				row.due = r.Due
			case row.number == 0:
				row.due, row.returned = row.leased, true
			default:
				row.due = now
			}
			row.leased = time.Time{}
			tx.setLive(d, &row)
			tx.wake = true
		}
		return nil
	})
}
