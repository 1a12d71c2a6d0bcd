package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
)

const (
	// snapshotMarkNow is a mark of now: see surehook_subscriptions. Events that the
	// transaction publishes later get a higher seq.
	snapshotMarkNow = `mark AS MATERIALIZED (SELECT pg_current_snapshot() AS snapshot, pg_current_xact_id() AS xid, nextval('surehook_outbox_seq_seq'::regclass) AS seq)`

	// lockSubscriber keeps the subscriber from being deleted until the end of the
	// transaction, so that its deletion misses no subscription. It writes the row: a deletion
	// under REPEATABLE READ does not see the new subscription, and a lock alone would not make
	// it run again. Publishers and dispatchers do not wait for it.
	lockSubscriber     = `UPDATE surehook_subscribers SET keyring_version = keyring_version WHERE id = $1 AND deleted = 0 RETURNING no`
	insertSubscription = `WITH ` + snapshotMarkNow + `,
		s AS (INSERT INTO surehook_subscriptions (id, subscriber, url, event_types, description, settings, created_at, status, implicit, filter)
			VALUES ($1, $2, $3, $4::text, $5, $6, $7, 'active', $8, $9) ON CONFLICT DO NOTHING RETURNING no, subscriber, ` + durable + `),
		h AS (INSERT INTO surehook_heads (subscription, subscriber) SELECT no, subscriber FROM s),
		p AS (INSERT INTO surehook_patterns (pattern, subscriber, subscription, since_snapshot, since_xid, since_seq)
			SELECT j.value, s.subscriber, s.no, mark.snapshot, mark.xid, mark.seq FROM json_array_elements_text($4::text::json) j, s, mark ON CONFLICT DO NOTHING)
		SELECT no FROM s`

	// updateSubscription lets a subscription get events of new patterns from now on.
	// Patterns that it keeps are not interrupted.
	updateSubscription = `WITH ` + snapshotMarkNow + `,
		j AS MATERIALIZED (SELECT value AS pattern FROM json_array_elements_text($3::text::json)),
		s AS (UPDATE surehook_subscriptions SET url = $2, event_types = $3::text, description = $4, settings = $5, filter = $6, version = version + 1
			WHERE no = $1 RETURNING no, subscriber),
		d AS (DELETE FROM surehook_patterns p USING s WHERE p.subscription = s.no AND NOT EXISTS (SELECT 1 FROM j WHERE j.pattern = p.pattern)),
		p AS (INSERT INTO surehook_patterns (pattern, subscriber, subscription, since_snapshot, since_xid, since_seq)
			SELECT j.pattern, s.subscriber, s.no, mark.snapshot, mark.xid, mark.seq FROM j, s, mark ON CONFLICT DO NOTHING)` + wakeThem

	// A resume ends the failing time at once, even if no dispatcher has seen it yet.
	subscriptionColumns = `SELECT s.no, s.id, o.id, s.url, s.event_types, s.filter, s.description, s.settings, s.created_at, s.implicit, s.status, s.held_at, s.disabled_reason,
			h.lane, CASE WHEN h.epoch < s.recovered THEN 0 ELSE h.streak END, CASE WHEN h.epoch >= s.recovered THEN h.failing_since END,
			h.last_success, h.last_failure, CASE WHEN h.epoch < s.recovered THEN 0 ELSE h.warned END,
			CASE WHEN h.epoch >= s.recovered THEN h.warned_at END, h.recent, h.pending + h.waiting + h.leased + h.behind, h.dead`
	selectSubscriptions = subscriptionColumns + `
		FROM surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber JOIN surehook_heads h ON h.subscription = s.no
		WHERE s.status IN ('active', 'paused', 'disabled', 'closing')`
	selectImplicit = selectSubscriptions + ` AND s.implicit AND s.status IN ('active', 'paused', 'disabled')
		AND s.subscriber = (SELECT no FROM surehook_subscribers WHERE id = $1) AND s.url = $2`
	// selectFailing goes over the heads of the subscriptions that fail, those that have
	// failed for longest first.
	selectFailing = subscriptionColumns + `
		FROM surehook_heads h JOIN surehook_subscriptions s ON s.no = h.subscription JOIN surehook_subscribers o ON o.no = s.subscriber
		WHERE h.failing_since IS NOT NULL AND h.failing_since >= $1 AND (h.failing_since, h.subscription) > ($1, $2)
			AND s.status = 'active' AND h.epoch >= s.recovered
		ORDER BY h.failing_since, h.subscription LIMIT $3`
	selectSubscription    = selectSubscriptions + ` AND s.id = $1`
	selectSubscriptionsOf = selectSubscriptions + ` AND s.no > $1 AND s.subscriber = $3 ORDER BY s.no LIMIT $2`
	selectAnySubscription = selectSubscriptions + ` AND s.no > $1 AND h.subscription > $1 ORDER BY s.no LIMIT $2`
	selectSubscriptionNo  = `SELECT no FROM surehook_subscriptions WHERE id = $1`
	selectOwnerNo         = `SELECT no FROM surehook_subscribers WHERE id = $1`

	lockSubscription = `SELECT no, status FROM surehook_subscriptions
		WHERE id = $1 AND status IN ('active', 'paused', 'disabled', 'closing') FOR NO KEY UPDATE`
)

// CreateSubscriptionTx implements sender.Store. The subscription gets the events
// that are committed after the statement. Under a stricter isolation level than READ
// COMMITTED it gets those after the snapshot of the transaction, unless they are expanded
// before the commit.
func (s *Store[Tx]) CreateSubscriptionTx(ctx context.Context, tx Tx, n sender.Subscription) error {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "creating a subscription"
	var owner, no int64
	err = w.row(lockSubscriber, soughtID(n.Subscriber)).Scan(&owner)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, n.Subscriber)
	}
	if err != nil {
		return fail(doing, err)
	}
	types, settings, err := encoded(n)
	if err != nil {
		return fail(doing, err)
	}
	err = w.row(insertSubscription, n.ID, owner, n.URL, types, n.Description, settings, n.CreatedAt, n.Implicit, n.Filter.String()).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: subscription %q", sender.ErrExists, n.ID)
	}
	return fail(doing, err)
}

func encoded(n sender.Subscription) (types, settings string, err error) {
	if n.EventTypes == nil {
		n.EventTypes = []string{} // null is no list
	}
	t, err := json.Marshal(n.EventTypes)
	if err != nil {
		return "", "", err
	}
	s, err := json.Marshal(n.Settings)
	return string(t), string(s), err
}

func (w *work) readSubscription(r interface{ Scan(...any) error }) (no int64, n sender.Subscription, err error) {
	var types, settings, expression string
	var created, held, failing, success, failure, warned timestamp
	var lane int16
	var recent int64
	h := &n.Health
	err = r.Scan(&no, &n.ID, &n.Subscriber, &n.URL, &types, &expression, &n.Description, &settings, &created, &n.Implicit, &n.Status, &held, &n.DisabledReason,
		&lane, &h.Streak, &failing, &success, &failure, &h.Warned, &warned, &recent, &n.Backlog, &n.DeadLettered)
	if err != nil {
		return 0, n, err
	}
	if h.Lane = laneOf(lane); h.Lane == noLane {
		h.Lane = sender.LaneNew
	}
	n.CreatedAt, h.Recent = created.time(), sender.Recent(recent)
	if n.Status == sender.SubscriptionDisabled { // held_at of a paused one is when it was paused
		n.DisabledAt = held.time()
	}
	h.FailingSince, h.LastSuccess, h.LastFailure, h.WarnedAt = failing.time(), success.time(), failure.time(), warned.time()
	n.Settings, n.Filter = sender.ReadSettings([]byte(settings)), w.readFilter(no, expression)
	if err := json.Unmarshal([]byte(types), &n.EventTypes); err != nil {
		n.EventTypes = []string{}
		w.damage.Tell(w.ctx, no, "its event_types are not a list of strings", "it gets what it got before; Registry.Update with EventTypes mends it")
	}
	return no, n, nil
}

// SubscriptionTx implements sender.Store.
func (s *Store[Tx]) SubscriptionTx(ctx context.Context, tx Tx, key sender.SubscriptionKey) (sender.Subscription, error) {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return sender.Subscription{}, err
	}
	query, args := selectSubscription, []any{soughtID(key.ID)}
	if key.Origin != "" {
		query, args = selectImplicit, []any{soughtID(key.Subscriber), key.Origin}
	}
	if key.ToChange { // the query that follows sees what the lock has waited for
		if _, _, _, err := s.lockSubscription(ctx, tx, key.ID); err != nil {
			return sender.Subscription{}, err
		}
	}
	_, n, err := w.readSubscription(w.row(query, args...))
	switch {
	case errors.Is(err, sql.ErrNoRows) && key.Origin != "":
		return sender.Subscription{}, fmt.Errorf("%w: an implicit subscription of %q for %s", sender.ErrNotFound, key.Subscriber, key.Origin)
	case errors.Is(err, sql.ErrNoRows):
		return sender.Subscription{}, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, key.ID)
	case err != nil:
		return sender.Subscription{}, fail("reading a subscription", err)
	}
	return n, nil
}

// SubscriptionsTx implements sender.Store. The subscription after may be
// a deleted one; ErrNotFound if there never was one.
func (s *Store[Tx]) SubscriptionsTx(ctx context.Context, tx Tx, subscriber, after string, limit int) (page []sender.Subscription, err error) {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return nil, err
	}
	const doing = "listing subscriptions"
	from := int64(0)
	if after != "" {
		err := w.row(selectSubscriptionNo, soughtID(after)).Scan(&from)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, after)
		}
		if err != nil {
			return nil, fail(doing, err)
		}
	}
	query, args := selectAnySubscription, []any{from, int64(limit)}
	if subscriber != "" {
		// A subscription of a deleted subscriber can be closing.
		var owner int64
		err := w.row(selectOwnerNo, soughtID(subscriber)).Scan(&owner)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, fail(doing, err)
		}
		query, args = selectSubscriptionsOf, append(args, owner)
	}
	err = w.each(func(r rows) (bool, error) {
		_, n, err := w.readSubscription(r)
		page = append(page, n)
		return true, err
	}, query, args...)
	if err != nil {
		return nil, fail(doing, err)
	}
	return page, nil
}

// UpdateSubscriptionTx implements sender.Store.
func (s *Store[Tx]) UpdateSubscriptionTx(ctx context.Context, tx Tx, n sender.Subscription) error {
	w, no, _, err := s.lockSubscription(ctx, tx, n.ID)
	if err != nil {
		return err
	}
	const doing = "changing a subscription"
	types, settings, err := encoded(n)
	if err != nil {
		return fail(doing, err)
	}
	if err := w.execs(updateSubscription, no, n.URL, types, n.Description, settings, n.Filter.String()); err != nil {
		return fail(doing, err)
	}
	s.published.Add(1) // so that InTx wakes the dispatcher after the commit
	return nil
}

// lockSubscription locks a subscription that is not deleted, for a caller that changes it.
func (s *Store[Tx]) lockSubscription(ctx context.Context, tx Tx, id string) (w *work, no int64, status sender.SubscriptionStatus, err error) {
	if w, err = s.callers(ctx, tx); err != nil {
		return nil, 0, "", err
	}
	err = w.row(lockSubscription, soughtID(id)).Scan(&no, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, "", fmt.Errorf("%w: subscription %q", sender.ErrNotFound, id)
	}
	return w, no, status, fail("locking a subscription", err)
}
