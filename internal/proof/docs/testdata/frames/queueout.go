package block

import (
	"context"
	"database/sql"
	"errors"
	"log"

	"github.com/surehook/surehook/receiver"
)

var (
	hooks *receiver.Receiver[*sql.Tx]
	ctx   context.Context
	work  receiver.Work[*sql.Tx]
	body  []byte

	scope, id, eventType string
)

func block() error {
	// BLOCK
	log.Print(result, err)
	return nil
}
