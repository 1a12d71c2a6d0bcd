package block

import (
	"context"
	"database/sql"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/receiver/catchup/sqlite"
)

var (
	hooks *receiver.Receiver[*sql.Tx]
	db    *sql.DB
	ctx   context.Context
	work  receiver.Work[*sql.Tx]
	inTx  receiver.InTx[*sql.Tx]
	token string
)

func block() error {
	// BLOCK
	return nil
}
