package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
)

// answersKept is for how long a repeat of a request gets the first one's answer.
const answersKept = 24 * time.Hour

// answers remembers the answers to requests that carried an Idempotency-Key. They
// are sealed, because some hold a new token or secret, which are kept nowhere else
// in the clear.
type answers struct {
	db    *database
	seals []seal // the newest first
}

type seal struct {
	id   string // of the sealing key
	aead cipher.AEAD
}

// newAnswers seals with keys of its own, derived from those that seal the signing
// secrets (RFC 5869).
func newAnswers(db *database, keys []sender.SealingKey) (*answers, error) {
	a := &answers{db: db}
	for _, key := range keys {
		own, err := hkdf.Key(sha256.New, key.Key, nil, "surehook reference server: answers", keySize)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(own)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		a.seals = append(a.seals, seal{key.ID, aead})
	}
	return a, nil
}

// Keyed is the header that makes a request repeatable. Keys are per caller and path,
// and kept for 24 hours.
type Keyed struct {
	Key string `header:"Idempotency-Key" maxLength:"255" pattern:"^[ -~]*$" patternDescription:"visible ASCII characters and spaces" doc:"A repeat with the same key has the first one's answer, for 24 hours."`
}

// once does a request's work in a transaction, and if it carries an Idempotency-Key,
// once: a repeat has the first one's answer, which is stored with the effect. The
// same key with another request is 409. A refusal is not kept: it has no effect.
func once[B any](ctx context.Context, a *answers, c caller, key string, request any, do func(tx *sql.Tx) (B, error)) (body B, err error) {
	if key == "" {
		err = a.db.inTx(ctx, func(tx *sql.Tx) error {
			body, err = do(tx)
			return err
		})
		return body, err
	}
	hash, err := hashOf(request)
	if err != nil {
		return body, err
	}
	err = a.db.inTx(ctx, func(tx *sql.Tx) error {
		now := time.Now()
		if _, err := a.db.exec(ctx, tx, "DELETE FROM server_answers WHERE caller = $1 AND path = $2 AND key = $3 AND created_at <= $4",
			c.id, c.path, key, now.Add(-answersKept).UnixMicro()); err != nil {
			return err
		}
		// A second request with the same key waits here until the first one has ended.
		fresh, err := a.db.exec(ctx, tx, "INSERT INTO server_answers VALUES ($1, $2, $3, $4, '', $5) ON CONFLICT DO NOTHING", c.id, c.path, key, hash, now.UnixMicro())
		if err != nil {
			return err
		}
		if fresh == 0 {
			return a.stored(ctx, tx, c, key, hash, now, &body)
		}
		if body, err = do(tx); err != nil {
			return err
		}
		text, err := asJSON(body)
		if err != nil {
			return err
		}
		_, err = a.db.exec(ctx, tx, "UPDATE server_answers SET answer = $1 WHERE caller = $2 AND path = $3 AND key = $4", a.sealed(text, bound(c, key)), c.id, c.path, key)
		return err
	})
	return body, err
}

// answered is the answer to a repeat, if there is one at this time. It changes nothing.
func answered[B any](ctx context.Context, a *answers, c caller, key string, request any) (body B, repeat bool, err error) {
	if key == "" {
		return body, false, nil
	}
	hash, err := hashOf(request)
	if err != nil {
		return body, false, err
	}
	err = a.stored(ctx, nil, c, key, hash, time.Now(), &body)
	if errors.Is(err, sql.ErrNoRows) {
		return body, false, nil
	}
	return body, err == nil, err
}

func hashOf(request any) (string, error) {
	asked, err := json.Marshal(request)
	sum := sha256.Sum256(asked)
	return hex.EncodeToString(sum[:]), err
}

// stored reads the answer that is kept at this time, or returns sql.ErrNoRows.
func (a *answers) stored(ctx context.Context, tx *sql.Tx, c caller, key, hash string, now time.Time, body any) error {
	var answer, first string
	err := a.db.row(ctx, tx, "SELECT answer, request_hash FROM server_answers WHERE caller = $1 AND path = $2 AND key = $3 AND created_at > $4",
		c.id, c.path, key, now.Add(-answersKept).UnixMicro()).Scan(&answer, &first)
	if err != nil {
		return err
	}
	if first != hash {
		return problem(http.StatusConflict, "the Idempotency-Key was used with another request: give each request a key of its own",
			Detail{Location: "header.Idempotency-Key", Message: "it was used with another body"})
	}
	text, err := a.open(answer, bound(c, key))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, body)
}

// bound keeps a sealed answer from being moved to another row.
func bound(c caller, key string) []byte { return []byte(c.id + "\x00" + c.path + "\x00" + key) }

// forget removes the answers that are past their time.
func (a *answers) forget(ctx context.Context) error {
	return a.db.inTx(ctx, func(tx *sql.Tx) error {
		_, err := a.db.exec(ctx, tx, "DELETE FROM server_answers WHERE created_at <= $1", time.Now().Add(-answersKept).UnixMicro())
		return err
	})
}
