package memory

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Redeliver implements sender.HistoryStore.
func (s *Store) Redeliver(ctx context.Context, id string) error {
	return s.inTx(ctx, func(tx *Tx) error {
		d := s.deliveryByID(id)
		if d == nil {
			return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
		}
		if d.sub.deleted || d.ended == sender.StatusCancelled {
			return fmt.Errorf("%w: delivery %q", sender.ErrCancelled, id)
		}
		row := live{due: s.now()}
		switch {
		case d.live == nil:
			row.number = len(d.attempts)
			row.single = d.status() == sender.StatusDelivered
			set(tx, &d.ended, "")
		case d.live.leased.IsZero():
			row.number, row.single = d.live.number, d.live.single
		default: // the attempt in hand becomes the first of the new schedule
			row = *d.live
			row.tries, row.first = 1, d.live.leased
		}
		tx.setLive(d, &row)
		tx.wake = true
		return nil
	})
}
