package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// Redeliver implements sender.HistoryStore.
func (s *Store) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	return s.inTx(ctx, func(tx *Tx) error {
		d := s.deliveryByID(id)
		if d == nil {
			return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
		}
		if d.sub.deleted || d.status() == sender.StatusCancelled {
			return fmt.Errorf("%w: delivery %q", sender.ErrCancelled, id)
		}
		if d.event.redacted {
			return fmt.Errorf("%w: delivery %q", sender.ErrRedacted, id)
		}
		if published := d.event.info.CreatedAt; published.Before(notBefore) {
			return &sender.RetentionError{Published: published, NotBefore: notBefore}
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
