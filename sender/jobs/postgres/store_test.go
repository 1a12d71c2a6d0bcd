package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/jobs/jobstest"
	"github.com/surehook/surehook/sender/jobs/postgres"
)

func openPool(t testing.TB, settings ...string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), pgtest.With(pgtest.DSN(t), append([]string{"pool_max_conns", "8"}, settings...)...))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// schema names one that is dropped when the test ends.
func schema(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	name := newid.New("test_", time.Now())
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), `DROP SCHEMA IF EXISTS "`+name+`" CASCADE`)
		require.NoError(t, err)
	})
	return name
}

// clock makes a clock in a schema that stands still. It returns the clock's SQL
// expression and a function that moves it.
func clock(t *testing.T, pool *pgxpool.Pool, schema string) (string, func(time.Duration)) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `CREATE TABLE "`+schema+`".test_clock AS SELECT timestamptz '2026-11-20 12:00:00Z' AS at`)
	require.NoError(t, err)
	return `(SELECT at FROM "` + schema + `".test_clock)`, func(d time.Duration) {
		_, err := pool.Exec(context.Background(), fmt.Sprintf(`UPDATE "%s".test_clock SET at = at + interval '%d microseconds'`, schema, d.Microseconds()))
		require.NoError(t, err)
	}
}

func aged(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	db := stdlib.OpenDBFromPool(pool)
	pgtest.Age(t, db, schema)
	require.NoError(t, db.Close())
}

// onPgx opens stores in schemas of their own.
func onPgx(pool *pgxpool.Pool) func(t *testing.T) jobstest.Harness[pgx.Tx] {
	return func(t *testing.T) jobstest.Harness[pgx.Tx] {
		name := schema(t, pool)
		s, err := postgres.New(pool, &postgres.Config{Schema: name})
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		aged(t, pool, name)
		now, advance := clock(t, pool, name)
		s.SetClock(now)
		return jobstest.Harness[pgx.Tx]{
			Store: s, Advance: advance, ConcurrentWriters: true,
			Begin: func(t *testing.T) (pgx.Tx, func() error, func() error) {
				tx, err := pool.Begin(t.Context())
				require.NoError(t, err)
				return tx, func() error { return tx.Commit(context.Background()) }, func() error { return tx.Rollback(context.Background()) }
			},
		}
	}
}

// every tells whether all is to be run, however long it takes.
func every() bool { return os.Getenv("SUREHOOK_EVERY") == "1" }

// A store does the same in all of pgx's query modes: TestStore has the default. In two of
// the others pgx guesses the types of arguments, and does not ask for them; with
// SUREHOOK_EVERY=1 all run.
func TestStoreInQueryModes(t *testing.T) {
	t.Parallel()
	modes := []string{"exec", "simple_protocol"}
	if every() {
		modes = append(modes, "cache_describe", "describe_exec")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			jobstest.Run(t, onPgx(openPool(t, "default_query_exec_mode", mode)))
		})
	}
}

// A store does the same for each driver at each isolation level. With SUREHOOK_EVERY=1 all
// pairs run; else each driver and each level, and the default ones of both.
func TestStore(t *testing.T) {
	t.Parallel()
	pairs := [][2]string{{"pgx", "read committed"}, {"sql", "read committed"}, {"sql", "repeatable read"}, {"pgx", "serializable"}}
	if every() {
		pairs = append(pairs, [2]string{"pgx", "repeatable read"}, [2]string{"sql", "serializable"})
	}
	for _, p := range pairs {
		t.Run(p[0]+"_"+strings.ReplaceAll(p[1], " ", "_"), func(t *testing.T) {
			t.Parallel()
			pool := openPool(t, "default_transaction_isolation", p[1])
			if p[0] == "pgx" {
				jobstest.Run(t, onPgx(pool))
			} else {
				jobstest.Run(t, onSQL(pool))
			}
		})
	}
}

// onSQL opens stores in schemas of their own, for callers with database/sql.
func onSQL(pool *pgxpool.Pool) func(t *testing.T) jobstest.Harness[*sql.Tx] {
	db := stdlib.OpenDBFromPool(pool)
	return func(t *testing.T) jobstest.Harness[*sql.Tx] {
		name := schema(t, pool)
		s, err := postgres.NewSQL(pool, &postgres.Config{Schema: name})
		require.NoError(t, err)
		require.NoError(t, s.Migrate(t.Context()))
		aged(t, pool, name)
		now, advance := clock(t, pool, name)
		s.SetClock(now)
		return jobstest.Harness[*sql.Tx]{
			Store: s, Advance: advance, ConcurrentWriters: true,
			Begin: func(t *testing.T) (*sql.Tx, func() error, func() error) {
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				return tx, tx.Commit, tx.Rollback
			},
		}
	}
}

func TestUnfit(t *testing.T) {
	pool := openPool(t)
	s, err := postgres.New(pool, &postgres.Config{Schema: schema(t, pool)})
	require.NoError(t, err)
	err = s.Check(t.Context())
	require.ErrorIs(t, err, sender.ErrUnfit)
	require.ErrorContains(t, err, "call Migrate before")
	_, err = postgres.New(nil, &postgres.Config{Schema: strings.Repeat("a", 64)})
	require.ErrorContains(t, err, "needs a *pgxpool.Pool")
	require.ErrorContains(t, err, "at most 63")
}

// A submission, a saved step and a cancellation are durable, also if the server's
// setting lets commits be lost.
func TestDurable(t *testing.T) {
	pool := openPool(t)
	s, err := postgres.New(pool, &postgres.Config{Schema: schema(t, pool)})
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		_, _, err := s.InsertTx(t.Context(), tx, jobs.Record{Job: jobs.Job{ID: "job_0", Kind: "work", Input: []byte("1")}})
		return err
	}))
	for name, call := range map[string]func(tx pgx.Tx, set string) error{
		"insert": func(tx pgx.Tx, set string) error {
			_, _, err := s.InsertTx(t.Context(), tx, jobs.Record{Job: jobs.Job{ID: "job_" + set, Kind: "work", Input: []byte("1")}})
			return err
		},
		"update": func(tx pgx.Tx, _ string) error {
			r, _, err := s.LockTx(t.Context(), tx, jobs.Key{ID: "job_0"})
			require.NoError(t, err)
			r.State = []byte("a step")
			return s.UpdateTx(t.Context(), tx, r)
		},
	} {
		for set, want := range map[string]string{"off": "on", "on": "on", "local": "local", "remote_write": "remote_write", "remote_apply": "remote_apply"} {
			t.Run(name+", "+set, func(t *testing.T) {
				require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
					_, err := tx.Exec(t.Context(), "SET LOCAL synchronous_commit = "+set)
					require.NoError(t, err)
					require.NoError(t, call(tx, set))
					var commit string
					require.NoError(t, tx.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&commit))
					require.Equal(t, want, commit)
					return nil
				}))
			})
		}
	}
}

// A function that has ended its transaction by a statement does not get its state stored
// without its effects, and a caller no job without his change.
func TestEndedTransaction(t *testing.T) {
	pool := openPool(t)
	t.Run("pgx", func(t *testing.T) {
		endedTransaction(t, onPgx(pool)(t), func(tx pgx.Tx, statement string) {
			_, err := tx.Exec(t.Context(), statement)
			require.NoError(t, err)
		})
	})
	t.Run("sql", func(t *testing.T) {
		endedTransaction(t, onSQL(pool)(t), func(tx *sql.Tx, statement string) {
			_, err := tx.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		})
	})
}

func endedTransaction[Tx any](t *testing.T, h jobstest.Harness[Tx], exec func(tx Tx, statement string)) {
	ctx, s := t.Context(), h.Store
	require.NoError(t, s.InTx(ctx, func(tx Tx) error {
		_, _, err := s.InsertTx(ctx, tx, jobs.Record{Job: jobs.Job{ID: "job_1", Kind: "work", Input: []byte("1")}})
		return err
	}))
	for _, statement := range []string{"ROLLBACK", "COMMIT"} {
		require.ErrorIs(t, s.InTx(ctx, func(tx Tx) error {
			r, _, err := s.LockTx(ctx, tx, jobs.Key{ID: "job_1"})
			require.NoError(t, err)
			exec(tx, statement)
			r.State = []byte(statement)
			return s.UpdateTx(ctx, tx, r)
		}), sql.ErrTxDone, statement)
		require.ErrorIs(t, s.InTx(ctx, func(tx Tx) error {
			_, _, err := s.LockTx(ctx, tx, jobs.Key{ID: "job_1"})
			exec(tx, statement)
			return err
		}), sql.ErrTxDone, "%s, and nothing after it", statement)
		require.NoError(t, s.InTx(ctx, func(tx Tx) error {
			r, err := s.GetTx(ctx, tx, jobs.Key{ID: "job_1"})
			require.Empty(t, r.State, statement)
			return err
		}))
		tx, _, rollback := h.Begin(t)
		exec(tx, statement)
		_, _, err := s.InsertTx(ctx, tx, jobs.Record{Job: jobs.Job{ID: "job_2", Kind: "work", Input: []byte("1")}})
		_ = rollback()
		require.ErrorIs(t, err, sql.ErrTxDone, "%s, and a job", statement)
		require.ErrorIs(t, s.InTx(ctx, func(tx Tx) error {
			_, err := s.GetTx(ctx, tx, jobs.Key{ID: "job_2"})
			return err
		}), jobs.ErrNotFound, statement)
	}
}

// beforeQuery is a transaction that calls a function before one of its queries.
type beforeQuery struct {
	pgx.Tx
	queries, at int
	call        func()
}

func (b *beforeQuery) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if b.queries++; b.queries == b.at {
		b.call()
	}
	return b.Tx.Query(ctx, sql, args...)
}

// Pages have each job that stays, whatever is pruned between the statements of one.
func TestListBesidePruning(t *testing.T) {
	pool := openPool(t)
	h := onPgx(pool)(t)
	ctx := t.Context()
	for i := range 6 {
		kind := "other"
		if i == 2 {
			kind = "work"
		}
		require.NoError(t, h.Store.InTx(ctx, func(tx pgx.Tx) error {
			_, _, err := h.Store.InsertTx(ctx, tx, jobs.Record{Job: jobs.Job{ID: fmt.Sprint("job_", i), Kind: kind, Input: []byte("1")}})
			return err
		}))
	}
	prune := func() {
		require.NoError(t, h.Store.InTx(ctx, func(tx pgx.Tx) error {
			_, err := h.Store.PruneTx(ctx, tx, jobs.PruneQuery{Age: time.Hour, Limit: 10})
			return err
		}))
	}
	require.NoError(t, h.Store.InTx(ctx, func(tx pgx.Tx) error { // the two newest have ended long ago
		for _, id := range []string{"job_4", "job_5"} {
			r, now, err := h.Store.LockTx(ctx, tx, jobs.Key{ID: id})
			require.NoError(t, err)
			r.Status, r.FinishedAt = jobs.Succeeded, now
			require.NoError(t, h.Store.UpdateTx(ctx, tx, r))
		}
		return nil
	}))
	h.Advance(2 * time.Hour)
	var found []string
	q := jobs.ListQuery{Kind: "work", Limit: 1, Examine: 3}
	for first := true; first || q.Before > 0; first = false {
		tx, err := pool.Begin(ctx)
		require.NoError(t, err)
		page, next, err := h.Store.ListTx(ctx, &beforeQuery{Tx: tx, at: 2, call: prune}, q)
		require.NoError(t, err)
		require.NoError(t, tx.Rollback(ctx))
		for _, r := range page {
			found = append(found, r.ID)
		}
		q.Before = next
	}
	require.Equal(t, []string{"job_2"}, found)
}

// A claim finds due jobs without looking at the others.
func TestPlans(t *testing.T) {
	pool := openPool(t, "enable_seqscan", "off", "enable_bitmapscan", "off", "enable_sort", "off")
	name := schema(t, pool)
	s, err := postgres.New(pool, &postgres.Config{Schema: name})
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	for index, query := range map[string]string{
		"surehook_jobs_due":        `SELECT no FROM {} j WHERE j.kind = 'a' AND j.finished_at IS NULL AND j.due <= now() AND (j.callback_url = '' OR NOT false) AND j.owner NOT IN (SELECT json_array_elements_text('["a"]'::text::json)) ORDER BY j.due, j.no LIMIT 4 FOR NO KEY UPDATE OF j SKIP LOCKED`,
		"surehook_jobs_finished":   `SELECT no FROM {} WHERE finished_at < now() ORDER BY finished_at, no LIMIT 4`,
		"surehook_jobs_owner":      `SELECT no FROM {} j WHERE j.owner = 'a' AND j.no < 5 ORDER BY j.no DESC LIMIT 4`,
		"surehook_jobs_unfinished": `SELECT no FROM {} j WHERE j.no < 5 AND j.owner = 'a' AND j.finished_at IS NULL ORDER BY j.no DESC LIMIT 4`,
		"surehook_jobs_key":        `SELECT no FROM {} j WHERE j.key_scope = 'a' AND j.idempotency_key = 'b' AND j.idempotency_key <> ''`,
	} {
		rows, err := pool.Query(t.Context(), `EXPLAIN `+strings.ReplaceAll(query, "{}", `"`+name+`".surehook_jobs`))
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan := strings.Join(lines, "\n")
		require.Contains(t, plan, index, query)
		require.NotContains(t, plan, "Sort", query)
	}
}
