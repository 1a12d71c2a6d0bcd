package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// closeSubscriptions lets subscriptions get what is committed by now, and nothing
	// later.
	closeSubscriptions = `WITH ` + snapshotMarkNow + `,
		s AS (UPDATE surehook_subscriptions SET status = 'closing', until_snapshot = mark.snapshot, until_xid = mark.xid, until_seq = mark.seq, version = version + 1
			FROM mark WHERE status = 'active' AND `
	closeOne = closeSubscriptions + `no = $1 RETURNING no)` + wakeThem
	closeAll = closeSubscriptions + `subscriber = $1 RETURNING no)` + wakeThem
	wakeThem = ` INSERT INTO surehook_wakes (subscription) SELECT no FROM s RETURNING ` + durable

	// dropSubscriptions ends subscriptions now. Their live deliveries are swept later.
	dropSubscriptions = `WITH s AS (UPDATE surehook_subscriptions SET status = 'deleted', version = version + 1 WHERE `
	andPatterns       = ` RETURNING no), p AS (DELETE FROM surehook_patterns p USING s WHERE p.subscription = s.no)` + wakeThem
	dropOne           = dropSubscriptions + `no = $1` + andPatterns
	dropHeld          = dropSubscriptions + `subscriber = $1 AND status IN ('paused', 'disabled')` + andPatterns

	// lockToDelete waits for callers who are creating a subscription of the subscriber, or
	// fails with a conflict: see lockSubscriber.
	lockToDelete        = `SELECT no FROM surehook_subscribers WHERE id = $1 AND deleted = 0 FOR UPDATE`
	lockSubscriptionsOf = `SELECT no FROM surehook_subscriptions WHERE subscriber = $1 AND status IN ('active', 'paused', 'disabled') ORDER BY no FOR NO KEY UPDATE`
	// deleteSubscriber also destroys the secrets if no delivery can need them any more.
	deleteSubscriber = `WITH o AS (UPDATE surehook_subscribers o SET
			deleted = CASE WHEN needed THEN 1 ELSE 2 END, keyring_version = keyring_version + CASE WHEN needed THEN 0 ELSE 1 END
			FROM (SELECT EXISTS (SELECT 1 FROM surehook_subscriptions WHERE subscriber = $1 AND status <> 'swept') AS needed) n
			WHERE o.no = $1 RETURNING o.no, o.deleted, ` + durable + `)
		DELETE FROM surehook_secrets USING o WHERE subscriber = o.no AND o.deleted = 2`
)

// CloseSubscriptionTx implements sender.Store.
func (s *Store[Tx]) CloseSubscriptionTx(ctx context.Context, tx Tx, id string) error {
	w, no, present, err := s.lockSubscription(ctx, tx, id)
	if err != nil {
		return err
	}
	switch rules.Close(present) {
	case present:
		return nil
	case sender.SubscriptionClosing:
		err = w.execs(closeOne, no)
	default:
		err = w.execs(dropOne, no)
	}
	return fail("closing a subscription", err)
}

// DeleteSubscriptionTx implements sender.Store.
func (s *Store[Tx]) DeleteSubscriptionTx(ctx context.Context, tx Tx, id string) error {
	w, no, _, err := s.lockSubscription(ctx, tx, id)
	if err != nil {
		return err
	}
	return fail("deleting a subscription", w.execs(dropOne, no))
}

// DeleteSubscriberTx implements sender.Store.
func (s *Store[Tx]) DeleteSubscriberTx(ctx context.Context, tx Tx, id string) error {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "deleting a subscriber"
	var no int64
	err = w.row(lockToDelete, soughtID(id)).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	for _, statement := range []string{lockSubscriptionsOf, closeAll, dropHeld, deleteSubscriber} {
		if err == nil {
			err = w.execs(statement, no)
		}
	}
	return fail(doing, err)
}
