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
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			// If fn has kept quiet about an error, or ended the transaction, the server answers
			// the commit with a warning at most. bun's own driver, pgdriver, says nothing of
			// that, and the event would be lost. A savepoint is refused then.
			_, err := tx.ExecContext(ctx, "SAVEPOINT committing")
			return err
		})
	}
	inside := func(tx bun.Tx) *sql.Tx { return tx.Tx }
	return surehook.NewReceiver(inTx, dedup.Adapt(store, inside), "billing", secret, nil)
}
