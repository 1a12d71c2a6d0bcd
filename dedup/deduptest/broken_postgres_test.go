package deduptest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
)

func goodPostgres(t *testing.T) (full[pgx.Tx], deduptest.Harness[pgx.Tx]) {
	return postgresAt(t, pgx.ReadCommitted)
}

// postgresAt gives each test a schema of its own, because the broken stores run side by
// side, and some prune. The transactions find the schema by their search_path, because the
// statements of the broken stores need it.
func postgresAt(t *testing.T, level pgx.TxIsoLevel) (full[pgx.Tx], deduptest.Harness[pgx.Tx]) {
	s, err := postgres.New(nil)
	require.NoError(t, err)
	return s, deduptest.Harness[pgx.Tx]{InTx: inLevel(poolOf(t), level)}
}

// pools are the pools of the running tests, each on a schema of its own, and those that wait
// for the next test. To make a schema and its connections takes longer than most rules.
var pools struct {
	mu   sync.Mutex
	used map[*testing.T]*pgxpool.Pool
	free []*pgxpool.Pool
}

func poolOf(t *testing.T) *pgxpool.Pool {
	pools.mu.Lock()
	defer pools.mu.Unlock()
	if pool := pools.used[t]; pool != nil {
		return pool
	}
	var pool *pgxpool.Pool
	if n := len(pools.free); n > 0 {
		pool, pools.free = pools.free[n-1], pools.free[:n-1]
	} else {
		pool = newPool(t)
	}
	if pools.used == nil {
		pools.used = map[*testing.T]*pgxpool.Pool{}
	}
	pools.used[t] = pool
	t.Cleanup(func() {
		pools.mu.Lock()
		defer pools.mu.Unlock()
		delete(pools.used, t)
		if pool.Stat().AcquiredConns() == 0 { // else something still works on it
			pools.free = append(pools.free, pool)
		}
	})
	return pool
}

// newPool opens a pool on a new schema.
func newPool(t *testing.T) *pgxpool.Pool {
	ctx := context.WithoutCancel(t.Context())
	name := newid.New("test_", time.Now())
	pool, err := pgxpool.New(ctx, pgtest.With(pgtest.DSN(t), "search_path", name, "pool_max_conns", "16"))
	require.NoError(t, err)
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	_, err = db.ExecContext(ctx, `CREATE SCHEMA "`+name+`"`)
	require.NoError(t, err)
	require.NoError(t, postgres.Migrate(ctx, db, &postgres.Config{Schema: name}))
	return pool
}

// dropPools removes the schemas of the pools that are free, and closes them.
func dropPools() {
	for _, pool := range pools.free {
		_, _ = pool.Exec(context.Background(), `DROP SCHEMA "`+pool.Config().ConnConfig.RuntimeParams["search_path"]+`" CASCADE`)
		pool.Close()
	}
	pools.free = nil
}

func inLevel(pool *pgxpool.Pool, level pgx.TxIsoLevel) func(context.Context, func(pgx.Tx) error) error {
	return func(ctx context.Context, fn func(pgx.Tx) error) error {
		return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: level}, fn)
	}
}

func inPostgres() []breakage[pgx.Tx] {
	type tx = pgx.Tx
	type b = *broken[tx]
	type h = *deduptest.Harness[tx]
	exec := func(ctx context.Context, tx tx, query string, args ...any) (int64, error) {
		tag, err := tx.Exec(ctx, query, args...)
		return tag.RowsAffected(), dedup.WrapError(ctx, "executing", err)
	}
	marked := func(ctx context.Context, tx tx, scope, id string) (seen bool, err error) {
		err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM surehook_dedup_markers WHERE scope = $1 AND id = $2)", scope, id).Scan(&seen)
		return seen, dedup.WrapError(ctx, "reading", err)
	}
	return []breakage[tx]{
		{"looks, inserts, and takes the violation for a duplicate", []string{"usable-after-waiting"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				if err := dedup.CheckMark(scope, id, at); err != nil {
					return false, err
				}
				if seen, err := marked(ctx, tx, scope, id); err != nil || seen {
					return false, err
				}
				_, err := exec(ctx, tx, "INSERT INTO surehook_dedup_markers VALUES ($1, $2, $3)", scope, id, at)
				var pg *pgconn.PgError
				if errors.As(err, &pg) && pg.Code == "23505" {
					return false, nil
				}
				return err == nil, err
			}
		}},
		{"looks, then inserts what is not there", []string{"uncommitted-marker", "many-writers"}, func(b b, _ h) {
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				if err := dedup.CheckMark(scope, id, at); err != nil {
					return false, err
				}
				if seen, err := marked(ctx, tx, scope, id); err != nil || seen {
					return false, err
				}
				_, err := b.full.Mark(ctx, tx, scope, id, at)
				return err == nil, err
			}
		}},
		{"compares, then stores", []string{"uncommitted-version", "mark-and-advance-waits"}, func(b b, _ h) {
			b.advance = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				if err := dedup.CheckVersion(scope, obj, v); err != nil {
					return false, err
				}
				if stored, err := b.full.Version(ctx, tx, scope, obj); err != nil || stored >= v {
					return false, err
				}
				_, err := exec(ctx, tx, `INSERT INTO surehook_dedup_versions VALUES ($1, $2, $3, $4)
					ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version`, scope, obj.Type, obj.ID, v)
				return err == nil, err
			}
		}},
		{"advances in the same statement, whatever the marker says", []string{"mark-and-advance", "mark-and-advance-waits"}, func(b b, _ h) {
			b.markAndAdvance = func(ctx context.Context, tx tx, scope, id string, at time.Time, obj dedup.Object, v int64) (fresh, newer bool, err error) {
				if err := errors.Join(dedup.CheckMark(scope, id, at), dedup.CheckVersion(scope, obj, v)); err != nil {
					return false, false, err
				}
				err = tx.QueryRow(ctx, `
					WITH m AS (INSERT INTO surehook_dedup_markers VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1),
					a AS (INSERT INTO surehook_dedup_versions AS v VALUES ($1, $4, $5, $6)
						ON CONFLICT (scope, object_type, object_id) DO UPDATE SET version = excluded.version
						WHERE excluded.version > v.version RETURNING 1)
					SELECT EXISTS (SELECT FROM m), EXISTS (SELECT FROM m) AND EXISTS (SELECT FROM a)`,
					scope, id, at, obj.Type, obj.ID, v).Scan(&fresh, &newer)
				return fresh, newer, dedup.WrapError(ctx, "taking", err)
			}
		}},
		{"decides by the statement's own snapshot", []string{"mark-and-advance-waits", "many-writers"}, func(b b, _ h) {
			b.markAndAdvance = func(ctx context.Context, tx tx, scope, id string, at time.Time, obj dedup.Object, v int64) (fresh, newer bool, err error) {
				if err := errors.Join(dedup.CheckMark(scope, id, at), dedup.CheckVersion(scope, obj, v)); err != nil {
					return false, false, err
				}
				var seen bool
				var stored int64
				err = tx.QueryRow(ctx, `SELECT
					EXISTS (SELECT FROM surehook_dedup_markers WHERE scope = $1 AND id = $2),
					(SELECT coalesce(max(version), 0) FROM surehook_dedup_versions WHERE scope = $1 AND object_type = $3 AND object_id = $4)`,
					scope, id, obj.Type, obj.ID).Scan(&seen, &stored)
				if err != nil || seen {
					return false, false, dedup.WrapError(ctx, "looking", err)
				}
				_, _, err = dedup.MarkAndAdvance(ctx, dedup.Store[pgx.Tx](b.full), tx, scope, id, at, obj, v)
				return err == nil, err == nil && v > stored, err
			}
		}},
		{"hands out a serialization failure bare", []string{"one-of-many"}, func(b b, h h) {
			good := h.InTx
			h.InTx = func(ctx context.Context, fn func(tx) error) error {
				return good(ctx, func(tx tx) error {
					if _, err := tx.Exec(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
						return err
					}
					return fn(tx)
				})
			}
			// The first two have their snapshots before either marks, so that one of them fails.
			var callers atomic.Int32
			both := make(chan struct{})
			b.mark = func(ctx context.Context, tx tx, scope, id string, at time.Time) (bool, error) {
				if _, err := tx.Exec(ctx, "SELECT"); err != nil {
					return false, err
				}
				switch callers.Add(1) {
				case 1:
					select {
					case <-both:
					case <-ctx.Done():
						return false, ctx.Err()
					}
				case 2:
					close(both)
				}
				fresh, err := b.full.Mark(ctx, tx, scope, id, at)
				var pg *pgconn.PgError
				if errors.As(err, &pg) {
					return false, pg
				}
				return fresh, err
			}
		}},
		{"counts what it wanted to prune", []string{"prune-while-marking"}, func(b b, _ h) {
			b.prune = func(ctx context.Context, tx tx, before time.Time, limit int) (n int, err error) {
				if err := dedup.CheckLimit(limit); err != nil {
					return 0, err
				}
				err = tx.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM surehook_dedup_markers WHERE marked_at < $1 LIMIT $2) AS old`, before, limit).Scan(&n)
				if err != nil {
					return 0, dedup.WrapError(ctx, "counting", err)
				}
				_, err = b.full.Prune(ctx, tx, before, limit)
				return n, err
			}
		}},
		{"looks, then notes what it has seen", []string{"reapply-one-of-many", "reapply-waits"}, func(b b, _ h) {
			b.take = func(ctx context.Context, tx tx, scope, id string, obj dedup.Object) (bool, error) {
				if err := dedup.CheckTakeReapply(scope, id, obj); err != nil {
					return false, err
				}
				var last *int64
				err := tx.QueryRow(ctx, `SELECT max(r.number) FROM surehook_dedup_markers AS m
					JOIN surehook_dedup_reapplies AS r ON r.scope = m.scope AND r.event_id IN ('', m.id) AND r.object_id IN ('', $3)
					WHERE m.scope = $1 AND m.id = $2 AND m.reapplied < r.number`, scope, id, obj.ID).Scan(&last)
				if err != nil || last == nil {
					return false, dedup.WrapError(ctx, "looking", err)
				}
				_, err = exec(ctx, tx, "UPDATE surehook_dedup_markers SET reapplied = $3 WHERE scope = $1 AND id = $2", scope, id, *last)
				return err == nil, err
			}
		}},
		{"compares, then applies again", []string{"reapply-waits"}, func(b b, _ h) {
			b.again = func(ctx context.Context, tx tx, scope string, obj dedup.Object, v int64) (bool, error) {
				if err := dedup.CheckVersion(scope, obj, v); err != nil {
					return false, err
				}
				stored, err := b.full.Version(ctx, tx, scope, obj)
				if err != nil || stored > v {
					return false, err
				}
				_, err = b.full.Advance(ctx, tx, scope, obj, v)
				return err == nil, err
			}
		}},
		{"discards what it has read", []string{"one-discards"}, func(b b, _ h) {
			b.discard = func(ctx context.Context, tx tx, scope, id string) error {
				if _, err := b.full.DeadLetter(ctx, tx, scope, id); err != nil {
					return err
				}
				_, err := exec(ctx, tx, "DELETE FROM surehook_dedup_dead_letters WHERE scope = $1 AND id = $2", scope, id)
				return err
			}
		}},
	}
}
