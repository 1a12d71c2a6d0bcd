package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver

	"github.com/surehook/surehook/dedup"
	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	dedupsqlite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender/jobs"
	jobspostgres "github.com/surehook/surehook/sender/jobs/postgres"
	jobssqlite "github.com/surehook/surehook/sender/jobs/sqlite"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// SQLite and Postgres are the stores.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// place has the databases: the sender's, with its jobs, and the receivers'.
type place struct {
	store            string
	sending, applies string // DSNs
	drop             func(ctx context.Context) error
}

// tables are the soak's own: for the changes of publishers' transactions, for those of
// jobs, and for the effects at the receivers.
var (
	sendingTables = []string{
		"CREATE TABLE soak_things (nonce BIGINT NOT NULL PRIMARY KEY)",
		"CREATE TABLE soak_steps (job TEXT NOT NULL, step BIGINT NOT NULL)",
		"CREATE INDEX soak_steps_job ON soak_steps (job)",
	}
	applyingTables = []string{
		"CREATE TABLE soak_effects (scope TEXT NOT NULL, id TEXT NOT NULL)",
		"CREATE INDEX soak_effects_id ON soak_effects (id)",
		"CREATE TABLE soak_states (scope TEXT NOT NULL, object TEXT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (scope, object))",
	}
)

// newPlace makes empty databases: in a folder, or in schemas of a PostgreSQL server.
func newPlace(ctx context.Context, cfg *Config) (_ *place, err error) {
	p := &place{store: cfg.Store, drop: func(context.Context) error { return nil }}
	switch cfg.Store {
	case SQLite:
		const settings = "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)&_txlock=immediate"
		escape := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")
		p.sending = "file:" + escape.Replace(filepath.Join(cfg.Dir, "sending.db")) + settings
		p.applies = "file:" + escape.Replace(filepath.Join(cfg.Dir, "applying.db")) + settings
	case Postgres:
		if err := p.schemas(ctx, cfg.DSN); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("soak: there is no store %q: sqlite and postgres are", cfg.Store)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.drop(context.WithoutCancel(ctx)))
		}
	}()
	s, err := p.openSending(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	a, err := p.openApplying(ctx)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if err := errors.Join(s.store.Migrate(ctx), s.jobs.Migrate(ctx), a.migrate(ctx)); err != nil {
		return nil, err
	}
	return p, errors.Join(s.execAll(ctx, sendingTables), a.execAll(ctx, applyingTables))
}

func (p *place) schemas(ctx context.Context, dsn string) error {
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer admin.Close()
	name := strings.ToLower(newid.New("soak_", time.Now()))
	sending, applies := name+"_sending", name+"_applying"
	for _, schema := range []string{sending, applies} {
		if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
			return err
		}
	}
	p.sending, p.applies = pgtest.With(dsn, "search_path", sending), pgtest.With(dsn, "search_path", applies)
	p.drop = func(ctx context.Context) error {
		admin, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer admin.Close()
		_, err = admin.ExecContext(ctx, "DROP SCHEMA "+sending+", "+applies+" CASCADE")
		return err
	}
	return nil
}

// base is a database with connections of its own, like a process's.
type base struct {
	kind  string
	db    *sql.DB
	close func()
}

func (p *place) open(ctx context.Context, dsn string, connections int32) (*base, *pgxpool.Pool, error) {
	if p.store == SQLite {
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxIdleConns(int(connections))
		return &base{p.store, db, func() { _ = db.Close() }}, nil, nil
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	return &base{p.store, db, func() {
		_ = db.Close()
		pool.Close()
	}}, pool, nil
}

// q is a statement with $1, $2 … in the database's syntax.
func (b *base) q(statement string) string {
	if b.kind == SQLite {
		return strings.ReplaceAll(statement, "$", "?")
	}
	return statement
}

func (b *base) exec(ctx context.Context, tx *sql.Tx, statement string, args ...any) error {
	_, err := tx.ExecContext(ctx, b.q(statement), args...)
	return err
}

func (b *base) execAll(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if _, err := b.db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// rows counts the rows of each table.
func (b *base) rows(ctx context.Context) (map[string]int64, error) {
	query := "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
	if b.kind == SQLite {
		query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	}
	names, err := column[string](ctx, b, query)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for _, name := range names {
		var n int64
		if err := b.db.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&n); err != nil {
			return nil, err
		}
		all[name] = n
	}
	return all, nil
}

// column reads the values of a query's one column.
func column[T any](ctx context.Context, b *base, query string, args ...any) (values []T, err error) {
	rows, err := b.db.QueryContext(ctx, b.q(query), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// sendingStore has the methods that sender/sqlite and sender/postgres share.
type sendingStore interface {
	storetest.Store[*sql.Tx]
	Migrate(ctx context.Context) error
}

// jobsStore has the methods that jobs/sqlite and jobs/postgres share.
type jobsStore interface {
	jobs.Store[*sql.Tx]
	Migrate(ctx context.Context) error
}

// sending is the sender's database.
type sending struct {
	*base
	store sendingStore
	jobs  jobsStore
}

func (p *place) openSending(ctx context.Context) (_ *sending, err error) {
	b, pool, err := p.open(ctx, p.sending, 12)
	if err != nil {
		return nil, err
	}
	s := &sending{base: b}
	if pool == nil {
		s.store, s.jobs, err = onSQLite(b.db)
	} else {
		s.store, s.jobs, err = onPostgres(pool)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return s, nil
}

func onSQLite(db *sql.DB) (sendingStore, jobsStore, error) {
	store, err := sqlite.New(db, nil)
	if err != nil {
		return nil, nil, err
	}
	work, err := jobssqlite.New(db, nil)
	return store, work, err
}

func onPostgres(pool *pgxpool.Pool) (sendingStore, jobsStore, error) {
	store, err := postgres.NewSQL(pool, nil)
	if err != nil {
		return nil, nil, err
	}
	work, err := jobspostgres.NewSQL(pool, nil)
	return store, work, err
}

// applying is the receivers' database.
type applying struct {
	*base
	dedup   dedup.Store[*sql.Tx]
	migrate func(ctx context.Context) error
}

func (p *place) openApplying(ctx context.Context) (*applying, error) {
	b, pool, err := p.open(ctx, p.applies, 16)
	if err != nil {
		return nil, err
	}
	if pool == nil {
		return &applying{b, dedupsqlite.New(), func(ctx context.Context) error { return dedupsqlite.Migrate(ctx, b.db) }}, nil
	}
	store, err := deduppostgres.NewSQL(nil)
	if err != nil {
		b.close()
		return nil, err
	}
	return &applying{b, store, func(ctx context.Context) error { return deduppostgres.Migrate(ctx, b.db, nil) }}, nil
}
