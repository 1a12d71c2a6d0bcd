package postgres_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
)

// sends is a connection that counts what is sent on it, but for the notifications that
// follow a commit.
type sends struct {
	net.Conn
	schema []byte // notifications name it
	n      *atomic.Int64
}

func (c sends) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("pg_notify")) && !(b[0] == 'B' && bytes.Contains(b, c.schema)) {
		c.n.Add(1)
	}
	return c.Conn.Write(b)
}

// A transaction begins with its first statement, so that one with a change and an event
// is three trips to the server, and one with events alone is two.
func TestTripsOfATransaction(t *testing.T) {
	p := newPlace(t)
	p.exec(t, `CREATE TABLE {}.test_business (n int)`)
	defer p.exec(t, `DROP TABLE {}.test_business`)
	p.exec(t, `INSERT INTO {}.test_business VALUES (0)`)
	var sent atomic.Int64
	cfg, err := pgxpool.ParseConfig(pgtest.With(pgtest.DSN(t), "pool_max_conns", "1"))
	require.NoError(t, err)
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return sends{c, []byte(p.schema), &sent}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer pool.Close()
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	pub, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	event := sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}}
	for _, c := range []struct {
		what  string
		run   func() error
		trips int64
	}{
		{"a change and an event", func() error {
			return pub.InTx(t.Context(), func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), in(p.schema, `UPDATE {}.test_business SET n = n + $1`), 1); err != nil {
					return err
				}
				_, err := pub.PublishTx(t.Context(), tx, event)
				return err
			})
		}, 3},
		{"an event", func() error { _, err := pub.Publish(t.Context(), event); return err }, 2},
		{"many events", func() error {
			_, err := pub.PublishMany(t.Context(), []sender.Event{event, event, event})
			return err
		}, 2},
		{"nothing", func() error { return pub.InTx(t.Context(), func(pgx.Tx) error { return nil }) }, 0},
	} {
		for range 2 { // statements are prepared
			require.NoError(t, c.run(), c.what)
		}
		before := sent.Load()
		require.NoError(t, c.run(), c.what)
		require.Equal(t, c.trips, sent.Load()-before, c.what)
	}
	require.Equal(t, 3, p.count(t, `SELECT n FROM {}.test_business`))
	require.Equal(t, 15, p.count(t, `SELECT count(*) FROM {}.surehook_events`))
}
