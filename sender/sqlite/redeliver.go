package sqlite

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
)

const (
	restartLease   = `UPDATE surehook_leases SET tries = 1, first_at = claimed_at WHERE subscription = ? AND event = ?`
	restartWaiting = `UPDATE surehook_waiting SET due = ?, tries = 0, first_at = 0 WHERE subscription = ? AND event = ?`
	// What is pending is claimed in the order of the events.
	pendingToWaiting = `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, single)
		SELECT subscription, event, ?1, 0, 0, 0, 0 FROM surehook_pending WHERE subscription = ?2 AND event = ?3`
	deleteEnd = `DELETE FROM surehook_ended WHERE subscription = ? AND event = ?`
	// Numbers go on from the attempts.
	reviveDelivery = `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, single)
		SELECT ?1, ?2, ?3, coalesce(max(number), 0), 0, 0, ?4 FROM surehook_attempts WHERE subscription = ?1 AND event = ?2`
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
			return w.execs(restartLease, k.Subscription, k.Event)
		case d.live != nil:
			if err = w.execs(restartWaiting, now, k.Subscription, k.Event); err == nil {
				err = w.leavePending(k, now)
			}
		default:
			if err = w.execs(deleteEnd, k.Subscription, k.Event); err == nil {
				err = w.execs(reviveDelivery, k.Subscription, k.Event, now, d.Status == sender.StatusDelivered)
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

// leavePending makes a delivery that is pending, if it is, one that waits.
func (w *work) leavePending(k sender.DeliveryKey, due int64) error {
	if err := w.execs(pendingToWaiting, due, k.Subscription, k.Event); err != nil {
		return err
	}
	return w.execs(deletePendingOne, k.Subscription, k.Event)
}
