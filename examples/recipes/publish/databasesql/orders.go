// Package orders publishes events in the transactions of database/sql, with any driver
// for PostgreSQL.
package orders

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/examples/recipes/publish/order"
	"github.com/surehook/surehook/sender"
)

// Orders keeps orders with database/sql. It is safe for concurrent use.
type Orders struct {
	DB    *sql.DB
	Hooks *sender.Publisher[*sql.Tx] // of postgres.NewSQL, on the same database
}

// Place stores an order and publishes its event: both are committed, or neither.
func (o *Orders) Place(ctx context.Context, placed order.Order) error {
	tx, err := o.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ($1, $2, $3)", placed.ID, placed.Customer, placed.Cents); err != nil {
		return err
	}
	if _, err := o.Hooks.PublishTx(ctx, tx, placed.Event()); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	o.Hooks.Wake() // the event is delivered at once, and not at the next poll
	return nil
}
