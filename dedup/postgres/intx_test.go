package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// A receiver's transaction is three trips: its beginning with the marker, the effect,
// and the commit.
func TestInTxBeginsWithTheFirstStatement(t *testing.T) {
	bed := newBed(t)
	cfg, err := pgxpool.ParseConfig(pgtest.With(pgtest.DSN(t), "search_path", bed.schema, "pool_max_conns", "1"))
	require.NoError(t, err)
	dial, sent := pgtest.Sends(cfg.ConnConfig.DialFunc, nil)
	cfg.ConnConfig.DialFunc = dial
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer pool.Close()
	rcv := bed.receiver(t, postgres.InTx(pool, pgx.TxOptions{}), bed.store)
	snd := receivertest.NewSender(t, bed.secret, nil)
	for n := range 3 {
		before := sent.Load()
		res, err := rcv.Receive(t.Context(), snd.Request(receivertest.NewEvent("subscriber", "sub_1", int64(n+1))).Message(), receiver.State(bed.effect))
		require.NoError(t, err)
		require.Equal(t, receiver.Applied, res)
		if n == 2 { // statements are prepared, and the pool has looked at its connection
			require.EqualValues(t, 3, sent.Load()-before)
		}
	}
}

// A transaction that begins with any kind of statement is a transaction from there on, with
// its options.
func TestInTx(t *testing.T) {
	const insert = "INSERT INTO effects (id) VALUES ('it')"
	broken := errors.New("broken")
	ctx := context.Background()
	for name, begin := range map[string]func(tx pgx.Tx) error{
		"Exec": func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", "it")
			if err == nil && tag.RowsAffected() != 1 {
				err = errors.New(tag.String())
			}
			return err
		},
		"Exec, of two statements": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1; "+insert)
			return err
		},
		"Exec, in a mode of its own": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", pgx.QueryExecModeExec, "it")
			return err
		},
		"Query, to its end": func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, insert+" RETURNING id")
			if err != nil {
				return err
			}
			n := 0
			for rows.Next() {
				n++
			}
			if rows.Err() == nil && n != 1 {
				return errors.New("no row")
			}
			return rows.Err() // the connection is free without Close
		},
		"Query, closed at once": func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, insert+" RETURNING id")
			if err != nil {
				return err
			}
			rows.Close()
			return rows.Err()
		},
		"QueryRow": func(tx pgx.Tx) error {
			var id string
			return tx.QueryRow(ctx, insert+" RETURNING id").Scan(&id)
		},
		"QueryRow, in a mode of its own": func(tx pgx.Tx) error {
			var id string
			return tx.QueryRow(ctx, insert+" RETURNING id", pgx.QueryExecModeExec).Scan(&id)
		},
		"the connection itself": func(tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, insert)
			return err
		},
		"SendBatch": func(tx pgx.Tx) error {
			var b pgx.Batch
			b.Queue("SELECT 1")
			b.Queue(insert)
			results := tx.SendBatch(ctx, &b)
			var one int
			if err := results.QueryRow().Scan(&one); err != nil {
				return err
			}
			if tag, err := results.Exec(); err != nil || tag.RowsAffected() != 1 {
				return errors.Join(err, errors.New(tag.String()))
			}
			return results.Close()
		},
		"an empty batch": func(tx pgx.Tx) error {
			if err := tx.SendBatch(ctx, &pgx.Batch{}).Close(); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, insert)
			return err
		},
		"CopyFrom": func(tx pgx.Tx) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"id"}, pgx.CopyFromRows([][]any{{"it"}}))
			return err
		},
		"Prepare": func(tx pgx.Tx) error {
			if _, err := tx.Prepare(ctx, "it", insert); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "it")
			return errors.Join(err, tx.Conn().Deallocate(ctx, "it"))
		},
		"Begin": func(tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, insert)
				return err
			})
		},
		"LargeObjects": func(tx pgx.Tx) error {
			objects := tx.LargeObjects()
			no, err := objects.Create(ctx, 0)
			if err != nil {
				return err
			}
			object, err := objects.Open(ctx, no, pgx.LargeObjectModeWrite|pgx.LargeObjectModeRead)
			if err != nil {
				return err
			}
			if _, err := object.Seek(0, io.SeekEnd); err != nil {
				return err
			}
			if err := objects.Unlink(ctx, no); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, insert)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t)
			inTx := postgres.InTx(bed.pool, pgx.TxOptions{IsoLevel: pgx.Serializable})
			err := inTx(t.Context(), func(tx pgx.Tx) error {
				require.NoError(t, begin(tx))
				var level string
				require.NoError(t, tx.QueryRow(t.Context(), "SHOW transaction_isolation").Scan(&level))
				require.Equal(t, "serializable", level)
				return broken
			})
			require.Equal(t, broken, err)
			require.Zero(t, bed.count(t, "effects"), "it was rolled back")
			require.Panics(t, func() {
				_ = inTx(t.Context(), func(tx pgx.Tx) error {
					require.NoError(t, begin(tx))
					panic("it")
				})
			})
			require.Zero(t, bed.count(t, "effects"), "it was rolled back")
			require.NoError(t, inTx(t.Context(), begin))
			require.Equal(t, 1, bed.count(t, "effects"), "it was committed")
			require.Zero(t, bed.pool.Stat().AcquiredConns())
			require.NoError(t, inTx(t.Context(), func(pgx.Tx) error { return nil }), "with no statement at all")
			require.Zero(t, bed.pool.Stat().AcquiredConns())
		})
	}
}

// A function that has ended the transaction by itself is not told that it was committed:
// for COMMIT without one, the server has a warning and no error. Nor are its further
// statements run, each of which would be committed at once.
func TestInTxThatIsEndedInside(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"ROLLBACK": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, "ROLLBACK"); return err },
		"COMMIT":   func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, "COMMIT"); return err },
		"Rollback": func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
		"Commit":   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		"a transaction of the connection's own, which is the same one": func(ctx context.Context, tx pgx.Tx) error {
			_ = pgx.BeginFunc(ctx, tx.Conn(), func(pgx.Tx) error { return errors.New("not found, which is no reason to fail") })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t)
			err := postgres.InTx(bed.pool, pgx.TxOptions{})(t.Context(), func(tx pgx.Tx) error {
				const insert = "INSERT INTO effects (id) VALUES ($1)"
				_, err := tx.Exec(t.Context(), insert, "it")
				require.NoError(t, errors.Join(err, end(t.Context(), tx)))
				_, err = tx.Exec(t.Context(), insert, "later")
				require.ErrorIs(t, err, pgx.ErrTxClosed)
				var b pgx.Batch
				b.Queue(insert, "later")
				require.ErrorIs(t, tx.SendBatch(t.Context(), &b).Close(), pgx.ErrTxClosed)
				return nil
			})
			require.ErrorIs(t, err, pgx.ErrTxClosed)
			var later int
			require.NoError(t, bed.pool.QueryRow(t.Context(), "SELECT count(*) FROM effects WHERE id = 'later'").Scan(&later))
			require.Zero(t, later)
			require.Zero(t, bed.pool.Stat().AcquiredConns())
		})
	}
	bed := newBed(t)
	err := postgres.InTx(bed.pool, pgx.TxOptions{})(t.Context(), func(tx pgx.Tx) error {
		tx.QueryRow(t.Context(), "SELECT 1") // without Scan
		return nil
	})
	require.ErrorContains(t, err, "busy", "the first statement is not over")
	require.NotErrorIs(t, err, pgx.ErrTxClosed)
}

// A first statement that fails has begun a transaction that failed: the next statement does
// not begin another one.
func TestInTxFailsAtItsFirstStatement(t *testing.T) {
	ctx := context.Background()
	for name, fails := range map[string]func(tx pgx.Tx) error{
		"the server knows it is wrong": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO nowhere VALUES (1)")
			return err
		},
		"it fails when it runs": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1 / (SELECT count(*) FROM effects)")
			return err
		},
		"a query": func(tx pgx.Tx) error {
			var n int
			return tx.QueryRow(ctx, "SELECT 1 / count(*) FROM effects").Scan(&n)
		},
		"a query's rows": func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "SELECT 1 / count(*) FROM effects")
			if err != nil {
				return err
			}
			for rows.Next() {
			}
			return rows.Err()
		},
		"an argument": func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", make(chan int))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t)
			err := postgres.InTx(bed.pool, pgx.TxOptions{})(ctx, func(tx pgx.Tx) error {
				require.Error(t, fails(tx))
				_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ('it')")
				require.Error(t, err)
				return nil
			})
			require.Error(t, err, "it says that nothing was committed")
			require.Zero(t, bed.count(t, "effects"))
			require.NoError(t, bed.pool.Ping(ctx))
		})
	}
	require.Nil(t, postgres.InTx(nil, pgx.TxOptions{}), "which a receiver refuses")
}

// around is a driver around another one, as those for traces are. Its connections are dead
// once the server has restarted.
type around struct {
	driver.Connector
	restarts *atomic.Int64
}

func (a around) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := a.Connector.Connect(ctx)
	return aroundConn{c, a.restarts, a.restarts.Load()}, err
}

type aroundConn struct {
	driver.Conn
	restarts *atomic.Int64
	made     int64
}

func (c aroundConn) Raw() driver.Conn { return c.Conn }

func (c aroundConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.made != c.restarts.Load() {
		return nil, driver.ErrBadConn
	}
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

// A transaction of database/sql that a function has ended by itself is not told to be
// committed, whatever the driver.
func TestInTxSQL(t *testing.T) {
	ctx := t.Context()
	const insert = "INSERT INTO effects (id) VALUES ('it')"
	for name, connect := range map[string]func(c driver.Connector) driver.Connector{
		"pgx's driver":               func(c driver.Connector) driver.Connector { return c },
		"pgx's, inside of another":   func(c driver.Connector) driver.Connector { return around{c, &atomic.Int64{}} },
		"a driver that nobody knows": pgtest.Opaque,
	} {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t)
			db := sql.OpenDB(connect(stdlib.GetPoolConnector(bed.pool)))
			db.SetMaxIdleConns(0)
			defer db.Close()
			inTx := postgres.InTxSQL(db, nil)
			for how, end := range map[string]func(tx *sql.Tx) error{
				"ROLLBACK": func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, "ROLLBACK"); return err },
				"COMMIT":   func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, "COMMIT"); return err },
				"Rollback": (*sql.Tx).Rollback,
				"Commit":   (*sql.Tx).Commit,
			} {
				require.ErrorIs(t, inTx(ctx, func(tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, insert)
					return errors.Join(err, end(tx))
				}), sql.ErrTxDone, how)
			}
			_, err := db.ExecContext(ctx, "DELETE FROM effects")
			require.NoError(t, err)

			broken := errors.New("broken")
			require.Equal(t, broken, inTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, insert)
				require.NoError(t, err)
				return broken
			}))
			require.Panics(t, func() {
				_ = inTx(ctx, func(tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, insert)
					require.NoError(t, err)
					panic("it")
				})
			})
			require.Error(t, inTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, insert)
				require.NoError(t, err)
				_, err = tx.ExecContext(ctx, "SELECT 1 / 0")
				require.Error(t, err)
				return nil // as if nothing were
			}), "a transaction that has failed cannot be committed")
			cancelled, cancel := context.WithCancel(ctx)
			require.Error(t, inTx(cancelled, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, insert)
				cancel()
				return err
			}), "the transaction has ended with its context")
			require.Zero(t, bed.count(t, "effects"), "all was rolled back")
			require.NoError(t, inTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, insert)
				return err
			}))
			require.Equal(t, 1, bed.count(t, "effects"), "it was committed")
			require.Zero(t, bed.pool.Stat().AcquiredConns())
		})
	}
	require.Nil(t, postgres.InTxSQL(nil, nil), "which a receiver refuses")
}

// With pgx's driver, nobody asks the server whether a transaction was ended.
func TestInTxSQLCostsNoTrip(t *testing.T) {
	cfg, err := pgx.ParseConfig(pgtest.DSN(t))
	require.NoError(t, err)
	dial, sent := pgtest.Sends(cfg.DialFunc, nil)
	cfg.DialFunc = dial
	db := stdlib.OpenDB(*cfg, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	defer db.Close()
	db.SetMaxOpenConns(1)
	trips := func(inTx receiver.InTx[*sql.Tx]) int64 {
		before := sent.Load()
		require.NoError(t, inTx(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), "SELECT")
			return err
		}))
		return sent.Load() - before
	}
	for range 2 { // it connects, and the statement is prepared
		trips(receiver.SQL(db, nil))
	}
	require.Equal(t, trips(receiver.SQL(db, nil)), trips(postgres.InTxSQL(db, nil)))
}

// A restart of the server costs no transaction, however many connections were idle.
func TestInTxSQLAfterARestart(t *testing.T) {
	cfg, err := pgx.ParseConfig(pgtest.DSN(t))
	require.NoError(t, err)
	driven := around{stdlib.GetConnector(*cfg), &atomic.Int64{}}
	db := sql.OpenDB(driven)
	defer db.Close()
	const idle = 5
	db.SetMaxIdleConns(idle)
	var all []*sql.Conn
	for range idle {
		c, err := db.Conn(t.Context())
		require.NoError(t, err)
		all = append(all, c)
	}
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	driven.restarts.Add(1)
	require.NoError(t, postgres.InTxSQL(db, nil)(t.Context(), func(*sql.Tx) error { return nil }))
}
