// Package orders publishes events in the transactions in which queries of sqlc run.
package orders

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/examples/recipes/publish/order"
	"github.com/surehook/surehook/examples/recipes/publish/sqlc/queries"
	"github.com/surehook/surehook/sender"
)

// Orders keeps orders with sqlc. It is safe for concurrent use.
type Orders struct {
	Queries *queries.Queries
	Hooks   *sender.Publisher[pgx.Tx] // of postgres.New, on the same database
}

// Place stores an order and publishes its event: both are committed, or neither.
func (o *Orders) Place(ctx context.Context, placed order.Order) error {
	// InTx begins and commits, and has the event delivered at once. It may run the function
	// more than once.
	return o.Hooks.InTx(ctx, func(tx pgx.Tx) error {
		row := queries.CreateOrderParams{ID: placed.ID, Customer: placed.Customer, Cents: placed.Cents}
		if err := o.Queries.WithTx(tx).CreateOrder(ctx, row); err != nil {
			return err
		}
		_, err := o.Hooks.PublishTx(ctx, tx, placed.Event())
		return err
	})
}
