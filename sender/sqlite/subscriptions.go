package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Statuses as they are stored. A deleted subscription has one of the last two, which are
// not public.
const (
	statusActive  = string(sender.SubscriptionActive)
	statusClosing = string(sender.SubscriptionClosing)
	statusDeleted = "deleted" // some of its deliveries may be live
	statusSwept   = "swept"
)

const lastEvent = `SELECT coalesce(max(seq), 0) FROM surehook_events`

// CreateSubscriptionTx implements sender.Store. It reads the last event under the
// write lock, so that no event can come in between.
func (s *Store) CreateSubscriptionTx(ctx context.Context, tx *sql.Tx, n sender.Subscription) error {
	w, err := s.in(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "creating a subscription"
	if err := w.execs(lockQuery); err != nil {
		return fail(doing, err)
	}
	owner, err := w.subscriberNo(n.Subscriber)
	if err != nil {
		return err
	}
	types, settings, err := encoded(n)
	if err != nil {
		return fail(doing, err)
	}
	res, err := w.exec(`INSERT INTO surehook_subscriptions (id, subscriber, url, event_types, filter, description, settings, created_at,
			status, until, disabled_at, disabled_reason, implicit)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', ?) ON CONFLICT DO NOTHING`,
		n.ID, owner, n.URL, types, n.Filter.String(), n.Description, settings, micros(n.CreatedAt), statusActive, int64(everything), n.Implicit)
	if err != nil {
		return fail(doing, err)
	}
	if created, err := res.RowsAffected(); err != nil {
		return fail(doing, err)
	} else if created == 0 {
		return fmt.Errorf("%w: subscription %q", sender.ErrExists, n.ID)
	}
	no, err := res.LastInsertId()
	if err != nil {
		return fail(doing, err)
	}
	err = w.execs(`INSERT INTO surehook_heads (subscription, subscriber, lane, open, next_due, turn, pending, waiting, leased, dead, leases_end,
			epoch, resumed_at, resumed_to, left_to, rate_at, streak, failing_since, last_success, last_failure, warned, warned_at)
		VALUES (?, ?, ?, 1, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0)`, no, owner, sender.Health{}.Lane)
	if err != nil {
		return fail(doing, err)
	}
	if err := w.ask(no, types); err != nil {
		return fail(doing, err)
	}
	return fail(doing, w.changed())
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

// ask makes a subscription ask for these types, and for no others. It gets a new type
// from now on. A type that it asked for before it goes on to get.
func (w *work) ask(no int64, types string) error {
	err := w.execs(`DELETE FROM surehook_patterns WHERE subscription = ? AND pattern NOT IN (SELECT value FROM json_each(?))`, no, types)
	if err != nil {
		return err
	}
	return w.execs(`INSERT INTO surehook_patterns (pattern, subscriber, subscription, since, until, filtered)
		SELECT j.value, s.subscriber, s.no, (`+lastEvent+`), s.until, s.filter <> '' FROM surehook_subscriptions s, json_each(?2) j WHERE s.no = ?1
		ON CONFLICT DO UPDATE SET filtered = excluded.filtered`, no, types)
}

// selectFailing goes over the heads of the subscriptions that fail.
const selectFailing = subscriptionColumns + ` FROM surehook_heads h INDEXED BY surehook_heads_failing CROSS JOIN surehook_subscriptions s ON s.no = h.subscription
		CROSS JOIN surehook_subscribers o ON o.no = s.subscriber
	WHERE h.failing_since > 0 AND h.failing_since >= ?1 AND (h.failing_since, h.subscription) > (?1, ?2) AND s.status = 'active'
	ORDER BY h.failing_since, h.subscription LIMIT ?3`

const selectSubscriptions = subscriptionColumns + `
	FROM surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber JOIN surehook_heads h ON h.subscription = s.no
	WHERE s.status IN ('active', 'paused', 'disabled', 'closing')`

const subscriptionColumns = `SELECT s.no, s.id, o.id, s.url, s.event_types, s.filter, s.description, s.settings, s.created_at, s.implicit, s.status, s.disabled_at, s.disabled_reason,
		h.lane, h.streak, h.failing_since, h.last_success, h.last_failure, h.warned, h.warned_at, h.recent, h.pending + h.waiting + h.leased + h.behind, h.dead`

func (w *work) readSubscription(row interface{ Scan(...any) error }) (no int64, n sender.Subscription, err error) {
	var types, settings []byte
	var expression string
	var created, disabled, failing, success, failure, warned, recent int64
	var lane int64
	h := &n.Health
	err = row.Scan(&no, &n.ID, &n.Subscriber, &n.URL, &types, &expression, &n.Description, &settings, &created, &n.Implicit, &n.Status, &disabled, &n.DisabledReason,
		&lane, &h.Streak, &failing, &success, &failure, &h.Warned, &warned, &recent, &n.Backlog, &n.DeadLettered)
	if err != nil {
		return 0, n, err
	}
	if h.Lane = laneOf(lane); h.Lane == noLane {
		h.Lane = sender.LaneNew
	}
	n.CreatedAt, h.Recent = timeOf(created), sender.Recent(recent)
	if n.Status == sender.SubscriptionDisabled { // a paused one has the time of its pause here
		n.DisabledAt = timeOf(disabled)
	}
	h.FailingSince, h.LastSuccess, h.LastFailure, h.WarnedAt = timeOf(failing), timeOf(success), timeOf(failure), timeOf(warned)
	n.Settings, n.Filter = sender.ReadSettings(settings), w.readFilter(no, expression)
	if err := json.Unmarshal(types, &n.EventTypes); err != nil {
		n.EventTypes = []string{}
		w.damage.Tell(w.ctx, no, "its event_types are not a list of strings", "it gets what it got before; Registry.Update with EventTypes mends it")
	}
	return no, n, nil
}

// SubscriptionTx implements sender.Store.
func (s *Store) SubscriptionTx(ctx context.Context, tx *sql.Tx, key sender.SubscriptionKey) (sender.Subscription, error) {
	begin := s.reads
	if key.Origin != "" || key.ToChange { // it takes the write lock
		begin = s.in
	}
	w, err := begin(ctx, tx)
	if err != nil {
		return sender.Subscription{}, err
	}
	if key.Origin != "" {
		return w.implicit(key.Subscriber, key.Origin)
	}
	if key.ToChange {
		if err := w.execs(lockQuery); err != nil {
			return sender.Subscription{}, fail("locking", err)
		}
	}
	_, n, err := w.subscription(key.ID)
	return n, err
}

func (w *work) subscription(id string) (no int64, n sender.Subscription, err error) {
	no, n, err = w.readSubscription(w.row(selectSubscriptions+` AND s.id = ?`, id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, sender.Subscription{}, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, id)
	case err != nil:
		return 0, sender.Subscription{}, fail("reading a subscription", err)
	}
	return no, n, nil
}

const selectImplicit = selectSubscriptions + ` AND s.implicit = 1 AND s.status IN ('active', 'paused', 'disabled')
	AND s.subscriber = (SELECT no FROM surehook_subscribers WHERE id = ?) AND s.url = ?`

// implicit takes the write lock, since its caller makes a subscription that it does not
// find: a deferred transaction that reads first may find that it may not write any more.
func (w *work) implicit(subscriber, url string) (sender.Subscription, error) {
	if err := w.execs(lockQuery); err != nil {
		return sender.Subscription{}, fail("locking", err)
	}
	_, n, err := w.readSubscription(w.row(selectImplicit, subscriber, url))
	if errors.Is(err, sql.ErrNoRows) {
		return sender.Subscription{}, fmt.Errorf("%w: an implicit subscription of %q for %s", sender.ErrNotFound, subscriber, url)
	}
	return n, fail("reading a subscription", err)
}

// SubscriptionsTx implements sender.Store. The subscription after may be
// a deleted one; ErrNotFound if there never was one.
func (s *Store) SubscriptionsTx(ctx context.Context, tx *sql.Tx, subscriber, after string, limit int) (page []sender.Subscription, err error) {
	w, err := s.reads(ctx, tx)
	if err != nil {
		return nil, err
	}
	const doing = "listing subscriptions"
	from := int64(0)
	if after != "" {
		err := w.row(`SELECT no FROM surehook_subscriptions WHERE id = ?`, after).Scan(&from)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, after)
		}
		if err != nil {
			return nil, fail(doing, err)
		}
	}
	query, args := selectSubscriptions, []any{}
	if subscriber != "" {
		// Subscriptions of a deleted subscriber can be closing.
		var owner int64
		err := w.row(`SELECT no FROM surehook_subscribers WHERE id = ?`, subscriber).Scan(&owner)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		if err != nil {
			return nil, fail(doing, err)
		}
		query, args = query+` AND s.subscriber = ?`, append(args, owner)
	}
	err = w.each(func(rows *sql.Rows) (bool, error) {
		_, n, err := w.readSubscription(rows)
		page = append(page, n)
		return true, err
	}, query+` AND s.no > ? ORDER BY s.no LIMIT ?`, append(args, from, limit)...)
	if err != nil {
		return nil, fail(doing, err)
	}
	return page, nil
}

// UpdateSubscriptionTx implements sender.Store.
func (s *Store) UpdateSubscriptionTx(ctx context.Context, tx *sql.Tx, n sender.Subscription) error {
	w, no, _, err := s.subscriptionIn(ctx, tx, n.ID)
	if err != nil {
		return err
	}
	const doing = "changing a subscription"
	types, settings, err := encoded(n)
	if err != nil {
		return fail(doing, err)
	}
	err = w.execs(`UPDATE surehook_subscriptions SET url = ?, event_types = ?, filter = ?, description = ?, settings = ? WHERE no = ?`,
		n.URL, types, n.Filter.String(), n.Description, settings, no)
	if err == nil {
		err = w.ask(no, types)
	}
	if err == nil {
		err = w.wake(s, no)
	}
	if err == nil {
		err = w.changed()
	}
	return fail(doing, err)
}

// subscriptionIn takes the write lock and reads a subscription.
func (s *Store) subscriptionIn(ctx context.Context, tx *sql.Tx, id string) (w *work, no int64, n sender.Subscription, err error) {
	if w, err = s.in(ctx, tx); err != nil {
		return nil, 0, n, err
	}
	if err := w.execs(lockQuery); err != nil {
		return nil, 0, n, fail("locking", err)
	}
	no, n, err = w.subscription(id)
	return w, no, n, err
}

// wake lets the next claim look at a subscription that has live deliveries.
func (w *work) wake(s *Store, no int64) error {
	hs := newHeads(w)
	h, err := hs.one(no)
	if err != nil {
		return err
	}
	if h.live() > 0 {
		h.lower(s.now())
	}
	s.published.Store(true) // so that the dispatcher wakes once the transaction is committed
	return hs.store()
}
