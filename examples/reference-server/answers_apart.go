package main

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

const (
	apart     = 10 * time.Second      // for work that takes a transaction or two
	apartLook = 20 * time.Millisecond // how often a repeat looks for the answer
)

var errUnderWay = errors.New("another request holds the Idempotency-Key")

// onceApart is once for work that has transactions of its own, because the library does it in
// them. So the key is held before the work, and the answer is stored after it; a repeat waits
// for it in between. The work goes on for up to within, also when its client has left: the
// repeat gets the answer.
//
// If the process is lost before the answer is stored, the key is free after twice that time,
// and a repeat does the work again.
func onceApart[B any](ctx context.Context, a *answers, c caller, key string, request any, within time.Duration, do func(ctx context.Context) (B, error)) (body B, err error) {
	if key == "" {
		return do(ctx)
	}
	hash, err := hashOf(request)
	if err != nil {
		return body, err
	}
	var since int64
	for end := time.Now().Add(within); ; {
		err = a.db.inTx(ctx, func(tx *sql.Tx) (err error) {
			since, err = a.hold(ctx, tx, c, key, hash, 2*within, &body)
			return err
		})
		if !errors.Is(err, errUnderWay) || time.Now().After(end) {
			break
		}
		select {
		case <-ctx.Done():
			return body, ctx.Err()
		case <-time.After(apartLook):
		}
	}
	if err != nil || since == 0 {
		return body, err
	}
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	body, err = do(limited)
	storing, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err != nil {
		a.release(storing, c, key, since)
		return body, err
	}
	return body, a.db.inTx(storing, func(tx *sql.Tx) error { return a.keep(storing, tx, c, key, since, body) })
}

// release gives back a key whose request was refused, or has failed. If that fails, too, the key
// is free later.
func (a *answers) release(ctx context.Context, c caller, key string, since int64) {
	_ = a.db.inTx(ctx, func(tx *sql.Tx) error {
		_, err := a.db.exec(ctx, tx, "DELETE FROM server_answers WHERE caller = $1 AND path = $2 AND key = $3 AND created_at = $4", c.id, c.path, key, since)
		return err
	})
}
