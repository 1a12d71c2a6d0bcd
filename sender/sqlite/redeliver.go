package sqlite

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
)

const (
	restartInFlight = `UPDATE surehook_deliveries SET tries = 1, first_at = claimed_at WHERE event = ? AND subscription = ?`
	restartWaiting  = `UPDATE surehook_deliveries SET due = ?, tries = 0, first_at = 0 WHERE event = ? AND subscription = ?`
	deleteEnd       = `DELETE FROM surehook_ended WHERE event = ? AND subscription = ?`
	// Numbers go on from the attempts.
	reviveDelivery = `INSERT INTO surehook_deliveries (event, subscription, due, number, tries, first_at, claimed_at, single, attempted)
		SELECT ?1, ?2, ?3, coalesce(max(number), 0), 0, 0, 0, ?4, 1 FROM surehook_attempts WHERE event = ?1 AND subscription = ?2`
)

// Redeliver implements sender.HistoryStore.
func (s *Store) Redeliver(ctx context.Context, id string) error {
	err := s.write(ctx, func(w *work) error {
		k, err := w.keyOf(id)
		if err != nil {
			return err
		}
		now := s.now()
		d, err := w.delivery(k, now)
		if err != nil {
			return err
		}
		switch {
		case d.deleted || d.Status == sender.StatusCancelled:
			return fmt.Errorf("%w: its subscription %q was deleted", sender.ErrCancelled, d.Subscription)
		case d.live != nil && d.live.claimedAt != 0: // the attempt in hand becomes the first of the new schedule
			return w.execs(restartInFlight, k.Event, k.Subscription)
		case d.live != nil:
			err = w.execs(restartWaiting, now, k.Event, k.Subscription)
		default:
			if err = w.execs(deleteEnd, k.Event, k.Subscription); err == nil {
				err = w.execs(reviveDelivery, k.Event, k.Subscription, now, d.Status == sender.StatusDelivered)
			}
		}
		if err != nil {
			return err
		}
		return w.wake(k.Subscription, now)
	})
	if err != nil {
		return aboutDelivery(id, err)
	}
	s.Wake()
	return nil
}
