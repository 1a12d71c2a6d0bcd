package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/inbox/inboxtest"
	"github.com/surehook/surehook/receiver/inbox/postgres"
)

// open returns an empty inbox, in a schema whose name must be quoted and which is not in
// the search_path.
func open(t *testing.T, level string) (*pgxpool.Pool, *sql.DB, *postgres.Config) {
	admin, err := sql.Open("pgx", pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	cfg := &postgres.Config{Schema: pgtest.Schema(t, admin)}
	pool, err := pgxpool.New(t.Context(), pgtest.With(pgtest.DSN(t), "default_transaction_isolation", level, "pool_max_conns", "16"))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, postgres.MigratePool(t.Context(), pool, cfg))
	require.NoError(t, postgres.Migrate(t.Context(), db, cfg), "again")
	pgtest.Age(t, db, cfg.Schema)
	return pool, db, cfg
}

// Without its tables, or their last migration, a store says what to do.
func TestNotMigrated(t *testing.T) {
	_, db, older := open(t, "read committed")
	_, err := db.Exec(`ALTER TABLE "` + older.Schema + `".surehook_inbox_lines DROP COLUMN one_scope`)
	require.NoError(t, err)
	for _, cfg := range []*postgres.Config{older, {Schema: pgtest.Schema(t, db)}} {
		store, err := postgres.NewSQL(cfg)
		require.NoError(t, err)
		for _, call := range []func(tx *sql.Tx) error{
			func(tx *sql.Tx) error { _, err := store.ClaimTx(t.Context(), tx, "s", 10, time.Hour); return err },
			func(tx *sql.Tx) error { _, err := store.ClaimTx(t.Context(), tx, "", 10, time.Hour); return err },
			func(tx *sql.Tx) error {
				_, err := store.RecordTx(t.Context(), tx, inbox.Record{Scope: "s", ID: "a", Line: "a", Type: "t", Version: 1, Body: []byte("x")})
				return err
			},
		} {
			require.ErrorContains(t, receiver.SQL(db, nil)(t.Context(), call), "call Migrate before")
		}
	}
}

func TestStore(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run("pgx, "+level, func(t *testing.T) {
			pool, db, cfg := open(t, level)
			store, err := postgres.New(cfg)
			require.NoError(t, err)
			inboxtest.Run(t, func(t *testing.T) inboxtest.Harness[pgx.Tx] {
				empty(t, db, cfg)
				return inboxtest.Harness[pgx.Tx]{Store: store, InTx: func(ctx context.Context, fn func(pgx.Tx) error) error {
					return pgx.BeginFunc(ctx, pool, fn)
				}}
			})
		})
	}
	t.Run("database/sql", func(t *testing.T) {
		_, db, cfg := open(t, "read committed")
		store, err := postgres.NewSQL(cfg)
		require.NoError(t, err)
		inboxtest.Run(t, func(t *testing.T) inboxtest.Harness[*sql.Tx] {
			empty(t, db, cfg)
			return inboxtest.Harness[*sql.Tx]{Store: store, InTx: receiver.SQL(db, nil)}
		})
	})
}

func empty(t *testing.T, db *sql.DB, cfg *postgres.Config) {
	for _, table := range []string{"events", "lines"} {
		_, err := db.Exec(`DELETE FROM "` + cfg.Schema + `".surehook_inbox_` + table)
		require.NoError(t, err)
	}
}

func TestSchemaIsChecked(t *testing.T) {
	_, err := postgres.New(&postgres.Config{Schema: strings.Repeat("s", 64)})
	require.ErrorIs(t, err, inbox.ErrInvalid)
	_, err = postgres.NewSQL(&postgres.Config{Schema: "a\x00"})
	require.ErrorIs(t, err, inbox.ErrInvalid)
}

// Events that somebody has removed from the table leave lines behind. These lines go when
// they are claimed.
func TestRemovedByHand(t *testing.T) {
	_, db, cfg := open(t, "read committed")
	store, err := postgres.NewSQL(cfg)
	require.NoError(t, err)
	inTx := receiver.SQL(db, nil)
	for _, id := range []string{"a", "b"} {
		require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
			_, err := store.RecordTx(t.Context(), tx, inbox.Record{Scope: "s", ID: id, Line: id, Type: "t", Version: 1, Body: []byte("x")})
			return err
		}))
	}
	_, err = db.Exec(`DELETE FROM "` + cfg.Schema + `".surehook_inbox_events WHERE id = 'a'`)
	require.NoError(t, err)
	require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
		claims, err := store.ClaimTx(t.Context(), tx, "s", 10, time.Hour)
		require.Len(t, claims, 1)
		return err
	}))
	var lines int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM "`+cfg.Schema+`".surehook_inbox_lines`).Scan(&lines))
	require.Equal(t, 1, lines)
}

// A line that another transaction has claimed and not committed yet is passed over at once.
// So is a line into which somebody is recording.
func TestLockedLinesArePassedOver(t *testing.T) {
	_, db, cfg := open(t, "read committed")
	store, err := postgres.NewSQL(cfg)
	require.NoError(t, err)
	inTx := receiver.SQL(db, nil)
	record := func(tx *sql.Tx, line, id string) error {
		_, err := store.RecordTx(t.Context(), tx, inbox.Record{Scope: "s", ID: id, Line: line, Type: "t", Version: 1, Body: []byte("x")})
		return err
	}
	require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
		return errors.Join(record(tx, "one", "a"), record(tx, "two", "b"), record(tx, "three", "c"))
	}))
	claim := func(tx *sql.Tx, limit, want int) error {
		claims, err := store.ClaimTx(t.Context(), tx, "s", limit, time.Hour)
		if err == nil && len(claims) != want {
			err = fmt.Errorf("claimed were %d, want %d", len(claims), want)
		}
		return err
	}
	require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
		return errors.Join(claim(tx, 1, 1), inTx(t.Context(), func(tx *sql.Tx) error {
			return errors.Join(record(tx, "two", "d"), inTx(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.Exec("SET LOCAL lock_timeout = '5s'")
				return errors.Join(err, claim(tx, 10, 1))
			}))
		}))
	}))
}

// With a large backlog, due or not, claiming reads as many rows as it claims, whichever
// plan the server makes: a plan for the actual values, or one for all values. The backlog of
// one scope is none of another one's, of which the statistics know nothing.
func TestPlans(t *testing.T) {
	pool, _, cfg := open(t, "read committed")
	ctx := t.Context()
	conn, err := pool.Acquire(ctx)
	require.NoError(t, err)
	defer conn.Release()
	for _, statement := range []string{
		`SET search_path = "` + cfg.Schema + `"`,
		`INSERT INTO surehook_inbox_events (scope, id, line, type, version, body)
			SELECT 'default', 'evt_' || n, 'object/thing/' || n % 10000, 'thing.made', n, '{}' FROM generate_series(1, 20000) AS n`,
		`INSERT INTO surehook_inbox_lines (scope, line, due_at)
			SELECT 'default', 'object/thing/' || n, clock_timestamp() + CASE WHEN n % 2 = 0 THEN interval '-1 hour' ELSE interval '1 hour' END FROM generate_series(0, 9999) AS n`,
		`ANALYZE surehook_inbox_events, surehook_inbox_lines`,
		`PREPARE lines (int, bigint, bigint) AS ` + postgres.ClaimAllLines,
		`PREPARE scope (int, bigint, bigint, text) AS ` + postgres.ClaimScopeLines,
		`PREPARE event (text, text) AS ` + postgres.ClaimEvent,
	} {
		_, err = conn.Exec(ctx, statement)
		require.NoError(t, err, statement)
	}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		_, err = conn.Exec(ctx, "SET plan_cache_mode = "+mode)
		require.NoError(t, err)
		for execute, looks := range map[string][]string{
			"lines(8, 60000000, 7)":              {"surehook_inbox_lines_several_due", "Index Cond: (due_at <= ", "Tid Scan on surehook_inbox_lines"},
			"scope(8, 60000000, 7, 'default')":   {"surehook_inbox_lines_scope_due", "Index Cond: ((ROW(scope, due_at) ", "Tid Scan on surehook_inbox_lines"},
			"scope(8, 60000000, 7, 'small')":     {"surehook_inbox_lines_scope_due", "Index Cond: ((ROW(scope, due_at) ", "Tid Scan on surehook_inbox_lines"},
			"event('default', 'object/thing/7')": {"surehook_inbox_events_line", "surehook_inbox_events_pkey"},
		} {
			rows, err := conn.Query(ctx, "EXPLAIN EXECUTE "+execute, pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			// The condition of the index is looked at again in rows that are to be locked.
			plan := strings.ReplaceAll(strings.Join(lines, "\n"), "Filter: (NOT one_scope)", "")
			for _, how := range looks {
				require.Contains(t, plan, how, mode)
			}
			require.NotContains(t, plan, "Seq Scan", mode)
			require.NotContains(t, plan, "Sort", mode)
			require.NotContains(t, plan, "Filter", mode)
		}
	}
}

// A recorded event is durable even where the server's setting would let commits be lost.
func TestDurable(t *testing.T) {
	pool, _, cfg := open(t, "read committed")
	store, err := postgres.New(cfg)
	require.NoError(t, err)
	for set, want := range map[string]string{"off": "on", "on": "on", "local": "local", "remote_write": "remote_write", "remote_apply": "remote_apply"} {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "SET LOCAL synchronous_commit = "+set)
			require.NoError(t, err)
			fresh, err := store.RecordTx(t.Context(), tx, inbox.Record{Scope: "s", ID: set, Line: "l", Type: "t", Version: 1, Body: []byte("x")})
			require.NoError(t, err)
			require.True(t, fresh)
			var commit string
			require.NoError(t, tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&commit))
			require.Equal(t, want, commit)
			return nil
		}))
	}
}
