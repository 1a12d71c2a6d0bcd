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

// InTx runs functions in transactions that begin begins, such as the InTx of dedup/sqlite or of
// dedup/mysql, and gives each a session of gorm that works in it.
func InTx(db *gorm.DB, begin receiver.InTx[*sql.Tx]) receiver.InTx[*gorm.DB] {
	return func(ctx context.Context, fn func(*gorm.DB) error) error {
		return begin(ctx, func(tx *sql.Tx) error {
			// Only a context gives the session a statement of its own. Without one it would share
			// db's, and the whole application would then work in this transaction.
			session := db.Session(&gorm.Session{NewDB: true, Context: ctx})
			session.Statement.ConnPool = tx
			return fn(session)
		})
	}
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
