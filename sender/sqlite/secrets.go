package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	raiseKeyring  = `UPDATE surehook_subscribers SET keyring_version = keyring_version + 1 WHERE no = ? AND keyring_version = ?`
	deleteSecrets = `DELETE FROM surehook_secrets WHERE subscriber = ?`
	insertSecret  = `INSERT INTO surehook_secrets (subscriber, position, id, sealed, sealing_key, not_before, not_after) VALUES (?, ?, ?, ?, ?, ?, ?)`

	selectSealedWith = `SELECT DISTINCT subscriber FROM surehook_secrets WHERE sealing_key = ? AND subscriber > ? ORDER BY subscriber LIMIT ?`
	updateSealed     = `UPDATE surehook_secrets SET sealed = ?, sealing_key = ? WHERE subscriber = ? AND id = ? AND sealed = ?`

	// A SELECT DISTINCT would read the whole index.
	selectFirstKey = `SELECT min(sealing_key) FROM surehook_secrets`
	selectNextKey  = `SELECT min(sealing_key) FROM surehook_secrets WHERE sealing_key > ?`
)

// SetSecretsTx implements sender.Store.
func (s *Store) SetSecretsTx(ctx context.Context, tx *sql.Tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	w, err := s.in(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "changing secrets"
	if err := w.execs(lockQuery); err != nil {
		return fail(doing, err)
	}
	no, err := w.subscriberNo(subscriber)
	if err != nil {
		return err
	}
	res, err := w.exec(raiseKeyring, no, version)
	if err != nil {
		return fail(doing, err)
	}
	if raised, err := res.RowsAffected(); err != nil {
		return fail(doing, err)
	} else if raised == 0 {
		return fmt.Errorf("%w: the secrets of subscriber %q", sender.ErrConflict, subscriber)
	}
	if err := w.execs(deleteSecrets, no); err != nil {
		return fail(doing, err)
	}
	if err := w.insertSecrets(no, secrets); err != nil {
		return fail(doing, err)
	}
	return fail(doing, w.changed())
}

func (w *work) insertSecrets(subscriber int64, secrets []sender.SealedSecret) error {
	for i, sec := range secrets {
		if err := w.execs(insertSecret, subscriber, i, sec.ID, sec.Sealed, sec.Key, micros(sec.NotBefore), micros(sec.NotAfter)); err != nil {
			return err
		}
	}
	return nil
}

// KeyringsTx implements sender.Store.
func (s *Store) KeyringsTx(ctx context.Context, tx *sql.Tx, key, after string, limit int) (list []sender.SealedKeyring, err error) {
	w, err := s.reads(ctx, tx)
	if err != nil {
		return nil, err
	}
	from := int64(0)
	if after != "" {
		if from, err = w.everSubscriber(after); err != nil {
			return nil, fail("listing keyrings", err)
		}
	}
	var found []int64
	if err := w.each(func(rows *sql.Rows) (bool, error) {
		var no int64
		err := rows.Scan(&no)
		found = append(found, no)
		return true, err
	}, selectSealedWith, key, from, limit); err != nil {
		return nil, fail("listing keyrings", err)
	}
	for _, no := range found {
		k, err := w.keyring(no)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

// RewrapTx implements sender.Store.
func (s *Store) RewrapTx(ctx context.Context, tx *sql.Tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	w, err := s.in(ctx, tx)
	if err != nil {
		return false, err
	}
	const doing = "sealing a secret anew"
	no, err := w.everSubscriber(subscriber)
	if errors.Is(err, sender.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fail(doing, err)
	}
	res, err := w.exec(updateSealed, sealed.Sealed, sealed.Key, no, sealed.ID, old)
	if err != nil {
		return false, fail(doing, err)
	}
	n, err := res.RowsAffected()
	return n > 0, fail(doing, err)
}

// SealingKeys implements sender.SealingStore.
func (s *Store) SealingKeys(ctx context.Context) (keys []string, err error) {
	err = s.read(ctx, func(w *work) error {
		row := w.row(selectFirstKey)
		for {
			var key sql.NullString
			if err := row.Scan(&key); err != nil {
				return fail("listing sealing keys", err)
			}
			if !key.Valid {
				slices.Sort(keys) // a database in UTF-16 has another order
				return nil
			}
			keys = append(keys, key.String)
			row = w.row(selectNextKey, key.String)
		}
	})
	return keys, err
}
