package receiver_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
)

// onPostgres is a bed in a schema of its own, whose transactions have the isolation
// level.
func onPostgres(t testing.TB, level string) (bed[pgx.Tx], *pgxpool.Pool) {
	t.Helper()
	return openPostgres(t, postgresURL(t, level))
}

func postgresURL(t testing.TB, level string) string {
	t.Helper()
	db, err := sql.Open("pgx", pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	schema := pgtest.Schema(t, db)
	require.NoError(t, postgres.Migrate(context.Background(), db, &postgres.Config{Schema: schema}))
	return pgtest.With(pgtest.DSN(t), "search_path", schema, "default_transaction_isolation", level, "pool_max_conns", "32")
}

func openPostgres(t testing.TB, url string) (bed[pgx.Tx], *pgxpool.Pool) {
	t.Helper()
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS effects (id text NOT NULL)")
	require.NoError(t, err)
	store, err := postgres.New(nil)
	require.NoError(t, err)
	return bed[pgx.Tx]{
		inTx: func(ctx context.Context, fn func(pgx.Tx) error) error {
			return pgx.BeginFunc(ctx, pool, fn)
		},
		store: store,
		effect: func(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
			_, err := tx.Exec(ctx, "INSERT INTO effects (id) VALUES ($1)", ev.ID)
			return err
		},
		effects: func(t testing.TB, id string) (n int) {
			require.NoError(t, pool.QueryRow(ctx, "SELECT count(*) FROM effects WHERE id = $1", id).Scan(&n))
			return n
		},
		secret: testSecret,
	}, pool
}

func pgxExec(ctx context.Context, tx pgx.Tx, statements string) error {
	_, err := tx.Exec(ctx, statements)
	return err
}

// An error in a statement makes a transaction of PostgreSQL unusable up to the savepoint.
// An error that a function does not report also undoes the work of this function, and of no
// other.
func TestGroupOnPostgres(t *testing.T) {
	for _, level := range []string{"read committed", "serializable"} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, begun with the marker: %t", level, later), func(t *testing.T) {
				b, pool := onPostgres(t, level)
				inTx := b.inTx
				if later {
					inTx = postgres.InTx(pool, pgx.TxOptions{})
				}
				group, err := receiver.NewGroup(inTx, pgxExec, &receiver.GroupConfig{Transactions: 2, Timeout: patient})
				require.NoError(t, err)
				testGroup(t, group, b.store, b)
				rcv := newReceiver(t, group.InTx, b.store, nil)
				ev := newEvent(1)
				ev.Object.ID = "quiet"
				a := newSender(t).Request(ev).Serve(rcv.Handler(receiver.State(func(ctx context.Context, tx pgx.Tx, ev receiver.Event) error {
					_, _ = tx.Exec(ctx, "SELECT 1/0")
					return nil
				})))
				require.Equal(t, 503, a.Status)
				require.Equal(t, state{}, b.state(t, ev))
			})
		}
	}
}
