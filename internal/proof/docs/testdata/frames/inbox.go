package block

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/inbox/sqlite"
)

var (
	hooks *receiver.Receiver[*sql.Tx]
	db    *sql.DB
	ctx   context.Context
	work  receiver.Work[*sql.Tx]
	inTx  receiver.InTx[*sql.Tx]
)

func block() error {
	// BLOCK
	return nil
}
