// Package payments takes signed events in the transactions of bun.
package payments

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/receiver"
)

// Receiver returns a receiver whose functions work in bun's transactions. The tables of
// dedup/postgres must be in the same database.
func Receiver(db *bun.DB, secret string) (*receiver.Receiver[bun.Tx], error) {
	store, err := postgres.NewSQL(nil)
	if err != nil {
		return nil, err
	}
	inTx := func(ctx context.Context, fn func(bun.Tx) error) error {
		return db.RunInTx(ctx, nil, func(_ context.Context, tx bun.Tx) error { return fn(tx) })
	}
	inside := func(tx bun.Tx) *sql.Tx { return tx.Tx }
	return surehook.NewReceiver(inTx, dedup.Adapt(store, inside), "billing", secret, nil)
}
