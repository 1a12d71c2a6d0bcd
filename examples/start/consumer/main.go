// Command consumer is the receiving side of a service, as README shows it: it applies each
// event once, in its own transaction.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"

	_ "modernc.org/sqlite"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
)

func main() {
	ctx := context.Background()
	db := must(sql.Open("sqlite", "file:crm.db?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate"))
	check(sqlite.Migrate(ctx, db)) // markers and versions, in your database
	must(db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS invoices (id TEXT PRIMARY KEY, state TEXT)"))
	hooks := must(surehook.NewReceiver(receiver.SQL(db, nil), sqlite.New(), "billing", os.Getenv("WEBHOOK_SECRET"), nil))

	http.Handle("POST /webhooks", hooks.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, // the invoice's whole state: an event that was overtaken is skipped
			"INSERT INTO invoices VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state", ev.Object.ID, ev.Type)
		return err // committed with the marker and the version, or rolled back with them
	})))
	go func() { check(hooks.Run(ctx)) }() // forgets old markers
	check(http.ListenAndServe(":8080", nil))
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
