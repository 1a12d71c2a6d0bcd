// Package payments takes signed events in the transactions of gorm.
package payments

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/receiver"
)

// Receiver returns a receiver whose functions work in gorm's transactions. The tables of
// dedup/postgres must be in the same database.
func Receiver(db *gorm.DB, secret string) (*receiver.Receiver[*gorm.DB], error) {
	store, err := postgres.NewSQL(nil)
	if err != nil {
		return nil, err
	}
	inTx := func(ctx context.Context, fn func(*gorm.DB) error) error {
		return db.WithContext(ctx).Transaction(fn)
	}
	return surehook.NewReceiver(inTx, dedup.Adapt(store, SQLTx), "billing", secret, nil)
}

// SQLTx returns the *sql.Tx inside a gorm transaction, with and without PrepareStmt, or nil,
// which a store refuses.
func SQLTx(tx *gorm.DB) *sql.Tx {
	pool := tx.Statement.ConnPool
	if prepared, ok := pool.(*gorm.PreparedStmtTX); ok {
		pool = prepared.Tx
	}
	inside, _ := pool.(*sql.Tx)
	return inside
}
