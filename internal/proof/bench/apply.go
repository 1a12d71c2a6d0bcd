package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // for database/sql

	"github.com/surehook/surehook/dedup"
	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	dedupsqlite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/proof/bench/post"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// migrateDedup makes the tables of a receiver's store.
func migrateDedup(ctx context.Context, l location) error {
	switch l.Kind {
	case onSQLite.name:
		db, err := sql.Open("sqlite", l.DSN)
		if err != nil {
			return err
		}
		defer db.Close()
		return dedupsqlite.Migrate(ctx, db)
	case onPostgres.name:
		db, err := sql.Open("pgx", l.DSN)
		if err != nil {
			return err
		}
		defer db.Close()
		return deduppostgres.Migrate(ctx, db, nil)
	}
	return fmt.Errorf("there is no receiver's store of kind %q", l.Kind)
}

// applyAs is a way to put events' effects into a database.
type applyAs string

const (
	applyBare    applyAs = "bare"    // a handler and a transaction of its own, with nothing else
	applyWhole   applyAs = "whole"   // a receiver of the library
	applyGrouped applyAs = "grouped" // a receiver whose requests share transactions
)

// applying puts each event's effect into a database.
func applying(ctx context.Context, l location, as applyAs) (http.Handler, error) {
	switch l.Kind {
	case onSQLite.name:
		p, err := sqliteAt(l.DSN)
		if err != nil {
			return nil, err
		}
		group, err := receiver.NewGroup(p.inTx, receiver.SQLExec, nil)
		if err != nil {
			return nil, err
		}
		return effects(p, p.inTx, group.InTx, dedupsqlite.New(), as)
	case onPostgres.name:
		p, err := postgresAt(ctx, l.DSN, manyConnections)
		if err != nil {
			return nil, err
		}
		store, err := deduppostgres.New(nil)
		if err != nil {
			return nil, err
		}
		inTx := deduppostgres.InTx(p.pool, pgx.TxOptions{})
		exec := func(ctx context.Context, tx pgx.Tx, statements string) error {
			_, err := tx.Exec(ctx, statements)
			return err
		}
		group, err := receiver.NewGroup(inTx, exec, &receiver.GroupConfig{Transactions: 4})
		if err != nil {
			return nil, err
		}
		return effects(p, inTx, group.InTx, store, as)
	}
	return nil, fmt.Errorf("there is no receiver's store of kind %q", l.Kind)
}

// The bare handler runs the same transactions as the application.
func effects[Tx any](p *place[Tx], inTx, grouped receiver.InTx[Tx], store dedup.Store[Tx], as applyAs) (http.Handler, error) {
	effect := func(ctx context.Context, tx Tx, id string, body []byte) error {
		return p.exec(ctx, tx, "INSERT INTO effects (id, body) VALUES ($1, $2)", id, body)
	}
	if as == applyBare {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			if err == nil {
				err = p.inTx(r.Context(), func(tx Tx) error { return effect(r.Context(), tx, r.Header.Get("Webhook-Id"), body) })
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		}), nil
	}
	keys, err := post.Keyring()
	if err != nil {
		return nil, err
	}
	verifier, err := signing.NewVerifier(keys, nil)
	if err != nil {
		return nil, err
	}
	if as == applyGrouped {
		inTx = grouped
	}
	rcv, err := receiver.New(verifier, inTx, store, "default", nil)
	if err != nil {
		return nil, err
	}
	return rcv.Handler(receiver.State(func(ctx context.Context, tx Tx, ev receiver.Event) error { return effect(ctx, tx, ev.ID, ev.Body) })), nil
}
