package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
)

const (
	insertSubscriber = `WITH o AS (INSERT INTO surehook_subscribers (id, created_at, keyring_version) VALUES ($1, $2, 1) ON CONFLICT (id) DO NOTHING RETURNING no, ` + durable + `),
		t AS (INSERT INTO surehook_turns (lane, subscriber) SELECT lane, o.no FROM o, generate_series(0, $3::bigint - 1) lane)
		SELECT no FROM o`
	selectSubscriber   = `SELECT created_at FROM surehook_subscribers WHERE id = $1 AND deleted = 0`
	selectSubscriberNo = `SELECT no FROM surehook_subscribers WHERE id = $1 AND deleted = 0`
)

// CreateSubscriberTx implements sender.Store.
func (s *Store[Tx]) CreateSubscriberTx(ctx context.Context, tx Tx, n sender.Subscriber, secrets []sender.SealedSecret) error {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "creating a subscriber"
	var no int64
	err = w.row(insertSubscriber, n.ID, n.CreatedAt, int64(sender.Lanes)).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: subscriber %q", sender.ErrExists, n.ID)
	}
	if err == nil {
		err = w.insertSecrets(no, secrets)
	}
	return fail(doing, err)
}

// SubscriberTx implements sender.Store.
func (s *Store[Tx]) SubscriberTx(ctx context.Context, tx Tx, id string) (sender.Subscriber, error) {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return sender.Subscriber{}, err
	}
	var at timestamp
	err = w.row(selectSubscriber, soughtID(id)).Scan(&at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sender.Subscriber{}, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	case err != nil:
		return sender.Subscriber{}, fail("reading a subscriber", err)
	}
	return sender.Subscriber{ID: id, CreatedAt: at.time()}, nil
}

// SubscriberKeyringTx implements sender.Store.
func (s *Store[Tx]) SubscriberKeyringTx(ctx context.Context, tx Tx, id string) (sender.SealedKeyring, error) {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return sender.SealedKeyring{}, err
	}
	found, _, err := w.keyrings(keyringOfID, soughtID(id))
	switch {
	case err != nil:
		return sender.SealedKeyring{}, fail("reading a keyring", err)
	case len(found) == 0:
		return sender.SealedKeyring{}, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	return found[0], nil
}

// Keyrings implements dispatch.Store.
func (c *core) Keyrings(ctx context.Context, subscribers []int64) (found map[int64]sender.SealedKeyring, err error) {
	err = c.dispatching().read(ctx, func(w *work) error {
		list, numbers, err := w.keyrings(keyringsOf, subscribers)
		found = make(map[int64]sender.SealedKeyring, len(list))
		for i, k := range list {
			found[numbers[i]] = k
		}
		return fail("reading keyrings", err)
	})
	return found, err
}

// soughtID returns an id that somebody asks for, or "", which is nobody's, if PostgreSQL
// cannot hold it: it would abort the transaction instead of finding nothing.
func soughtID(id string) string {
	if !storable(id) {
		return ""
	}
	return id
}

// subscriberNo returns the number of a subscriber that is not deleted.
func (w *work) subscriberNo(id string) (no int64, err error) {
	err = w.row(selectSubscriberNo, soughtID(id)).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	return no, fail("looking for a subscriber", err)
}
