package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// changed is run after every change of the registry: see registryCache.
func (w *work) changed() error {
	return w.execs(`UPDATE surehook_registry SET version = version + 1`)
}

// CreateSubscriberTx implements sender.Store.
func (s *Store) CreateSubscriberTx(ctx context.Context, tx *sql.Tx, n sender.Subscriber, secrets []sender.SealedSecret) error {
	w, err := s.in(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "creating a subscriber"
	res, err := w.exec(`INSERT INTO surehook_subscribers (id, created_at, keyring_version, deleted) VALUES (?, ?, 1, 0) ON CONFLICT (id) DO NOTHING`,
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

// SubscriberTx implements sender.Store.
func (s *Store) SubscriberTx(ctx context.Context, tx *sql.Tx, id string) (sender.Subscriber, error) {
	w, err := s.reads(ctx, tx)
	if err != nil {
		return sender.Subscriber{}, err
	}
	var at int64
	err = w.row(`SELECT created_at FROM surehook_subscribers WHERE id = ? AND deleted = 0`, id).Scan(&at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return sender.Subscriber{}, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	case err != nil:
		return sender.Subscriber{}, fail("reading a subscriber", err)
	}
	return sender.Subscriber{ID: id, CreatedAt: timeOf(at)}, nil
}

// SubscriberKeyringTx implements sender.Store.
func (s *Store) SubscriberKeyringTx(ctx context.Context, tx *sql.Tx, id string) (sender.SealedKeyring, error) {
	w, err := s.reads(ctx, tx)
	if err != nil {
		return sender.SealedKeyring{}, err
	}
	no, err := w.subscriberNo(id)
	if err != nil {
		return sender.SealedKeyring{}, err
	}
	return w.keyring(no)
}

// Keyrings implements dispatch.Store.
func (s *Store) Keyrings(ctx context.Context, subscribers []int64) (found map[int64]sender.SealedKeyring, err error) {
	found = make(map[int64]sender.SealedKeyring, len(subscribers))
	err = s.read(ctx, func(w *work) error {
		for _, no := range subscribers {
			k, err := w.keyring(no)
			switch {
			case err == nil:
				found[no] = k
			case !errors.Is(err, sender.ErrNotFound):
				return err
			}
		}
		return nil
	})
	return found, err
}

const (
	selectKeyring = `SELECT id, keyring_version FROM surehook_subscribers WHERE no = ? AND deleted < 2`
	selectSecrets = `SELECT id, sealed, sealing_key, not_before, not_after FROM surehook_secrets WHERE subscriber = ? + 0 ORDER BY position`
)

func (w *work) keyring(no int64) (k sender.SealedKeyring, err error) {
	err = w.row(selectKeyring, no).Scan(&k.Subscriber, &k.Version)
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
