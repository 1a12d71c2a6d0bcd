package docs_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	events "github.com/surehook/surehook/dedup"
	dedup "github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sendertest"
)

const operating = "docs/operating.md"

// The grants of the page are enough: one role migrates, and another one does everything
// else. The server is the test's own, since roles belong to all of a server's databases.
func TestRoles(t *testing.T) {
	pgtest.DSN(t)                                              // skips without PostgreSQL
	server, err := pgtest.Start(pgtest.Options{Durable: true}) // a dispatcher refuses another
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	connect := func(role string) *pgxpool.Pool {
		pool, err := pgxpool.New(t.Context(), pgtest.With(server.DSN(), "user", role))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	super := connect("postgres")
	const web = "shop_web"
	does := func(migrated bool) {
		for _, b := range blocks(t) {
			if b.page == operating && b.lang == "sql" && strings.Contains(b.text, web) == migrated {
				_, err := super.Exec(t.Context(), b.text)
				require.NoError(t, err, b.String())
			}
		}
	}
	does(false)
	migrate := func(pool *pgxpool.Pool) *postgres.Store[pgx.Tx] {
		t.Helper()
		store, err := postgres.New(pool, &postgres.Config{Schema: "hooks"})
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		require.NoError(t, dedup.MigratePool(t.Context(), pool, &dedup.Config{Schema: "hooks"}))
		return store
	}
	migrate(connect("shop_migrate"))
	pool := connect("shop")
	store := migrate(pool) // there is nothing to do, which needs no rights
	_, err = pool.Exec(t.Context(), "CREATE TABLE hooks.mine (id int)")
	require.ErrorContains(t, err, "permission denied")

	receive(t, pool)
	send(t, store)
	_, err = store.Restored(t.Context(), nil)
	require.NoError(t, err)

	does(true)
	publish(t, store, connect(web))
}

// The page's query names who keeps dead rows from being removed, and nobody else.
func TestWhoHoldsRows(t *testing.T) {
	pgtest.DSN(t) // skips without PostgreSQL
	server, err := pgtest.Start(pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "1"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	connect := func(name string) *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), pgtest.With(server.DSN(), "application_name", name))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
		return conn
	}
	does := func(conn *pgx.Conn, statements string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), statements)
		require.NoError(t, err)
	}
	at := slices.IndexFunc(blocks(t), func(b block) bool { return b.page == operating && strings.Contains(b.text, "backend_xmin") })
	require.GreaterOrEqual(t, at, 0)
	looker := connect("looker")
	holders := func() (all []string) {
		t.Helper()
		rows, err := looker.Query(t.Context(), blocks(t)[at].text)
		require.NoError(t, err)
		var what, who string
		_, err = pgx.ForEachRow(rows, []any{&what, &who, nil, nil}, func() error {
			if what == "client backend" || what == "prepared transaction" { // the server's own come and go
				all = append(all, what+": "+who)
			}
			return nil
		})
		require.NoError(t, err)
		return all
	}
	reader, writer := connect("reader"), connect("writer")
	require.Empty(t, holders(), "who is connected")
	does(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
	does(writer, "BEGIN; CREATE TABLE a (); PREPARE TRANSACTION 'forgotten'")
	does(writer, "BEGIN; CREATE TABLE b ()")
	held := holders()
	require.Len(t, held, 3)
	require.Contains(t, held[0], "postgres reader idle in transaction", "the oldest is the first")
	require.Equal(t, "prepared transaction: forgotten", held[1])
	require.Contains(t, held[2], "postgres writer idle in transaction")
	does(reader, "COMMIT")
	does(writer, "COMMIT")
	does(writer, "ROLLBACK PREPARED 'forgotten'")
	require.Empty(t, holders())
}

// send publishes, delivers, holds, resumes, redelivers, rewraps and prunes.
func send(t *testing.T, store *postgres.Store[pgx.Tx]) {
	t.Helper()
	endpoint := sendertest.NewEndpoint(t, sendertest.Status(500), sendertest.Status(200))
	key := sender.SealingKey{ID: "1", Key: []byte(strings.Repeat("k", 32))}
	config := surehook.SenderConfig{Network: sender.Network{AllowPrivateNetworks: true}}
	hooks, err := surehook.NewSender(store, key, &config)
	require.NoError(t, err)
	customer, _, err := hooks.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)
	sub, err := hooks.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: customer.ID, URL: endpoint.URL()})
	require.NoError(t, err)
	_, err = hooks.Publish(t.Context(), sender.Event{Type: "order.updated", Object: sender.Object{Type: "order", ID: "o_1"}, Subscriber: customer.ID})
	require.NoError(t, err)
	_, err = hooks.Dispatcher.RunOnce(t.Context())
	require.NoError(t, err)
	page, _, err := hooks.History.Deliveries(t.Context(), history.DeliveryQuery{})
	require.NoError(t, err)
	require.Len(t, page, 1)
	require.Equal(t, sender.StatusAwaitingRetry, page[0].Status)
	require.NoError(t, hooks.Registry.Pause(t.Context(), sub.ID))
	require.NoError(t, hooks.Registry.Resume(t.Context(), sub.ID, sender.Resume{}))
	require.NoError(t, hooks.History.Redeliver(t.Context(), page[0].ID))
	_, _, err = hooks.Registry.RotateSecret(t.Context(), customer.ID, nil)
	require.NoError(t, err)

	config.OlderKeys = []sender.SealingKey{key}
	hooks, err = surehook.NewSender(store, sender.SealingKey{ID: "2", Key: []byte(strings.Repeat("n", 32))}, &config)
	require.NoError(t, err)
	rewrapped, err := hooks.Registry.Rewrap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, rewrapped)
	stats, err := hooks.Dispatcher.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, stats.Delivered)
	_, err = hooks.Dispatcher.Prune(t.Context())
	require.NoError(t, err)
	_, err = hooks.History.Counts(t.Context())
	require.NoError(t, err)
}

// publish publishes in each way by a role that may do nothing else.
func publish(t *testing.T, store *postgres.Store[pgx.Tx], pool *pgxpool.Pool) {
	t.Helper()
	key := sender.SealingKey{ID: "2", Key: []byte(strings.Repeat("n", 32))}
	hooks, err := surehook.NewSender(store, key, &surehook.SenderConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	customer, _, err := hooks.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)
	sub, err := hooks.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: customer.ID, URL: "http://127.0.0.1/"})
	require.NoError(t, err)

	only, err := postgres.New(pool, &postgres.Config{Schema: "hooks"})
	require.NoError(t, err)
	pub, err := sender.NewPublisher(only, nil)
	require.NoError(t, err)
	plain := sender.Event{Type: "order.updated", Object: sender.Object{Type: "order", ID: "o_2"}}
	change := func(change func(e *sender.Event)) sender.Event {
		e := plain
		change(&e)
		return e
	}
	keyed := change(func(e *sender.Event) { e.Subscriber, e.IdempotencyKey = customer.ID, "a key" })
	var first sender.Ref
	for i, e := range []sender.Event{
		plain,
		change(func(e *sender.Event) { e.Version = 1 << 30 }),
		keyed,
		change(func(e *sender.Event) { e.Subscriber, e.Subscription = customer.ID, sub.ID }),
		change(func(e *sender.Event) { e.Subscriber, e.IfSubscriberExists = "sub_nobody", true }),
	} {
		ref, err := pub.Publish(t.Context(), e)
		require.NoError(t, err, i)
		if e.IdempotencyKey != "" {
			first = ref
		}
	}
	again, err := pub.Publish(t.Context(), keyed)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	_, err = pub.Publish(t.Context(), change(func(e *sender.Event) { e.IdempotencyKey, e.Version = "another", 1 }))
	require.ErrorIs(t, err, sender.ErrVersion)
	_, err = pub.PublishMany(t.Context(), []sender.Event{plain, keyed, change(func(e *sender.Event) { e.IdempotencyKey = "third" })})
	require.NoError(t, err)
	for _, table := range []string{"surehook_secrets", "surehook_subscriptions", "surehook_attempts"} {
		_, err = pool.Exec(t.Context(), "SELECT * FROM hooks."+table)
		require.ErrorContains(t, err, "permission denied")
	}
}

// receive does what a receiver does with an event, and removes its marker.
func receive(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	markers, err := dedup.New(&dedup.Config{Schema: "hooks"})
	require.NoError(t, err)
	inTx := dedup.InTx(pool, pgx.TxOptions{})
	now := time.Now()
	require.NoError(t, inTx(t.Context(), func(tx pgx.Tx) error {
		fresh, newer, err := markers.MarkAndAdvance(t.Context(), tx, "billing", "evt_1", now, events.Object{Type: "order", ID: "o_1"}, 1)
		require.True(t, fresh && newer)
		return err
	}))
	removed, err := events.Prune(t.Context(), inTx, markers, now.Add(time.Hour), 0)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
}
