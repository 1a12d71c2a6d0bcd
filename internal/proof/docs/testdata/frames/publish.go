package block

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
)

type Order struct {
	ID    string
	Cents int64
	Paid  bool

	CallbackURL string
}

var (
	hooks    *surehook.Sender[pgx.Tx]
	ctx      context.Context
	order    Order
	customer sender.Subscriber
	tomorrow time.Time

	enqueueOld func(ctx context.Context, tx pgx.Tx, customer string, order Order) error
)

func block(tx pgx.Tx) error {
	// BLOCK
	return nil
}
