package block

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/jobs/postgres"
)

var (
	ctx      context.Context
	pool     *pgxpool.Pool
	hooks    *surehook.Sender[pgx.Tx]
	customer sender.Subscriber
	work     *jobs.Jobs[pgx.Tx]
)

// count is the reader's own.
func count(ctx context.Context, owner string) (int, error) { panic("left out") }

func block() error {
	// BLOCK
	return nil
}
