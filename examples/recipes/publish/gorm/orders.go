// Package orders publishes events in the transactions of gorm.
package orders

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/surehook/surehook/examples/recipes/publish/order"
	"github.com/surehook/surehook/sender"
)

// Orders keeps orders with gorm. It is safe for concurrent use.
type Orders struct {
	DB    *gorm.DB
	Hooks *sender.Publisher[*sql.Tx] // of postgres.NewSQL, on the same database
}

// Place stores an order and publishes its event: both are committed, or neither.
func (o *Orders) Place(ctx context.Context, placed order.Order) error {
	err := o.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&placed).Error; err != nil {
			return err
		}
		inside, err := SQLTx(tx)
		if err != nil {
			return err
		}
		_, err = o.Hooks.PublishTx(ctx, inside, placed.Event())
		return err
	})
	if err == nil {
		o.Hooks.Wake() // the event is delivered at once, and not at the next poll
	}
	return err
}

// SQLTx returns the *sql.Tx inside a gorm transaction, with and without PrepareStmt.
func SQLTx(tx *gorm.DB) (*sql.Tx, error) {
	pool := tx.Statement.ConnPool
	if prepared, ok := pool.(*gorm.PreparedStmtTX); ok {
		pool = prepared.Tx
	}
	if inside, ok := pool.(*sql.Tx); ok {
		return inside, nil
	}
	return nil, errors.New("orders: gorm is in no transaction here: publish within DB.Transaction, with the tx that it gives")
}
