package main

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	sqlitedriver "modernc.org/sqlite"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/jobs"
	jobspostgres "github.com/surehook/surehook/sender/jobs/postgres"
	jobssqlite "github.com/surehook/surehook/sender/jobs/sqlite"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// database is the one database of the service, for the library's tables and its own.
// Both kinds work in a *sql.Tx, so nothing but this file knows which it is.
type database struct {
	kind   string
	sql    *sql.DB
	sender senderStore
	jobs   jobsStore
	close  func()

	connections int // at a time, besides those of the dispatcher on PostgreSQL
}

type senderStore interface {
	storetest.Store[*sql.Tx]
	feed.Store
	Migrate(ctx context.Context) error
	Restored(ctx context.Context, convert sender.Convert) (sender.Restoration, error)
}

type jobsStore interface {
	jobs.Store[*sql.Tx]
	Migrate(ctx context.Context) error
}

func openDatabase(ctx context.Context, o options, log *slog.Logger) (*database, error) {
	if o.postgres() {
		return openPostgres(ctx, o.database)
	}
	if err := makePrivate(o.database, log); err != nil {
		return nil, err
	}
	// Commits survive a loss of power, and a transaction waits for the write lock when it
	// begins.
	db, err := sql.Open("sqlite", "file:"+escapePath(o.database)+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	// database/sql would open one for each request that reads, and close it after it.
	db.SetMaxOpenConns(sqliteConnections)
	db.SetMaxIdleConns(sqliteConnections)
	store, err := sqlite.New(db, nil)
	if err != nil {
		return nil, err
	}
	work, err := jobssqlite.New(db, nil)
	if err != nil {
		return nil, err
	}
	return &database{kind: "sqlite", sql: db, sender: store, jobs: work, close: func() { _ = db.Close() }, connections: sqliteConnections}, nil
}

// sqliteConnections are as many as read at a time. Each has some megabytes of pages.
const sqliteConnections = 16

// escapePath keeps a path from being read as a URI's query or fragment
// (sqlite.org/uri.html, section 3.1).
func escapePath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}

// connectTimeout bounds the making of a connection, unless the URL says how long that may take.
// A server that is gone without a word must not hold up a request for longer.
const connectTimeout = 5 * time.Second

func poolConfig(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("-database is not a URL that PostgreSQL understands: it must be like postgres://user:password@host:5432/name")
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns++ // the requests' own, and the one that asking leaves to others
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, connectTimeout)
	return config, nil
}

func openPostgres(ctx context.Context, url string) (*database, error) {
	config, err := poolConfig(url)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	store, err := postgres.NewSQL(pool, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	work, err := jobspostgres.NewSQL(pool, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	return &database{kind: "postgres", sql: db, sender: store, jobs: work, close: func() {
		_ = db.Close()
		pool.Close()
	}, connections: int(config.MaxConns)}, nil
}

// statement is a query with $1, $2 … as the database wants it.
func (d *database) statement(query string) string {
	if d.kind == "sqlite" {
		return strings.ReplaceAll(query, "$", "?")
	}
	return query
}

func (d *database) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (changed int64, err error) {
	res, err := tx.ExecContext(ctx, d.statement(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (d *database) row(ctx context.Context, tx *sql.Tx, query string, args ...any) *sql.Row {
	if tx == nil {
		return d.sql.QueryRowContext(ctx, d.statement(query), args...)
	}
	return tx.QueryRowContext(ctx, d.statement(query), args...)
}

// inTx runs fn in a transaction that commits if fn returns nil. A transaction that lost
// against another one is run again.
func (d *database) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	return d.sender.InTx(ctx, func(tx *sql.Tx) error {
		err := fn(tx)
		if errors.Is(err, sender.ErrConflict) {
			return fmt.Errorf("%w: %w", sender.ErrRetryTx, err)
		}
		return err
	})
}

// away tells whether an error says that the database cannot be used just now, so
// that the same request can succeed later.
func away(err error) bool {
	if errors.Is(err, sender.ErrRetryTx) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if pgconn.SafeToRetry(err) { // a connection that was lost before anything was sent on it
		return true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "08", "53", "57", "58", "40", "55": // connection, resources, operator, system; lost or locked (PostgreSQL, appendix A)
			return true
		}
		return pg.Code == "25006" // a standby, or one that became it
	}
	var lite *sqlitedriver.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff { // sqlite.org/rescode.html
		case 5, 6, 8, 10, 13, 14: // busy, locked, read-only, I/O, full, cannot open
			return true
		}
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) && !errors.Is(err, context.Canceled)
}

// full tells whether an error says that the database's disk is full.
func full(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "53100"
	}
	var lite *sqlitedriver.Error
	return errors.As(err, &lite) && lite.Code()&0xff == 13
}
