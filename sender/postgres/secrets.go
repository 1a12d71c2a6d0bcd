package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	raiseKeyring  = `UPDATE surehook_subscribers SET keyring_version = keyring_version + 1 WHERE no = $1 AND keyring_version = $2 AND deleted = 0 RETURNING ` + durable
	deleteSecrets = `DELETE FROM surehook_secrets WHERE subscriber = $1`
	insertSecret  = `INSERT INTO surehook_secrets (subscriber, position, id, sealed, sealing_key, not_before, not_after) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	updateSealed  = `UPDATE surehook_secrets SET sealed = $1, sealing_key = $2 WHERE subscriber = $3 AND id = $4 AND sealed = $5 RETURNING ` + durable

	// A keyring is read in one statement, so that its secrets belong to its version.
	selectKeyrings = `SELECT o.no, o.id, o.keyring_version, coalesce(s.position, -1), coalesce(s.id, ''), s.sealed, coalesce(s.sealing_key, ''), s.not_before, s.not_after
		FROM surehook_subscribers o LEFT JOIN surehook_secrets s ON s.subscriber = o.no WHERE `
	inOrder       = ` ORDER BY o.no, s.position`
	keyringOfID   = selectKeyrings + `o.id = $1 AND o.deleted = 0` + inOrder
	keyringsOf    = selectKeyrings + `o.no = ANY($1) AND o.deleted < 2` + inOrder
	keyringsUnder = selectKeyrings + `o.deleted < 2 AND o.no IN (SELECT DISTINCT subscriber FROM surehook_secrets
		WHERE sealing_key = $1 AND subscriber > $2 ORDER BY subscriber LIMIT $3)` + inOrder

	// A SELECT DISTINCT would read the whole index.
	selectSealingKeys = `WITH RECURSIVE k AS (
			SELECT min(sealing_key) AS key FROM surehook_secrets
			UNION ALL SELECT (SELECT min(sealing_key) FROM surehook_secrets WHERE sealing_key > k.key) FROM k WHERE k.key IS NOT NULL)
		SELECT key FROM k WHERE key IS NOT NULL`
)

// SetSecretsTx implements sender.Store.
func (s *Store[Tx]) SetSecretsTx(ctx context.Context, tx Tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return err
	}
	const doing = "changing secrets"
	no, err := w.subscriberNo(subscriber)
	if err != nil {
		return err
	}
	raised, err := w.exec(raiseKeyring, no, version)
	if err != nil {
		return fail(doing, err)
	}
	if raised == 0 {
		return fmt.Errorf("%w: the secrets of subscriber %q", sender.ErrConflict, subscriber)
	}
	if err := w.execs(deleteSecrets, no); err != nil {
		return fail(doing, err)
	}
	return fail(doing, w.insertSecrets(no, secrets))
}

func (w *work) insertSecrets(subscriber int64, secrets []sender.SealedSecret) error {
	if len(secrets) == 0 {
		return nil
	}
	qs := make([]query, len(secrets))
	for i, sec := range secrets {
		qs[i] = w.query(insertSecret, subscriber, int64(i), sec.ID, sec.Sealed, sec.Key, timestampOf(sec.NotBefore), timestampOf(sec.NotAfter))
	}
	return w.send(qs...)
}

// keyrings reads keyrings with all their secrets, and the numbers of their subscribers.
func (w *work) keyrings(query string, args ...any) (list []sender.SealedKeyring, numbers []int64, err error) {
	err = w.each(func(r rows) (bool, error) {
		var no, position int64
		var k sender.SealedKeyring
		var sec sender.SealedSecret
		var notBefore, notAfter timestamp
		if err := r.Scan(&no, &k.Subscriber, &k.Version, &position, &sec.ID, &sec.Sealed, &sec.Key, &notBefore, &notAfter); err != nil {
			return false, err
		}
		if n := len(numbers); n == 0 || numbers[n-1] != no {
			list, numbers = append(list, k), append(numbers, no)
		}
		if position >= 0 {
			sec.NotBefore, sec.NotAfter = notBefore.time(), notAfter.time()
			of := &list[len(list)-1]
			of.Secrets = append(of.Secrets, sec)
		}
		return true, nil
	}, query, args...)
	return list, numbers, err
}

// KeyringsTx implements sender.Store.
func (s *Store[Tx]) KeyringsTx(ctx context.Context, tx Tx, key, after string, limit int) (list []sender.SealedKeyring, err error) {
	w, err := s.callers(ctx, tx)
	if err != nil {
		return nil, err
	}
	from := int64(0)
	if after != "" {
		if from, err = w.everSubscriber(after); err != nil {
			return nil, fail("listing keyrings", err)
		}
	}
	list, _, err = w.keyrings(keyringsUnder, key, from, int64(limit))
	return list, fail("listing keyrings", err)
}

// RewrapTx implements sender.Store.
func (s *Store[Tx]) RewrapTx(ctx context.Context, tx Tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	w, err := s.callers(ctx, tx)
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
	n, err := w.exec(updateSealed, sealed.Sealed, sealed.Key, no, sealed.ID, old)
	return n > 0, fail(doing, err)
}

// SealingKeys implements sender.SealingStore.
func (c *core) SealingKeys(ctx context.Context) (keys []string, err error) {
	err = c.dispatching().read(ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var key string
			err := r.Scan(&key)
			keys = append(keys, key)
			return true, err
		}, selectSealingKeys)
	})
	if err != nil {
		return nil, fail("listing sealing keys", err)
	}
	slices.Sort(keys) // the database's order need not be that of the bytes
	return keys, nil
}
