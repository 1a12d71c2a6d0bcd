package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/savepoint"
)

// countedPool has one connection, and counts the messages that it sends.
func countedPool(t *testing.T, schema string, mode pgx.QueryExecMode) (*pgxpool.Pool, *atomic.Int64) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(pgtest.With(pgtest.DSN(t), "search_path", schema, "pool_max_conns", "1"))
	require.NoError(t, err)
	dial, sent := pgtest.Sends(cfg.ConnConfig.DialFunc, nil)
	cfg.ConnConfig.DialFunc = dial
	cfg.ConnConfig.DefaultQueryExecMode = mode
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, sent
}

// share does the work of a receiver's group in tx, and returns the result of each function.
// Its error says that nothing may be committed.
func share(ctx context.Context, tx pgx.Tx, fns ...func(tx pgx.Tx) error) (failed []error, err error) {
	exec := func(sql string) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}
	failed = make([]error, len(fns))
	last := -1
	release := func(how string) error {
		err := exec(how)
		if err != nil {
			failed[last] = err
			return exec(savepoint.Back)
		}
		return nil
	}
	for i, fn := range fns {
		switch {
		case i == 0:
			err = exec(savepoint.Set)
		case last >= 0:
			err = release(savepoint.Next)
		}
		if err != nil {
			return failed, err
		}
		last = i
		if failed[i] = fn(tx); failed[i] != nil {
			last = -1
			if err := exec(savepoint.Back); err != nil {
				return failed, err
			}
		}
	}
	if last >= 0 {
		err = release(savepoint.Release)
	}
	return failed, err
}

// Functions that share a transaction make two trips each, with their markers and
// effects, and one more together for the commit.
func TestSavepointsGoWithTheMarker(t *testing.T) {
	bed := newBed(t)
	pool, sent := countedPool(t, bed.schema, pgx.QueryExecModeCacheStatement)
	ctx := t.Context()
	apply := func(id string) func(tx pgx.Tx) error {
		return func(tx pgx.Tx) error {
			fresh, err := bed.store.Mark(ctx, tx, "shared", id, time.Now())
			if err != nil || !fresh {
				return errors.Join(err, errors.New("a duplicate"))
			}
			_, err = tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", id)
			return err
		}
	}
	for _, round := range []string{"prepares", "counts"} {
		before := sent.Load()
		require.NoError(t, postgres.InTx(pool, pgx.TxOptions{})(ctx, func(tx pgx.Tx) error {
			failed, err := share(ctx, tx, apply(round+"1"), apply(round+"2"), apply(round+"3"))
			require.Equal(t, []error{nil, nil, nil}, failed)
			return err
		}))
		if round == "counts" {
			require.EqualValues(t, 3*2+1, sent.Load()-before)
		}
	}
	require.Equal(t, 6, bed.count(t, "effects"))
}

// After the commit, nothing is left of the functions that failed, and everything of the
// others, whatever a function does, and in whichever way pgx talks to the server.
func TestSharedTransactions(t *testing.T) {
	errOwn := errors.New("its own")
	insert := func(tx pgx.Tx, id string) error {
		_, err := tx.Exec(context.Background(), "INSERT INTO effects (id) VALUES ($1)", id)
		return err
	}
	quietly := func(tx pgx.Tx, sql string, args ...any) { _, _ = tx.Exec(context.Background(), sql, args...) }
	ways := map[string]func(tx pgx.Tx, id string) error{
		"works": insert,
		"works in a batch": func(tx pgx.Tx, id string) error {
			b := &pgx.Batch{}
			b.Queue("INSERT INTO effects (id) VALUES ($1)", id)
			return tx.SendBatch(context.Background(), b).Close()
		},
		"fails":             func(tx pgx.Tx, id string) error { return errors.Join(insert(tx, id), errOwn) },
		"fails at once":     func(pgx.Tx, string) error { return errOwn },
		"does nothing":      func(pgx.Tx, string) error { return nil },
		"is wrong":          func(tx pgx.Tx, id string) error { quietly(tx, "INSERT INTO nowhere VALUES ($1)", id); return errOwn },
		"is wrong at last":  func(tx pgx.Tx, id string) error { _ = insert(tx, id); quietly(tx, "SELECT 1/0"); return errOwn },
		"is wrong, quietly": func(tx pgx.Tx, id string) error { _ = insert(tx, id); quietly(tx, "SELECT 1/0"); return nil },
		"was late": func(tx pgx.Tx, id string) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", id)
			return err
		},
		"has savepoints of its own": func(tx pgx.Tx, id string) error {
			return pgx.BeginFunc(context.Background(), tx, func(tx pgx.Tx) error { return insert(tx, id) })
		},
	}
	idle := map[string]bool{"fails at once": true, "does nothing": true}
	for name, mode := range map[string]pgx.QueryExecMode{
		"cache statement": pgx.QueryExecModeCacheStatement, "cache describe": pgx.QueryExecModeCacheDescribe,
		"describe exec": pgx.QueryExecModeDescribeExec, "exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t)
			pool, _ := countedPool(t, bed.schema, mode)
			ctx := t.Context()
			for first, a := range ways {
				for second, b := range ways {
					var failed []error
					err := postgres.InTx(pool, pgx.TxOptions{})(ctx, func(tx pgx.Tx) (err error) {
						failed, err = share(ctx, tx,
							func(tx pgx.Tx) error { return a(tx, "1") }, func(tx pgx.Tx) error { return b(tx, "2") },
							func(tx pgx.Tx) error { return insert(tx, "3") }, func(tx pgx.Tx) error { return insert(tx, "4") })
						return err
					})
					var want []string
					if err == nil {
						for i, way := range []string{first, second, "works", "works"} {
							if failed[i] == nil && way != "does nothing" {
								want = append(want, string(rune('1'+i)))
							}
						}
					}
					rows, queryErr := bed.pool.Query(ctx, "DELETE FROM effects RETURNING id")
					require.NoError(t, queryErr)
					got, queryErr := pgx.CollectRows(rows, pgx.RowTo[string])
					require.NoError(t, queryErr)
					require.ElementsMatch(t, want, got, "%s, %s: %v, %v", first, second, failed, err)
					// A function whose first statement is not even run has not begun the
					// transaction. The transaction is then lost to all functions, and they
					// are run again.
					begins := first
					if idle[begins] {
						begins = second
					}
					if begins != "is wrong" && begins != "was late" {
						require.NoError(t, err, "%s, %s: %v", first, second, failed)
						require.Equal(t, []error{nil, nil}, failed[2:])
					}
				}
			}
		})
	}
}

// A statement that the connection has forgotten and cannot prepare again keeps its
// savepoint from being set: a rollback would undo the work of the function before.
func TestSavepointThatWasNotSet(t *testing.T) {
	bed := newBed(t)
	pool, _ := countedPool(t, bed.schema, pgx.QueryExecModeCacheStatement)
	ctx := t.Context()
	insert := func(tx pgx.Tx, id string) error {
		_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", id)
		return err
	}
	err := postgres.InTx(pool, pgx.TxOptions{})(ctx, func(tx pgx.Tx) error {
		failed, err := share(ctx, tx, func(tx pgx.Tx) error {
			if err := insert(tx, "1"); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog")
			return errors.Join(err, tx.Conn().DeallocateAll(ctx))
		}, func(tx pgx.Tx) error { return insert(tx, "2") })
		require.NoError(t, failed[0])
		require.Error(t, failed[1])
		return err
	})
	require.ErrorContains(t, err, "before its savepoint was set")
	require.Zero(t, bed.count(t, "effects"))
	require.NoError(t, pool.Ping(ctx))
}
