package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/sqlite"
)

// An invoice is paid, and the customer's endpoint hears of it: the change and its event
// are committed together, or neither is.
func Example() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fmt.Println("received") }))
	defer endpoint.Close()
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "app.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE invoices (id TEXT PRIMARY KEY, state TEXT NOT NULL)"); err != nil {
		log.Fatal(err)
	}
	store, err := sqlite.New(db, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}

	keys, err := sender.NewKeys(sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		log.Fatal(err)
	}
	network := sender.Network{AllowPrivateNetworks: true} // the endpoint is on loopback
	registry, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network})
	if err != nil {
		log.Fatal(err)
	}
	owner, _, err := registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := registry.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: endpoint.URL}); err != nil {
		log.Fatal(err)
	}

	publisher, err := sender.NewPublisher(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = publisher.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO invoices VALUES ('in_1', 'paid')"); err != nil {
			return err
		}
		_, err := publisher.PublishTx(ctx, tx, sender.Event{
			Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"}, Subscriber: owner.ID,
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	dispatcher, err := dispatch.New(store, keys, &dispatch.Config{Network: network})
	if err != nil {
		log.Fatal(err)
	}
	stats, err := dispatcher.RunOnce(ctx) // a service calls Run
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("delivered:", stats.Delivered)
	// Output:
	// received
	// delivered: 1
}
