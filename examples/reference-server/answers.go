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
		// A second request with the same key waits here until the first one has ended.
		since, err := a.hold(ctx, tx, c, key, hash, answersKept, &body)
		if err != nil || since == 0 {
			return err
		}
		if body, err = do(tx); err != nil {
			return err
		}
		return a.keep(ctx, tx, c, key, since, body)
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

// hashOf tells requests apart.
func hashOf(request any) (string, error) {
	asked, err := json.Marshal(request)
	sum := sha256.Sum256(asked)
	return hex.EncodeToString(sum[:]), err
}

// hold takes a key for a request, and returns since when it has it. It returns 0 if there is an
// answer, which it reads into body. A key that was held for a time without an answer is free.
func (a *answers) hold(ctx context.Context, tx *sql.Tx, c caller, key, hash string, held time.Duration, body any) (since int64, err error) {
	now := time.Now()
	if _, err := a.db.exec(ctx, tx, "DELETE FROM server_answers WHERE caller = $1 AND path = $2 AND key = $3 AND (created_at <= $4 OR answer = '' AND created_at <= $5)",
		c.id, c.path, key, now.Add(-answersKept).UnixMicro(), now.Add(-held).UnixMicro()); err != nil {
		return 0, err
	}
	fresh, err := a.db.exec(ctx, tx, "INSERT INTO server_answers VALUES ($1, $2, $3, $4, '', $5) ON CONFLICT DO NOTHING", c.id, c.path, key, hash, now.UnixMicro())
	if err != nil {
		return 0, err
	}
	if fresh == 0 {
		return 0, a.stored(ctx, tx, c, key, hash, now, body)
	}
	return now.UnixMicro(), nil
}

// keep stores the answer to the request that holds a key since then.
func (a *answers) keep(ctx context.Context, tx *sql.Tx, c caller, key string, since int64, body any) error {
	text, err := asJSON(body)
	if err != nil {
		return err
	}
	_, err = a.db.exec(ctx, tx, "UPDATE server_answers SET answer = $1 WHERE caller = $2 AND path = $3 AND key = $4 AND created_at = $5",
		a.sealed(text, bound(c, key)), c.id, c.path, key, since)
	return err
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
	if answer == "" {
		return unavailable("the first request with this Idempotency-Key is still under way: ask again", errUnderWay)
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
