package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	selectKey = `SELECT e.id, e.version, e.subscription, k.hash FROM surehook_keys k JOIN surehook_events e ON e.seq = k.event
		WHERE k.scope = ? AND k.key = ?`
	insertKey = `INSERT INTO surehook_keys (scope, key, hash, event) VALUES (?, ?, ?, ?)`

	assignVersion = `INSERT INTO surehook_objects AS o (type, id, version) VALUES (?, ?, (SELECT version FROM surehook_floor) + 1)
		ON CONFLICT (type, id) DO UPDATE SET version = max(o.version + 1, excluded.version) WHERE o.version < ? RETURNING version`
	raiseVersion = `INSERT INTO surehook_objects AS o (type, id, version) VALUES (?, ?, ?)
		ON CONFLICT (type, id) DO UPDATE SET version = excluded.version WHERE excluded.version > o.version`
	selectVersion = `SELECT version FROM surehook_objects WHERE type = ? AND id = ?`

	insertEvent = `INSERT INTO surehook_events (id, type, object_type, object_id, version, subscriber, subscription, created_at, notice, body, url, traceparent, about)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), coalesce((SELECT no FROM surehook_subscriptions WHERE id = ?), 0)) ON CONFLICT (id) DO NOTHING`

	selectSubscriberNo   = `SELECT no FROM surehook_subscribers WHERE id = ? AND deleted = 0`
	selectSubscriptionNo = `SELECT no FROM surehook_subscriptions WHERE id = ? AND subscriber = ? AND status IN ('active', 'paused', 'disabled')`
)

// PublishTx implements sender.Outbox. It checks PRAGMA synchronous on tx's
// connection each time.
func (s *Store) PublishTx(ctx context.Context, tx *sql.Tx, drafts []sender.Draft) ([]sender.Ref, error) {
	w, err := s.in(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := s.keeps(w); err != nil {
		return nil, err
	}
	refs := make([]sender.Ref, len(drafts))
	for i := range drafts {
		if refs[i], err = w.publish(&drafts[i], s.now()); err != nil {
			return nil, err
		}
	}
	s.published.Store(true)
	return refs, nil
}

// in starts the work of a method that writes in the caller's transaction.
func (s *Store) in(ctx context.Context, tx *sql.Tx) (*work, error) {
	w, err := s.reads(ctx, tx)
	if err == nil {
		s.othersWroteAt.Store(s.now())
	}
	return w, err
}

// reads starts the work of a method that only reads.
func (s *Store) reads(ctx context.Context, tx *sql.Tx) (*work, error) {
	if tx == nil {
		return nil, fmt.Errorf("%w transaction: it is nil", sender.ErrInvalid)
	}
	if err := sqlitetx.Open(ctx, tx); err != nil { // else an event would be stored without the caller's change
		return nil, fail("joining the caller's transaction", err)
	}
	// Preparing them here could wait for the connection that tx holds.
	var prepared map[string]*sql.Stmt
	if p := s.prepared.Load(); p != nil {
		prepared = *p
	}
	return s.inCallersTx(ctx, tx, prepared), nil
}

func (w *work) publish(d *sender.Draft, now int64) (sender.Ref, error) {
	if d.Key != "" || d.Subscriber != "" {
		// A deferred transaction that reads first may find that it may not write
		// any more.
		if err := w.execs(lockQuery); err != nil {
			return sender.Ref{}, fail("publishing", err)
		}
	}
	if d.Key != "" {
		if ref, found, err := w.firstOfKey(d); err != nil || found {
			return ref, err
		}
	}
	subscriber, err := w.subscriberOf(d)
	if errors.Is(err, sender.ErrNotFound) {
		return rules.NoSubscriber(d)
	}
	if err != nil {
		return sender.Ref{}, err
	}
	subscription, err := w.subscriptionOf(d, subscriber)
	if err != nil {
		return sender.Ref{}, err
	}
	version, err := w.version(d)
	if err != nil {
		return sender.Ref{}, err
	}
	res, err := w.exec(insertEvent, d.ID, d.Type, d.Object.Type, d.Object.ID, version, subscriber, subscription, now, d.Notice, d.Body(version), d.URL, d.Traceparent, d.About)
	if err != nil {
		return sender.Ref{}, fail("storing an event", err)
	}
	if n, err := res.RowsAffected(); err != nil {
		return sender.Ref{}, fail("storing an event", err)
	} else if n == 0 {
		return sender.Ref{}, fmt.Errorf("%w: event %q", sender.ErrExists, d.ID)
	}
	if d.Key != "" {
		seq, err := res.LastInsertId()
		if err == nil {
			err = w.execs(insertKey, d.KeyScope, d.Key, d.KeyHash[:], seq)
		}
		if err != nil {
			return sender.Ref{}, fail("storing an idempotency key", err)
		}
	}
	return sender.Ref{ID: d.ID, Version: version, Delivery: onlyDelivery(d.ID, subscription)}, nil
}

// onlyDelivery returns the id of the delivery of an event that is addressed to one
// subscription; "" for any other event.
func onlyDelivery(event string, subscription int64) string {
	if subscription == 0 {
		return ""
	}
	return deliveryID(event, subscription)
}

func (w *work) firstOfKey(d *sender.Draft) (ref sender.Ref, found bool, err error) {
	var hash []byte
	var subscription int64
	err = w.row(selectKey, d.KeyScope, d.Key).Scan(&ref.ID, &ref.Version, &subscription, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sender.Ref{}, false, nil
	case err != nil:
		return sender.Ref{}, false, fail("looking for an idempotency key", err)
	}
	ref.Delivery = onlyDelivery(ref.ID, subscription)
	ref, err = rules.Duplicate(d, ref, hash)
	return ref, err == nil, err
}

// subscriberOf returns 0 if a draft names none.
func (w *work) subscriberOf(d *sender.Draft) (int64, error) {
	if d.Subscriber == "" {
		return 0, nil
	}
	return w.subscriberNo(d.Subscriber)
}

// subscriptionOf returns 0 if a draft names none.
func (w *work) subscriptionOf(d *sender.Draft, subscriber int64) (subscription int64, err error) {
	if d.Subscription == "" {
		return 0, nil
	}
	err = w.row(selectSubscriptionNo, d.Subscription, subscriber).Scan(&subscription)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: subscription %q of subscriber %q", sender.ErrNotFound, d.Subscription, d.Subscriber)
	}
	return subscription, fail("looking for a subscription", err)
}

func (w *work) subscriberNo(id string) (no int64, err error) {
	err = w.row(selectSubscriberNo, id).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	return no, fail("looking for a subscriber", err)
}

// version raises the object's version to the draft's, or assigns the next one.
func (w *work) version(d *sender.Draft) (version int64, err error) {
	given := d.Version
	if given == 0 {
		err = w.row(assignVersion, d.Object.Type, d.Object.ID, int64(ident.MaxVersion)).Scan(&version)
		if !errors.Is(err, sql.ErrNoRows) {
			return version, fail("assigning a version", err)
		}
		given = ident.MaxVersion // there is no next one
	}
	res, err := w.exec(raiseVersion, d.Object.Type, d.Object.ID, given)
	if err != nil {
		return 0, fail("raising a version", err)
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return given, fail("raising a version", err)
	}
	refused := &sender.VersionError{Object: d.Object, Given: given}
	if err := w.row(selectVersion, d.Object.Type, d.Object.ID).Scan(&refused.Stored); err != nil {
		return 0, fail("reading a version", err)
	}
	return 0, refused
}
