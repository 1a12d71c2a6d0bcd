package block

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/backoff"
	dedup "github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/console"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/signing"
)

var (
	ctx                 context.Context
	pool                *pgxpool.Pool
	store               *postgres.Store[pgx.Tx]
	hooks               *surehook.Sender[pgx.Tx]
	customer            sender.Subscriber
	id, url, deliveryID string
	yesterday, from, to time.Time
	tomorrow            time.Time
	filter              replay.Filter
	authorize           console.Authorize
	subscriberOf        feed.ViewerFunc
	customers           console.Customers
	workers             *jobs.Jobs[pgx.Tx]
	newKey, oldKey      []byte
	oldSecret           string
	key                 sender.SealingKey
	types               *catalogue.Catalogue
	mail                func(ctx context.Context, subscriber, text string) error
)

func block() error {
	// BLOCK
	return nil
}
