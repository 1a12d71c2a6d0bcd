package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// App takes payments from signed events. It is safe for concurrent use.
type App struct {
	pool     *pgxpool.Pool
	receiver *receiver.Receiver[pgx.Tx]
	work     receiver.Work[pgx.Tx]
}

// FromEnvironment opens the application with the database's URL in DATABASE_URL and
// the sender's secret in WEBHOOK_SECRET.
func FromEnvironment(ctx context.Context) (*App, error) {
	database, secret := os.Getenv("DATABASE_URL"), os.Getenv("WEBHOOK_SECRET")
	var problems []error
	if database == "" {
		problems = append(problems, errors.New("DATABASE_URL is not set: it must be the URL of a PostgreSQL database"))
	}
	if secret == "" {
		problems = append(problems, errors.New("WEBHOOK_SECRET is not set: it must be the signing secret that the sender shows"))
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	return Open(ctx, database, secret)
}

// Open connects to the database, brings its tables up to date, and pins the scheme and
// the secret that events must be signed with. Close ends it.
func Open(ctx context.Context, databaseURL, secret string) (*App, error) {
	store, err := postgres.New(nil)
	if err != nil {
		return nil, err
	}
	// A payment is a fact: each counts, whatever came before or after it. Events of other
	// types are acknowledged, and ignored.
	work, err := receiver.Router(receiver.OnFact("invoice.paid", pay))
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, databaseURL)
	if err != nil {
		return nil, errors.New("the database's URL cannot be read") // the error may hold its password
	}
	app := &App{pool: pool, work: work}
	app.receiver, err = surehook.NewReceiver(postgres.InTx(pool, pgx.TxOptions{}), store, "billing", secret, nil)
	if err == nil {
		err = migrate(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return app, nil
}

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if err := postgres.MigratePool(ctx, pool, nil); err != nil {
		return err
	}
	// One process at a time: of two that make a table at once, one can fail.
	if _, err := pool.Exec(ctx, "SELECT pg_advisory_xact_lock(1); CREATE TABLE IF NOT EXISTS accounts (id text PRIMARY KEY, paid bigint NOT NULL)"); err != nil {
		return fmt.Errorf("making the table of accounts: %w", err)
	}
	return nil
}

// payment is the data of an invoice.paid event, whose object is the invoice. An invoice
// may be paid in parts: each part is an event.
type payment struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
	Payer   string `json:"payer"`
}

// pay adds a payment to the account. Adding it twice would be wrong, and so would skipping
// it because a later payment came first.
func pay(ctx context.Context, tx pgx.Tx, ev receiver.Typed[payment]) error {
	_, err := tx.Exec(ctx, `INSERT INTO accounts (id, paid) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET paid = accounts.paid + excluded.paid`, ev.Data.Account, ev.Data.Cents)
	return err
}

// Handler is for every framework that serves net/http.
func (a *App) Handler() http.Handler { return a.receiver.Handler(a.work) }

// Receive is for programs that have the bytes of a request and no net/http. Its steps and
// answers are the same.
func (a *App) Receive(ctx context.Context, m signing.Message) receiver.Answer {
	return receiver.AnswerTo(a.receiver.Receive(ctx, m, a.work))
}

// Paid returns the sum that was paid into an account, in cents.
func (a *App) Paid(ctx context.Context, id string) (cents int64, err error) {
	err = a.pool.QueryRow(ctx, "SELECT coalesce(sum(paid), 0) FROM accounts WHERE id = $1", id).Scan(&cents)
	return cents, err
}

// Run removes old markers until ctx ends. A function-as-a-service, which lives for single
// requests, has a timer call it for a while.
func (a *App) Run(ctx context.Context) error { return a.receiver.Run(ctx) }

// Close ends the connections to the database.
func (a *App) Close() { a.pool.Close() }
