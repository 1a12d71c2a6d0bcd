// Package publishtest holds every recipe for publishing to the same promise: an order and
// its event commit together, or neither does.
package publishtest

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/examples/recipes/publish/order"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/postgres/postgrestest"
)

// Key seals the secrets of tests.
var Key = sender.SealingKey{ID: "test", Key: []byte("0123456789abcdef0123456789abcdef")}

// Pool is a database with the tables of order.Schema, one customer, and nothing else.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := postgrestest.Pool(t)
	_, err := pool.Exec(t.Context(), order.Schema+"INSERT INTO customers VALUES ('c_1')")
	require.NoError(t, err)
	return pool
}

// SQL is the sending side for applications on database/sql, with its tables.
func SQL(t testing.TB, pool *pgxpool.Pool) *surehook.Sender[*sql.Tx] {
	t.Helper()
	store, err := postgres.NewSQL(pool, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	hooks, err := surehook.NewSender(store, Key, nil)
	require.NoError(t, err)
	return hooks
}

// DB opens the database for database/sql, over pgx.
func DB(t testing.TB, pool *pgxpool.Pool) *sql.DB {
	t.Helper()
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// subscribers makes those of the customers. That of c_unknown lacks the customer, so that
// an order of it fails at the commit, and not at the event.
func subscribers[Tx any](t *testing.T, registry *sender.Registry[Tx]) {
	t.Helper()
	for _, id := range []string{"c_1", "c_unknown"} {
		_, _, err := registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: id})
		require.NoError(t, err)
	}
}

// Check places orders: one that commits, and some whose transaction fails at each of its
// steps. The registry and the events are those of the same database.
func Check[Tx any](t *testing.T, pool *pgxpool.Pool, registry *sender.Registry[Tx], events *history.History, place func(context.Context, order.Order) error) {
	t.Helper()
	subscribers(t, registry)
	require.NoError(t, place(t.Context(), order.Order{ID: "o_1", Customer: "c_1", Cents: 4200}))
	only := func() {
		t.Helper()
		rows, err := pool.Query(t.Context(), "SELECT id FROM orders")
		require.NoError(t, err)
		var id string
		var ids []string
		for rows.Next() {
			require.NoError(t, rows.Scan(&id))
			ids = append(ids, id)
		}
		require.NoError(t, rows.Err())
		require.Equal(t, []string{"o_1"}, ids)
		list, _, err := events.Events(t.Context(), history.EventQuery{})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, sender.Object{Type: "order", ID: "o_1"}, list[0].Object)
		require.Equal(t, "c_1", list[0].Subscriber, "it is for the order's customer alone")
		ev, err := events.Event(t.Context(), list[0].ID)
		require.NoError(t, err)
		require.Contains(t, string(ev.Body), `"data":{"id":"o_1","customer":"c_1","cents":4200}`)
	}
	only()

	require.Error(t, place(t.Context(), order.Order{ID: "o_1", Customer: "c_1", Cents: 1}), "the change fails: there is such an order")
	only()
	require.ErrorIs(t, place(t.Context(), order.Order{ID: "o_2", Customer: "c_3", Cents: 1}), sender.ErrNotFound, "the customer has no subscriber")
	only()
	tooLong := strings.Repeat("o", 256)
	require.ErrorIs(t, place(t.Context(), order.Order{ID: tooLong, Customer: "c_1", Cents: 1}), sender.ErrInvalidEvent, "the event is refused, after the change")
	only()
	require.Error(t, place(t.Context(), order.Order{ID: "o_2", Customer: "c_unknown", Cents: 1}), "the commit fails, after the change and the event")
	only()
}
