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
)

var hooks *receiver.Receiver[*sql.Tx]

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
