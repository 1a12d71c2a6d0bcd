package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/internal/niltest"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
)

// newSchema returns the config of a migrated schema.
func newSchema(t testing.TB) *postgres.Config {
	t.Helper()
	db := openSQL(t)
	cfg := &postgres.Config{Schema: pgtest.Schema(t, db)}
	require.NoError(t, postgres.Migrate(t.Context(), db, cfg))
	pgtest.Age(t, db, cfg.Schema)
	return cfg
}

func openSQL(t testing.TB, settings ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", pgtest.With(pgtest.DSN(t), settings...))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// writers is how many connections a pool has, which a suite's tests share: to make one
// takes the server as long as many statements.
const writers = 16

func openPool(t testing.TB, settings ...string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), pgtest.With(pgtest.DSN(t), append(settings, "pool_max_conns", strconv.Itoa(writers))...))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// begin returns a transaction that does not outlive the test, because the pool's close
// would wait for it.
func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func inPgx(pool *pgxpool.Pool) func(context.Context, func(pgx.Tx) error) error {
	return func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, pool, fn) }
}

// late has a transaction run again that PostgreSQL says a user has canceled. Now and then that
// is a lock_timeout which passed just as the lock was granted: a second wait begins before the
// first signal is looked at, and the server has forgotten why it came.
func late[Tx any](inTx func(context.Context, func(Tx) error) error) func(context.Context, func(Tx) error) error {
	return func(ctx context.Context, fn func(Tx) error) error {
		err := inTx(ctx, fn)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "57014" {
			return errors.Join(dedup.ErrRetryTx, err)
		}
		return err
	}
}

func newPgx(t testing.TB, cfg *postgres.Config) *postgres.Store[pgx.Tx] {
	t.Helper()
	s, err := postgres.New(cfg)
	require.NoError(t, err)
	return s
}

func newSQL(t testing.TB, cfg *postgres.Config) *postgres.Store[*sql.Tx] {
	t.Helper()
	s, err := postgres.NewSQL(cfg)
	require.NoError(t, err)
	return s
}

func TestStore(t *testing.T) {
	for name, settings := range map[string][]string{
		"read committed":  {"default_transaction_isolation", "read committed"},
		"repeatable read": {"default_transaction_isolation", "repeatable read"},
		"serializable":    {"default_transaction_isolation", "serializable"},
		// Every wait is an error at once.
		"without waiting": {"lock_timeout", "1"},
		// The mode suits poolers. The server then writes times as the session wants them.
		"without prepared statements": {"default_query_exec_mode", "simple_protocol", "datestyle", "German"},
	} {
		t.Run(name+", pgx", func(t *testing.T) {
			t.Parallel()
			cfg, inTx := newSchema(t), late(inPgx(openPool(t, settings...)))
			var harness func(t *testing.T) deduptest.Harness[pgx.Tx]
			harness = func(t *testing.T) deduptest.Harness[pgx.Tx] {
				return deduptest.Harness[pgx.Tx]{Store: newPgx(t, cfg), InTx: inTx, Reopen: harness}
			}
			deduptest.Run(t, harness)
		})
		t.Run(name+", pgx, begun with the first statement", func(t *testing.T) {
			t.Parallel()
			cfg, inTx := newSchema(t), late(postgres.InTx(openPool(t, settings...), pgx.TxOptions{}))
			var harness func(t *testing.T) deduptest.Harness[pgx.Tx]
			harness = func(t *testing.T) deduptest.Harness[pgx.Tx] {
				return deduptest.Harness[pgx.Tx]{Store: newPgx(t, cfg), InTx: inTx, Reopen: harness}
			}
			deduptest.Run(t, harness)
		})
		t.Run(name+", database/sql", func(t *testing.T) {
			t.Parallel()
			cfg, db := newSchema(t), openSQL(t, settings...)
			db.SetMaxOpenConns(writers)
			db.SetMaxIdleConns(writers)
			var harness func(t *testing.T) deduptest.Harness[*sql.Tx]
			harness = func(t *testing.T) deduptest.Harness[*sql.Tx] {
				return deduptest.Harness[*sql.Tx]{Store: newSQL(t, cfg), InTx: late(postgres.InTxSQL(db, nil)), Reopen: harness}
			}
			deduptest.Run(t, harness)
		})
	}
}

// Every wait that is too long, and every write to an old snapshot, returns an error that
// asks for another run of the transaction. The error still contains the driver's error.
func TestLostTransactionsAreErrRetryTx(t *testing.T) {
	ctx, obj := t.Context(), dedup.Object{Type: "subscriber", ID: "1"}
	for _, c := range []struct {
		name, state string
		settings    []string
		commit      bool // the first transaction, before the second goes on
	}{
		{"lock timeout", "55P03", []string{"lock_timeout", "1"}, false},
		{"old snapshot, repeatable read", "40001", []string{"default_transaction_isolation", "repeatable read"}, true},
		{"old snapshot, serializable", "40001", []string{"default_transaction_isolation", "serializable"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := newSchema(t)
			s, pool := newPgx(t, cfg), openPool(t, c.settings...)
			require.NoError(t, inPgx(pool)(ctx, func(tx pgx.Tx) error {
				if _, err := s.Advance(ctx, tx, "test", obj, 1); err != nil {
					return err
				}
				if _, err := s.Mark(ctx, tx, "test", "again", time.Now()); err != nil {
					return err
				}
				_, err := s.AskReapply(ctx, tx, dedup.Reapply{Scope: "test", ID: "again", At: time.Now()})
				return err
			}))
			letter := dedup.DeadLetter{Scope: "test", ID: "a", Type: "x", At: time.Now()}
			for what, call := range map[string]func(tx pgx.Tx) error{
				"Mark": func(tx pgx.Tx) error {
					_, err := s.Mark(ctx, tx, "test", "a", time.Now())
					return err
				},
				"Advance": func(tx pgx.Tx) error {
					_, err := s.Advance(ctx, tx, "test", obj, 9)
					return err
				},
				"MarkAndAdvance, marker": func(tx pgx.Tx) error {
					_, _, err := s.MarkAndAdvance(ctx, tx, "test", "a", time.Now(), dedup.Object{Type: "other", ID: "1"}, 9)
					return err
				},
				"MarkAndAdvance, version": func(tx pgx.Tx) error {
					_, _, err := s.MarkAndAdvance(ctx, tx, "test", "b", time.Now(), obj, 9)
					return err
				},
				"SetAside": func(tx pgx.Tx) error { return s.SetAside(ctx, tx, letter) },
				"TakeReapply": func(tx pgx.Tx) error {
					_, err := s.TakeReapply(ctx, tx, "test", "again", obj)
					return err
				},
				"AdvanceAgain": func(tx pgx.Tx) error {
					_, err := s.AdvanceAgain(ctx, tx, "test", obj, 5)
					return err
				},
			} {
				first, second := begin(t, pool), begin(t, pool)
				_, err := s.Version(ctx, second, "test", obj) // its snapshot
				require.NoError(t, err)
				_, _, err = s.MarkAndAdvance(ctx, first, "test", "a", time.Now(), obj, 5)
				require.NoError(t, err)
				require.NoError(t, s.SetAside(ctx, first, letter))
				due, err := s.TakeReapply(ctx, first, "test", "again", obj)
				require.NoError(t, err)
				require.True(t, due)
				if c.commit {
					require.NoError(t, first.Commit(ctx))
				}
				err = call(second)
				require.ErrorIs(t, err, dedup.ErrRetryTx, what)
				var cause *pgconn.PgError
				require.ErrorAs(t, err, &cause, what)
				require.Equal(t, c.state, cause.Code, what)
				require.NoError(t, second.Rollback(ctx))
				if !c.commit {
					require.NoError(t, first.Rollback(ctx))
					continue
				}
				_, err = pool.Exec(ctx, `TRUNCATE `+cfg.Schema+`.surehook_dedup_dead_letters;
					DELETE FROM `+cfg.Schema+`.surehook_dedup_markers WHERE id <> 'again';
					UPDATE `+cfg.Schema+`.surehook_dedup_markers SET reapplied = 0;
					UPDATE `+cfg.Schema+`.surehook_dedup_versions SET version = 1`)
				require.NoError(t, err)
			}
		})
	}
}

// Rows that another transaction is removing are passed over, without a wait.
func TestPruneSkipsWhatOthersPrune(t *testing.T) {
	ctx := t.Context()
	s, pool := newPgx(t, newSchema(t)), openPool(t, "lock_timeout", "5000")
	at := time.Now()
	require.NoError(t, inPgx(pool)(ctx, func(tx pgx.Tx) error {
		for i := range 5 {
			if _, err := s.Mark(ctx, tx, "test", strconv.Itoa(i), at.Add(time.Duration(i)*time.Second)); err != nil {
				return err
			}
		}
		_, err := s.AskReapply(ctx, tx, dedup.Reapply{Scope: "test", ID: "1", At: at})
		return err
	}))
	first := begin(t, pool)
	n, err := s.Prune(ctx, first, at.Add(time.Hour), 3)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.NoError(t, inPgx(pool)(ctx, func(tx pgx.Tx) error {
		n, err = s.Prune(ctx, tx, at.Add(time.Hour), 2)
		return err
	}))
	require.Equal(t, 2, n)
	_, err = s.Prune(ctx, first, at.Add(time.Hour), 3) // no marker is left, so the request goes
	require.NoError(t, err)
	require.NoError(t, inPgx(pool)(ctx, func(tx pgx.Tx) error {
		_, err := s.Prune(ctx, tx, at.Add(time.Hour), 3)
		return err
	}))
}

// The cost of pruning must not grow with the markers that stay.
func TestPruneUsesTheIndex(t *testing.T) {
	ctx := t.Context()
	cfg := newSchema(t)
	db := openSQL(t, "search_path", cfg.Schema)
	_, err := db.ExecContext(ctx, `INSERT INTO surehook_dedup_markers
		SELECT 's', 'event-' || i, 'epoch'::timestamptz + i * interval '1 s' FROM generate_series(1, 20000) AS i`)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, "ANALYZE surehook_dedup_markers")
	require.NoError(t, err)
	rows, err := db.QueryContext(ctx, "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, COSTS OFF) "+postgres.PruneQuery, time.Now(), 100)
	require.NoError(t, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		plan.WriteString(line + "\n")
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan.String(), "Tid Scan on surehook_dedup_markers")
	// PostgreSQL 18 counts rows with decimals.
	require.Regexp(t, `Index Scan using surehook_dedup_markers_by_time on surehook_dedup_markers surehook_dedup_markers_1 \(actual rows=100(\.00)? `, plan.String())
	require.NotContains(t, plan.String(), "Seq Scan")
	require.NotContains(t, plan.String(), "Sort")
}

// A store that names a schema does not depend on the search_path. A store that names none
// follows it.
func TestSchema(t *testing.T) {
	ctx := t.Context()
	named, other := newSchema(t), newSchema(t)
	mark := func(s *postgres.Store[*sql.Tx], path string) (fresh bool) {
		require.NoError(t, postgres.InTxSQL(openSQL(t, "search_path", path), nil)(ctx, func(tx *sql.Tx) (err error) {
			fresh, err = s.Mark(ctx, tx, "test", "a", time.Now())
			return err
		}))
		return fresh
	}
	require.True(t, mark(newSQL(t, named), other.Schema))
	require.False(t, mark(newSQL(t, named), "pg_catalog"))
	require.True(t, mark(newSQL(t, nil), other.Schema))
	require.False(t, mark(newSQL(t, nil), named.Schema))

	long := &postgres.Config{Schema: strings.Repeat("x", 64)}
	_, err := postgres.New(long)
	require.ErrorIs(t, err, dedup.ErrInvalid)
	require.ErrorContains(t, err, "schema has 64 bytes: at most 63 are allowed")
	_, err = postgres.NewSQL(long)
	require.ErrorIs(t, err, dedup.ErrInvalid)
	require.ErrorContains(t, postgres.Migrate(ctx, openSQL(t), long), "schema has 64 bytes")
}

func TestNilTransaction(t *testing.T) {
	pgxStore, err := postgres.New(nil)
	require.NoError(t, err)
	sqlStore, err := postgres.NewSQL(nil)
	require.NoError(t, err)
	niltest.Refused(t, pgxStore)
	niltest.Refused(t, sqlStore)
}

// Without the tables the error says which one is missing.
func TestNotMigrated(t *testing.T) {
	s := newPgx(t, &postgres.Config{Schema: pgtest.Schema(t, openSQL(t))})
	err := inPgx(openPool(t))(t.Context(), func(tx pgx.Tx) error {
		_, err := s.Mark(t.Context(), tx, "test", "a", time.Now())
		return err
	})
	require.ErrorContains(t, err, "dedup: marking an event: ")
	require.ErrorContains(t, err, "surehook_dedup_markers")
}

func TestMigrations(t *testing.T) {
	ctx := t.Context()
	cfg, db := newSchema(t), openSQL(t)
	require.NoError(t, postgres.Migrate(ctx, db, cfg), "again")
	var tables string
	require.NoError(t, db.QueryRowContext(ctx, `SELECT string_agg(tablename::text, ',' ORDER BY tablename)
		FROM pg_tables WHERE schemaname = $1`, cfg.Schema).Scan(&tables))
	require.Equal(t, "surehook_dedup_dead_letters,surehook_dedup_markers,surehook_dedup_reapplies,surehook_dedup_versions,surehook_migrations", tables)
	require.NoError(t, postgres.Migrate(ctx, openSQL(t, "search_path", cfg.Schema), nil), "a nil config is the search_path")

	pool, other := openPool(t), &postgres.Config{Schema: pgtest.Schema(t, db)}
	require.NoError(t, postgres.MigratePool(ctx, pool, other))
	require.NoError(t, postgres.MigratePool(ctx, pool, other), "again: the pool stays open")
	require.Zero(t, pool.Stat().AcquiredConns(), "it has its connection back")
	require.NoError(t, postgres.Migrate(ctx, db, other), "again")
	require.ErrorContains(t, postgres.MigratePool(ctx, nil, other), "the pool is nil")
	names, err := fs.Glob(postgres.Migrations(), "*")
	require.NoError(t, err)
	require.Equal(t, []string{"001_dedup.sql", "002_reapplies.sql"}, names)
}
