package sqlite

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// CloseSubscriptionTx implements sender.Store.
func (s *Store) CloseSubscriptionTx(ctx context.Context, tx *sql.Tx, id string) error {
	w, no, n, err := s.subscriptionIn(ctx, tx, id)
	if err != nil {
		return err
	}
	const doing = "closing a subscription"
	switch rules.Close(n.Status) {
	case n.Status:
		return nil
	case sender.SubscriptionClosing:
		err = w.close(no)
	default:
		err = w.drop(no)
	}
	if err == nil {
		err = w.changed()
	}
	return fail(doing, err)
}

// close lets a subscription get the events that are there, and no later ones.
func (w *work) close(no int64) error {
	err := w.execs(`UPDATE surehook_subscriptions SET status = ?, until = (`+lastEvent+`) WHERE no = ?`, statusClosing, no)
	if err != nil {
		return err
	}
	return w.execs(`UPDATE surehook_patterns SET until = (`+lastEvent+`) WHERE subscription = ?`, no)
}

// DeleteSubscriptionTx implements sender.Store.
func (s *Store) DeleteSubscriptionTx(ctx context.Context, tx *sql.Tx, id string) error {
	w, no, _, err := s.subscriptionIn(ctx, tx, id)
	if err != nil {
		return err
	}
	if err = w.drop(no); err == nil {
		err = w.changed()
	}
	return fail("deleting a subscription", err)
}

// drop ends a subscription now. Its live deliveries are swept later.
func (w *work) drop(no int64) error {
	if err := w.execs(`UPDATE surehook_subscriptions SET status = ? WHERE no = ?`, statusDeleted, no); err != nil {
		return err
	}
	if err := w.execs(closeHead, no); err != nil {
		return err
	}
	return w.execs(deletePattern, no)
}

// DeleteSubscriberTx implements sender.Store.
func (s *Store) DeleteSubscriberTx(ctx context.Context, tx *sql.Tx, id string) error {
	w, err := s.in(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "deleting a subscriber"
	if err := w.execs(lockQuery); err != nil {
		return fail(doing, err)
	}
	no, err := w.subscriberNo(id)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		statuses string
		end      func(no int64) error
	}{{`'active'`, w.close}, {`'paused', 'disabled'`, w.drop}} {
		subscriptions, err := w.numbers(`SELECT no FROM surehook_subscriptions WHERE subscriber = ? AND status IN (`+of.statuses+`)`, no)
		if err != nil {
			return fail(doing, err)
		}
		for _, subscription := range subscriptions {
			if err := of.end(subscription); err != nil {
				return fail(doing, err)
			}
		}
	}
	if err := w.execs(`UPDATE surehook_subscribers SET deleted = 1 WHERE no = ?`, no); err != nil {
		return fail(doing, err)
	}
	if err := w.forget(); err != nil { // it may have had no subscription
		return fail(doing, err)
	}
	return fail(doing, w.changed())
}
