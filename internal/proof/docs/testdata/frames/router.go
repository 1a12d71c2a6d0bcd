package block

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/surehook/surehook/receiver"
)

type (
	Invoice  struct{}
	Customer struct{}
	Payment  struct{}
)

var hooks *receiver.Receiver[*sql.Tx]

func storeInvoice(ctx context.Context, tx *sql.Tx, ev receiver.Typed[Invoice]) error {
	panic("left out")
}

func fetchCustomer(ctx context.Context, ev receiver.Event) (receiver.Snapshot[Customer], error) {
	panic("left out")
}

func applyCustomer(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[Customer]) error {
	panic("left out")
}

func block() error {
	// BLOCK
	return nil
}
