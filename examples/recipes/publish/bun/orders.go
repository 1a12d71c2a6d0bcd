// Package orders publishes events in the transactions of bun.
package orders

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"

	"github.com/surehook/surehook/examples/recipes/publish/order"
	"github.com/surehook/surehook/sender"
)

// Orders keeps orders with bun. It is safe for concurrent use.
type Orders struct {
	DB    *bun.DB
	Hooks *sender.Publisher[*sql.Tx] // of postgres.NewSQL, on the same database
}

// Place stores an order and publishes its event: both are committed, or neither.
func (o *Orders) Place(ctx context.Context, placed order.Order) error {
	err := o.DB.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(&placed).Exec(ctx); err != nil {
			return err
		}
		_, err := o.Hooks.PublishTx(ctx, tx.Tx, placed.Event()) // a bun.Tx has the *sql.Tx inside
		return err
	})
	if err == nil {
		o.Hooks.Wake() // the event is delivered at once, and not at the next poll
	}
	return err
}
