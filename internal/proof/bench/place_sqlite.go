package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook/sender/sqlite"
)

var onSQLite = kind[*sql.Tx]{name: "sqlite", text: "SQLite", fresh: freshSQLite}

func freshSQLite(ctx context.Context, b *bench) (*place[*sql.Tx], error) {
	path := b.path("sqlite")
	p, err := sqliteAt("file:" + path +
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	closeDB := p.close
	p.close = func() error {
		err := closeDB()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if e := os.Remove(path + suffix); !errors.Is(e, os.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		return err
	}
	if err := p.store.(*sqlite.Store).Migrate(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// sqliteAt opens a database.
func sqliteAt(dsn string) (*place[*sql.Tx], error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	store, err := sqlite.New(db, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	keys, err := sealing()
	return &place[*sql.Tx]{
		location: location{Kind: "sqlite", DSN: dsn}, store: store, keys: keys, bytes: "BLOB",
		inTx: store.InTx,
		exec: func(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
			_, err := tx.ExecContext(ctx, strings.ReplaceAll(query, "$", "?"), args...)
			return err
		},
		snapshot: func(ctx context.Context) (func(), error) { return holdRead(ctx, db) },
		settle: func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
			return err
		},
		close: db.Close,
	}, err
}

// holdRead keeps a read transaction open, past which the log cannot be
// checkpointed.
func holdRead(ctx context.Context, db *sql.DB) (release func(), err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	release = func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		_ = conn.Close()
	}
	if _, err := conn.ExecContext(ctx, "BEGIN DEFERRED"); err != nil {
		release()
		return nil, err
	}
	var n int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM surehook_subscriptions").Scan(&n); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
