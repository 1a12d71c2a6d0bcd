// Command consumer is the receiving side of a service, as README shows it: it applies each
// event once, in its own transaction.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/receiver"
)

type Invoice struct{ ID, State string }

func main() {
	ctx := context.Background()
	pool := must(pgxpool.New(ctx, env("DATABASE_URL")))
	check(postgres.MigratePool(ctx, pool, nil)) // the library's tables, beside your own
	// The lock: of two processes that make a table at once, one can fail.
	must(pool.Exec(ctx, "SELECT pg_advisory_xact_lock(1); CREATE TABLE IF NOT EXISTS copies (id text PRIMARY KEY, state text)"))
	store, inTx := must(postgres.New(nil)), postgres.InTx(pool, pgx.TxOptions{})
	hooks := must(surehook.NewReceiver(inTx, store, "billing", env("WEBHOOK_SECRET"), nil))

	work := must(receiver.Router(
		receiver.OnState("invoice.*", func(ctx context.Context, tx pgx.Tx, ev receiver.Typed[Invoice]) error {
			_, err := tx.Exec(ctx, "INSERT INTO copies VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET state = $2", ev.Data.ID, ev.Data.State)
			return err // committed with the event's id and version, or rolled back with them
		}),
	))
	http.Handle("POST /webhooks", hooks.Handler(work))
	go func() { check(hooks.Run(ctx)) }() // removes the ids of old events
	check(http.ListenAndServe(":8080", nil))
}

// env is a setting. Without DATABASE_URL, pgx would take whatever database it finds.
func env(name string) string {
	value := os.Getenv(name)
	if value == "" {
		log.Fatalf("%s is not set", name)
	}
	return value
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
