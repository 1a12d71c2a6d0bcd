package postgres_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

// exampleT stands in for the *testing.T of a test.
type exampleT struct{ testing.TB }

func (exampleT) Helper()           {}
func (exampleT) Fatal(args ...any) { log.Fatal(args...) }

// An invoice is paid, and the customer's endpoint hears of it: the change and its event
// are committed together, or neither is.
func Example() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fmt.Println("received") }))
	defer endpoint.Close()

	ctx := context.Background()
	pool, err := pgxpool.New(ctx, pgtest.DSN(exampleT{}))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `DROP SCHEMA IF EXISTS example CASCADE; CREATE SCHEMA example;
		CREATE TABLE example.invoices (id text PRIMARY KEY, state text NOT NULL)`); err != nil {
		log.Fatal(err)
	}
	store, err := postgres.New(pool, &postgres.Config{Schema: "example"})
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
	err = publisher.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO example.invoices VALUES ('in_1', 'paid')`); err != nil {
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
