package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// States of a subscription.
const (
	stateActive  = 0
	stateDeleted = 1 // some of its deliveries may be live
	stateSwept   = 2
)

// changed is run after every change of the registry: see known.
func (w *work) changed() error {
	return w.execs(`UPDATE surehook_registry SET version = version + 1`)
}

// CreateSubscriberTx implements sender.RegistryStore.
func (s *Store) CreateSubscriberTx(ctx context.Context, tx *sql.Tx, n sender.Subscriber, secrets []sender.SealedSecret) error {
	w, err := s.in(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "creating a subscriber"
	res, err := w.exec(`INSERT INTO surehook_subscribers (id, created_at, keyring_version) VALUES (?, ?, 1) ON CONFLICT (id) DO NOTHING`,
		n.ID, micros(n.CreatedAt))
	if err != nil {
		return fail(doing, err)
	}
	if created, err := res.RowsAffected(); err != nil {
		return fail(doing, err)
	} else if created == 0 {
		return fmt.Errorf("%w: subscriber %q", sender.ErrExists, n.ID)
	}
	no, err := res.LastInsertId()
	if err != nil {
		return fail(doing, err)
	}
	for lane := range sender.Lanes {
		if err := w.execs(`INSERT INTO surehook_turns (lane, subscriber, next_due, turn) VALUES (?, ?, NULL, 0)`, lane, no); err != nil {
			return fail(doing, err)
		}
	}
	if err := w.insertSecrets(no, secrets); err != nil {
		return fail(doing, err)
	}
	return fail(doing, w.changed())
}

// SubscriberTx implements sender.RegistryStore.
func (s *Store) SubscriberTx(ctx context.Context, tx *sql.Tx, id string) (sender.Subscriber, error) {
	w, err := s.in(ctx, tx)
	if err != nil {
		return sender.Subscriber{}, err
	}
	var at int64
	err = w.row(`SELECT created_at FROM surehook_subscribers WHERE id = ?`, id).Scan(&at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sender.Subscriber{}, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	case err != nil:
		return sender.Subscriber{}, fail("reading a subscriber", err)
	}
	return sender.Subscriber{ID: id, CreatedAt: timeOf(at)}, nil
}

// SubscriberKeyringTx implements sender.RegistryStore.
func (s *Store) SubscriberKeyringTx(ctx context.Context, tx *sql.Tx, id string) (sender.SealedKeyring, error) {
	w, err := s.in(ctx, tx)
	if err != nil {
		return sender.SealedKeyring{}, err
	}
	no, err := w.subscriberNo(id)
	if err != nil {
		return sender.SealedKeyring{}, err
	}
	return w.keyring(no)
}

// Keyring implements sender.DispatchStore.
func (s *Store) Keyring(ctx context.Context, subscriber int64) (k sender.SealedKeyring, err error) {
	err = s.read(ctx, func(w *work) error {
		k, err = w.keyring(subscriber)
		return err
	})
	return k, err
}

func (w *work) keyring(no int64) (k sender.SealedKeyring, err error) {
	err = w.row(`SELECT id, keyring_version FROM surehook_subscribers WHERE no = ?`, no).Scan(&k.Subscriber, &k.Version)
	if errors.Is(err, sql.ErrNoRows) {
		return k, fmt.Errorf("%w: subscriber number %d", sender.ErrNotFound, no)
	}
	if err == nil {
		err = w.each(func(rows *sql.Rows) (bool, error) {
			var sec sender.SealedSecret
			var notBefore, notAfter int64
			err := rows.Scan(&sec.ID, &sec.Sealed, &sec.Key, &notBefore, &notAfter)
			sec.NotBefore, sec.NotAfter = timeOf(notBefore), timeOf(notAfter)
			k.Secrets = append(k.Secrets, sec)
			return true, err
		}, selectSecrets, no)
	}
	if err != nil {
		return sender.SealedKeyring{}, fail("reading a keyring", err)
	}
	return k, nil
}

// CreateSubscriptionTx implements sender.RegistryStore. Its since is read under
// the write lock, so no event can come in between.
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
	types, err := json.Marshal(n.EventTypes)
	if err != nil {
		return fail(doing, err)
	}
	res, err := w.exec(`INSERT INTO surehook_subscriptions (id, subscriber, url, event_types, description, created_at, state)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		n.ID, owner, n.URL, string(types), n.Description, micros(n.CreatedAt), stateActive)
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
	var since int64
	if err := w.row(`SELECT coalesce(max(seq), 0) FROM surehook_events`).Scan(&since); err != nil {
		return fail(doing, err)
	}
	err = w.execs(`INSERT INTO surehook_heads (subscription, subscriber, lane, next_due, turn, streak, failing_since, last_success, last_failure)
		VALUES (?, ?, ?, NULL, 0, 0, 0, 0, 0)`, no, owner, sender.Health{}.Lane)
	if err != nil {
		return fail(doing, err)
	}
	err = w.execs(`INSERT OR IGNORE INTO surehook_patterns (pattern, subscriber, subscription, since)
		SELECT value, ?1, ?2, ?3 FROM json_each(?4)`, owner, no, since, string(types))
	if err != nil {
		return fail(doing, err)
	}
	return fail(doing, w.changed())
}

const selectSubscriptions = `SELECT s.no, s.id, o.id, s.url, s.event_types, s.description, s.created_at
	FROM surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber WHERE s.state = 0`

func scanSubscription(row interface{ Scan(...any) error }) (no int64, n sender.Subscription, err error) {
	var types string
	var at int64
	n.Status = sender.SubscriptionActive
	if err := row.Scan(&no, &n.ID, &n.Subscriber, &n.URL, &types, &n.Description, &at); err != nil {
		return 0, n, err
	}
	n.CreatedAt = timeOf(at)
	return no, n, json.Unmarshal([]byte(types), &n.EventTypes)
}

// SubscriptionTx implements sender.RegistryStore.
func (s *Store) SubscriptionTx(ctx context.Context, tx *sql.Tx, id string) (sender.Subscription, error) {
	w, err := s.in(ctx, tx)
	if err != nil {
		return sender.Subscription{}, err
	}
	_, n, err := w.subscription(id)
	return n, err
}

func (w *work) subscription(id string) (no int64, n sender.Subscription, err error) {
	no, n, err = scanSubscription(w.row(selectSubscriptions+` AND s.id = ?`, id))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, sender.Subscription{}, fmt.Errorf("%w: subscription %q", sender.ErrNotFound, id)
	case err != nil:
		return 0, sender.Subscription{}, fail("reading a subscription", err)
	}
	return no, n, nil
}

// SubscriptionsTx implements sender.RegistryStore. The subscription after may be
// a deleted one; ErrNotFound if there never was one.
func (s *Store) SubscriptionsTx(ctx context.Context, tx *sql.Tx, subscriber, after string, limit int) (page []sender.Subscription, err error) {
	w, err := s.in(ctx, tx)
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
		owner, err := w.subscriberNo(subscriber)
		if errors.Is(err, sender.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		query, args = query+` AND s.subscriber = ?`, append(args, owner)
	}
	err = w.each(func(rows *sql.Rows) (bool, error) {
		_, n, err := scanSubscription(rows)
		page = append(page, n)
		return true, err
	}, query+` AND s.no > ? ORDER BY s.no LIMIT ?`, append(args, from, limit)...)
	if err != nil {
		return nil, fail(doing, err)
	}
	return page, nil
}

// DeleteSubscriptionTx implements sender.RegistryStore.
func (s *Store) DeleteSubscriptionTx(ctx context.Context, tx *sql.Tx, id string) error {
	w, err := s.in(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "deleting a subscription"
	if err := w.execs(lockQuery); err != nil {
		return fail(doing, err)
	}
	no, n, err := w.subscription(id)
	if err != nil {
		return err
	}
	types, err := json.Marshal(n.EventTypes)
	if err != nil {
		return fail(doing, err)
	}
	owner, err := w.subscriberNo(n.Subscriber)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`UPDATE surehook_subscriptions SET state = ? WHERE no = ?`, []any{stateDeleted, no}},
		{`UPDATE surehook_heads SET next_due = NULL WHERE subscription = ?`, []any{no}},
		{`DELETE FROM surehook_patterns WHERE pattern IN (SELECT value FROM json_each(?)) AND subscriber = ? AND subscription = ?`,
			[]any{string(types), owner, no}},
	} {
		if err := w.execs(step.query, step.args...); err != nil {
			return fail(doing, err)
		}
	}
	return fail(doing, w.changed())
}
