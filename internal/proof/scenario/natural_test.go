package scenario_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/dedup"
	dedupPostgres "github.com/surehook/surehook/dedup/postgres"
	dedupSQLite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
)

// trade is a service with orders, and a consumer that copies them.
type trade struct {
	store   surehook.Store[*sql.Tx]
	source  *sql.DB // the service's
	copies  *sql.DB // the consumer's
	markers dedup.Store[*sql.Tx]
	away    func(t *testing.T) (back func()) // takes the consumer's database away
}

type order struct {
	ID   string
	Paid bool
}

// A consumer inserts an order when it is created and a payment when it is paid, as facts;
// another one copies the whole order each time. Their endpoint answers 503, hangs up, loses
// answers and is without its database, again and again. Both end with what the service has.
//
//	SUREHOOK_ORDERS=10000 go test -timeout 1h -run TestNaturalConsumerThroughOutages -v ./internal/proof/scenario
func TestNaturalConsumerThroughOutages(t *testing.T) {
	t.Parallel()
	if race.Enabled {
		t.Skip("its parts race in their own tests; that nothing is lost is shown without the race detector")
	}
	for name, on := range map[string]func(*testing.T) trade{"sqlite": tradeOnSQLite, "postgres": tradeOnPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t).run(t)
		})
	}
}

func tradeOnSQLite(t *testing.T) trade {
	folder := t.TempDir()
	open := func(name, wait string) *sql.DB {
		db, err := sql.Open("sqlite", strings.Replace(crashDSN(filepath.Join(folder, name)), "busy_timeout(20000)", "busy_timeout("+wait+")", 1))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
	source, copies, holder := open("service.db", "20000"), open("consumer.db", "50"), open("consumer.db", "20000")
	store, err := sqlite.New(source, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	require.NoError(t, dedupSQLite.Migrate(t.Context(), copies))
	var mu sync.Mutex
	var holding *sql.Tx // it has the lock, for longer than others wait
	var holders int
	return trade{store, source, copies, dedupSQLite.New(), func(t *testing.T) func() {
		mu.Lock()
		defer mu.Unlock()
		if holders == 0 {
			var err error
			if holding, err = holder.BeginTx(context.WithoutCancel(t.Context()), nil); err != nil {
				t.Error(err)
				return func() {}
			}
		}
		holders++
		return func() {
			mu.Lock()
			defer mu.Unlock()
			if holders--; holders == 0 {
				_ = holding.Rollback()
			}
		}
	}}
}

func tradeOnPostgres(t *testing.T) trade {
	admin, err := sql.Open("pgx", pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	open := func() (*pgxpool.Pool, *sql.DB, string) {
		schema := pgtest.Schema(t, admin)
		pool, err := pgxpool.New(t.Context(), pgtest.With(pgtest.DSN(t), "search_path", schema, "application_name", schema, "pool_max_conns", "12"))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		db := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return pool, db, schema
	}
	pool, source, _ := open()
	_, copies, consumer := open()
	store, err := postgres.NewSQL(pool, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	require.NoError(t, dedupPostgres.Migrate(t.Context(), copies, nil))
	markers, err := dedupPostgres.NewSQL(nil)
	require.NoError(t, err)
	return trade{store, source, copies, markers, func(t *testing.T) func() {
		_, err := admin.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", consumer)
		if err != nil {
			t.Error(err)
		}
		return func() {}
	}}
}

// flaky is an endpoint that is out of order after each of some stretches of requests, each
// time in another way.
func (tr trade) flaky(t *testing.T, orders int, inner http.Handler) http.Handler {
	well, out := int64(max(20, orders/10)), int64(max(10, orders/200))
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		if n%(well+out) < well {
			inner.ServeHTTP(w, r)
			return
		}
		switch n / (well + out) % 4 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			panic(http.ErrAbortHandler)
		case 2: // it is applied, and nobody learns of it
			inner.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			back := tr.away(t)
			defer back()
			inner.ServeHTTP(w, r)
		}
	})
}

func (tr trade) run(t *testing.T) {
	n := 100
	if text := os.Getenv("SUREHOOK_ORDERS"); text != "" {
		_, err := fmt.Sscan(text, &n)
		require.NoError(t, err, "SUREHOOK_ORDERS")
	}
	for db, query := range map[*sql.DB]string{
		tr.source: "CREATE TABLE orders (id TEXT PRIMARY KEY, paid BOOLEAN NOT NULL)",
		tr.copies: "CREATE TABLE facts (id TEXT PRIMARY KEY); CREATE TABLE payments (id TEXT NOT NULL); CREATE TABLE copies (id TEXT PRIMARY KEY, paid BOOLEAN NOT NULL)",
	} {
		_, err := db.Exec(query)
		require.NoError(t, err)
	}
	ctx, quiet := t.Context(), slog.New(slog.DiscardHandler)
	const delay = 20 * time.Millisecond
	schedule, err := backoff.Fixed(delay)
	require.NoError(t, err)
	hooks, err := surehook.NewSender(tr.store, sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)}, &surehook.SenderConfig{
		Network: sender.Network{AllowPrivateNetworks: true}, Logger: quiet,
		Dispatch: dispatch.Config{Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, MaxRetryAfter: delay}}}, // a receiver without its database asks for five seconds
	})
	require.NoError(t, err)
	owner, secret, err := hooks.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	require.NoError(t, err)
	receivers := map[string]*receiver.Receiver[*sql.Tx]{}
	for form, routes := range tr.forms() {
		work, err := receiver.Router(routes...)
		require.NoError(t, err)
		receivers[form], err = surehook.NewReceiver(receiver.SQL(tr.copies, nil), tr.markers, form, secret.Reveal(), &surehook.ReceiverConfig{Receive: receiver.Config{Logger: quiet}})
		require.NoError(t, err)
		server := httptest.NewServer(tr.flaky(t, n, receivers[form].Handler(work)))
		t.Cleanup(server.Close)
		_, err = hooks.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: server.URL})
		require.NoError(t, err)
	}
	running, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- hooks.Run(running) }()
	began := time.Now()
	events := tr.trade(t, hooks.Publisher, n)
	require.Eventually(t, func() bool { return tr.count(t, tr.copies, "SELECT count(*) FROM surehook_dedup_markers") == 2*events },
		20*time.Minute, 100*time.Millisecond, "not all events were taken")
	stop()
	require.NoError(t, <-ran)

	orders := tr.rows(t, tr.source, "SELECT id, paid FROM orders ORDER BY id")
	require.Len(t, orders, n)
	require.Equal(t, orders, tr.rows(t, tr.copies, "SELECT id, paid FROM copies ORDER BY id"), "copied whole")
	require.Equal(t, orders, tr.rows(t, tr.copies, "SELECT id, EXISTS (SELECT 1 FROM payments WHERE payments.id = facts.id) FROM facts ORDER BY id"), "as facts")
	require.Equal(t, events-n, tr.count(t, tr.copies, "SELECT count(*) FROM payments"), "each payment once")
	facts, upsert := receivers["facts"].Stats(), receivers["upsert"].Stats()
	require.Zero(t, facts.Stale+facts.DeadLettered+upsert.DeadLettered)
	require.Positive(t, facts.Failed, "its database was away")
	require.Positive(t, upsert.Duplicate, "answers were lost")
	t.Logf("%d orders, %d events, in %v: facts %+v, upsert %+v", n, events, time.Since(began).Round(time.Second), facts, upsert)
}

// forms are two ways to write the consumer. Neither loses an order.
func (tr trade) forms() map[string][]receiver.Route[*sql.Tx] {
	doing := func(query string) func(context.Context, *sql.Tx, receiver.Typed[order]) error {
		return func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[order]) error {
			_, err := tx.ExecContext(ctx, fmt.Sprintf(query, ev.Data.ID, ev.Data.Paid))
			return err
		}
	}
	return map[string][]receiver.Route[*sql.Tx]{
		"facts": {
			receiver.OnFact("order.created", doing("INSERT INTO facts VALUES ('%[1]s')")),
			receiver.OnFact("order.paid", doing("INSERT INTO payments VALUES ('%[1]s')")),
		},
		"upsert": {
			receiver.OnState("order.*", doing("INSERT INTO copies VALUES ('%s', %t) ON CONFLICT (id) DO UPDATE SET paid = excluded.paid")),
		},
	}
}

// trade makes orders, of which two of three are paid, and returns how many events there were.
func (tr trade) trade(t *testing.T, pub *sender.Publisher[*sql.Tx], n int) (published int) {
	const atOnce = 50
	do := func(kind, query string, from int, each func(i int) bool) {
		var events []sender.Event
		require.NoError(t, pub.InTx(t.Context(), func(tx *sql.Tx) error {
			events = nil
			for i := from; i < min(from+atOnce, n); i++ {
				if !each(i) {
					continue
				}
				o := order{fmt.Sprint("order_", i), kind == "order.paid"}
				if _, err := tx.ExecContext(t.Context(), fmt.Sprintf(query, o.ID)); err != nil {
					return err
				}
				events = append(events, sender.Event{Type: kind, Object: sender.Object{Type: "order", ID: o.ID}, Data: o})
			}
			_, err := pub.PublishManyTx(t.Context(), tx, events)
			return err
		}))
		published += len(events)
	}
	for from := 0; from < n; from += atOnce {
		do("order.created", "INSERT INTO orders VALUES ('%s', false)", from, func(int) bool { return true })
		do("order.paid", "UPDATE orders SET paid = true WHERE id = '%s'", from, func(i int) bool { return i%3 != 0 })
	}
	return published
}

func (tr trade) count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	for try := 0; ; try++ { // connections may just have been cut
		err := db.QueryRow(query).Scan(&n)
		if err == nil || try == 20 {
			require.NoError(t, err)
			return n
		}
	}
}

func (tr trade) rows(t *testing.T, db *sql.DB, query string) (all []order) {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var o order
		require.NoError(t, rows.Scan(&o.ID, &o.Paid))
		all = append(all, o)
	}
	require.NoError(t, rows.Err())
	return all
}
