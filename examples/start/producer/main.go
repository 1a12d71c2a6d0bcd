// Command producer is the sending side of a service, as README shows it: it publishes an
// event with the change that it reports, and delivers it.
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
)

type Invoice struct{ ID, State string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	key := must(base64.StdEncoding.DecodeString(env("SEALING_KEY")))
	pool := must(pgxpool.New(ctx, env("DATABASE_URL")))
	store := must(postgres.New(pool, nil))
	check(store.Migrate(ctx)) // the library's tables, beside your own
	hooks := must(surehook.NewSender(store, sender.SealingKey{ID: "2026-11", Key: key}, nil))
	ran := make(chan error, 1)
	go func() { ran <- hooks.Run(ctx) }() // delivers until a signal comes; ends at once if a key or a migration is missing

	customer, secret, err := hooks.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	check(err)
	log.Printf("the customer's secret: %s", secret.Reveal())
	must(hooks.Registry.Subscribe(ctx, sender.NewSubscription{
		Subscriber: customer.ID, URL: "https://customer.example/webhooks", EventTypes: []string{"invoice.*"},
	}))
	// The lock: of two processes that make a table at once, one can fail.
	must(pool.Exec(ctx, "SELECT pg_advisory_xact_lock(1); CREATE TABLE IF NOT EXISTS invoices (id text PRIMARY KEY, state text)"))
	check(hooks.InTx(ctx, func(tx pgx.Tx) error { // your change and its event, or neither
		invoice := Invoice{ID: rand.Text(), State: "paid"}
		if _, err := tx.Exec(ctx, "INSERT INTO invoices VALUES ($1, $2)", invoice.ID, invoice.State); err != nil {
			return err
		}
		_, err := hooks.PublishTx(ctx, tx, sender.Event{
			Type: "invoice.updated", Object: sender.Object{Type: "invoice", ID: invoice.ID}, Data: invoice, Subscriber: customer.ID,
		})
		return err
	}))
	check(<-ran) // wait for it: what is on the wire is recorded first
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
