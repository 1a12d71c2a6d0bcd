package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// Redeliver implements history.Store.
func (s *Store) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	return s.inTx(ctx, func(tx *Tx) error {
		d := s.deliveryByID(id)
		if d == nil {
			return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
		}
		shown := d.summary(s.now())
		if err := rules.Redeliver(&shown, d.sub.deleted, notBefore); err != nil {
			return err
		}
		if d.live == nil {
			tx.revive(d, &live{due: s.now(), number: len(d.attempts), single: d.ended == sender.StatusDelivered})
		} else {
			tx.setLive(d, d.live.renewed(s.now()))
		}
		tx.wake = true
		return nil
	})
}
