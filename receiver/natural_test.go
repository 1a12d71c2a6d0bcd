package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// warehouse is a consumer of orders: order.created and then order.paid.
type warehouse[Tx any] struct {
	inTx  receiver.InTx[Tx]
	store dedup.Store[Tx]
	exec  func(ctx context.Context, tx Tx, query string, args ...any) error
	count func(t *testing.T, query string) int
}

type whole struct{ Paid bool }

func (w warehouse[Tx]) doing(query string) func(context.Context, Tx, receiver.Typed[whole]) error {
	return func(ctx context.Context, tx Tx, ev receiver.Typed[whole]) error {
		if strings.Contains(query, "$2") {
			return w.exec(ctx, tx, query, ev.Object.ID, ev.Data.Paid)
		}
		return w.exec(ctx, tx, query, ev.Object.ID)
	}
}

// forms are ways to write the same consumer.
func (w warehouse[Tx]) forms(t *testing.T) map[string]receiver.Work[Tx] {
	insert := w.doing("INSERT INTO orders VALUES ($1, false)")
	upsert := w.doing("INSERT INTO orders VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET paid = $2")
	forms := map[string]receiver.Work[Tx]{}
	for name, routes := range map[string][]receiver.Route[Tx]{
		"facts":   {receiver.OnFact("order.created", insert), receiver.OnFact("order.paid", w.doing("INSERT INTO payments VALUES ($1)"))},
		"upsert":  {receiver.OnState("order.*", upsert)},
		"natural": {receiver.OnState("order.created", insert), receiver.OnState("order.paid", w.doing("UPDATE orders SET paid = true WHERE id = $1"))},
	} {
		work, err := receiver.Router(routes...)
		require.NoError(t, err)
		forms[name] = work
	}
	return forms
}

// orders returns the events of n orders, some of them twice, in disorder.
func orders(n int) []receivertest.Event {
	rnd := rand.New(rand.NewPCG(7, 7))
	var all []receivertest.Event
	for i := range n {
		for version, kind := range []string{"order.created", "order.paid"} {
			ev := receivertest.NewEvent("order", fmt.Sprint("order_", i), int64(version+1))
			ev.Type, ev.Data = kind, whole{Paid: version == 1}
			for range 1 + rnd.IntN(4)/3 {
				all = append(all, ev)
			}
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// receiveAll takes all events, many at a time, as often as it takes.
func receiveAll[Tx any](t *testing.T, rcv *receiver.Receiver[Tx], work receiver.Work[Tx], events []receivertest.Event) {
	messages := make(chan signing.Message, len(events))
	snd := newSender(t)
	for _, ev := range events {
		messages <- snd.Request(ev).Message()
	}
	close(messages)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for m := range messages {
				_, err := rcv.Receive(t.Context(), m, work)
				for failed := (*receiver.Error)(nil); errors.As(err, &failed) && failed.RetryAfter() > 0; {
					_, err = rcv.Receive(t.Context(), m, work)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func (w warehouse[Tx]) test(t *testing.T, names ...string) {
	n := 600
	if race.Enabled {
		n = 300
	}
	if text := os.Getenv("SUREHOOK_ORDERS"); text != "" {
		_, err := fmt.Sscan(text, &n)
		require.NoError(t, err, "SUREHOOK_ORDERS")
	}
	events := orders(n)
	forms := w.forms(t)
	for _, name := range names {
		require.NoError(t, w.inTx(t.Context(), func(tx Tx) error {
			return errors.Join(w.exec(t.Context(), tx, "DELETE FROM orders"), w.exec(t.Context(), tx, "DELETE FROM payments"))
		}))
		rcv, err := receiver.New(newVerifier(t, nil), w.inTx, w.store, name, &receiver.Config{Logger: discard})
		require.NoError(t, err)
		receiveAll(t, rcv, forms[name], events)
		stats := rcv.Stats()
		require.EqualValues(t, 2*n, stats.Applied+stats.Stale)
		require.EqualValues(t, len(events)-2*n, stats.Duplicate)
		have, paid := w.count(t, "SELECT count(*) FROM orders"), w.count(t, "SELECT count(*) FROM orders WHERE paid")
		switch name {
		case "facts":
			require.Equal(t, n, have)
			require.Equal(t, n, w.count(t, "SELECT count(DISTINCT id) FROM payments"))
			require.Equal(t, n, w.count(t, "SELECT count(*) FROM payments"))
			require.Zero(t, stats.Stale)
		case "upsert":
			require.Equal(t, n, have)
			require.Equal(t, n, paid)
			require.Greater(t, stats.Stale, int64(n/4), "there was disorder")
		case "natural":
			require.Greater(t, stats.Stale, int64(n/4), "there was disorder")
			require.EqualValues(t, stats.Stale, n-have, "each order whose creation was overtaken is missing, and the count says so")
		}
		t.Logf("%s: %d orders, %d messages, %d orders kept, %+v", name, n, len(events), have, stats)
	}
}

// None of 2,000 orders in disorder is lost if payments are facts, or if each event has the
// order's whole state. The form that comes to mind first loses a part of them.
//
//	SUREHOOK_ORDERS=10000 go test -run TestNaturalConsumer -v ./receiver
func TestNaturalConsumerOnSQLite(t *testing.T) {
	b, db := onSQLite(t)
	_, err := db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY, paid BOOLEAN NOT NULL); CREATE TABLE payments (id TEXT NOT NULL)")
	require.NoError(t, err)
	warehouse[*sql.Tx]{
		inTx: grouped(t, b.inTx, receiver.SQLExec), store: b.store,
		exec: func(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
			_, err := tx.ExecContext(ctx, strings.ReplaceAll(query, "$", "?"), args...)
			return err
		},
		count: func(t *testing.T, query string) int { return count(t, db, query) },
	}.test(t, "facts", "upsert", "natural")
}

func TestNaturalConsumerOnPostgres(t *testing.T) {
	b, pool := onPostgres(t, "read committed")
	_, err := pool.Exec(t.Context(), "CREATE TABLE orders (id text PRIMARY KEY, paid boolean NOT NULL); CREATE TABLE payments (id text NOT NULL)")
	require.NoError(t, err)
	warehouse[pgx.Tx]{
		inTx: b.inTx, store: b.store,
		exec: func(ctx context.Context, tx pgx.Tx, query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		},
		count: func(t *testing.T, query string) (n int) {
			require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&n))
			return n
		},
	}.test(t, "facts", "upsert")
}
