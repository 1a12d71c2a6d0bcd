package block

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/mysql"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/signing"
)

type Order struct {
	ID    string
	Cents int64
	Paid  bool
}

type (
	Customer struct{}
	Payment  struct{}
)

var (
	hooks    *receiver.Receiver[*sql.Tx]
	db       *sql.DB
	ctx      context.Context
	logger   any
	work     receiver.Work[*sql.Tx]
	message  signing.Message
	since    time.Time
	verifier *signing.Verifier
	store    = sqlite.New()
	inTx     = receiver.SQL(db, nil)

	tellBrowsers func(*Order)
)

func fetchOrder(ctx context.Context, ev receiver.Event) (receiver.Snapshot[Order], error) {
	panic("left out")
}

func storeOrder(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[Order]) error {
	panic("left out")
}

func block() error {
	// BLOCK
	return nil
}
