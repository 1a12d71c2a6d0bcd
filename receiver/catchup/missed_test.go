package catchup_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/dedup"
	dedupPostgres "github.com/surehook/surehook/dedup/postgres"
	dedupSQLite "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	catchupPostgres "github.com/surehook/surehook/receiver/catchup/postgres"
	catchupSQLite "github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	senderPostgres "github.com/surehook/surehook/sender/postgres"
	senderSQLite "github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
	"github.com/surehook/surehook/signing"
)

// both is a sender and a consumer, each with tables of its own.
type both struct {
	store   storetest.Store[*sql.Tx]
	db      *sql.DB // the consumer's
	markers dedup.Store[*sql.Tx]
	cursors catchup.CursorStore[*sql.Tx]
	insert  string
}

// Posts get lost, come twice, or break off after they were applied. Catching up brings the
// lost events, and no others, and lists them. Each event has one effect.
func TestWhatPushMisses(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		open := func(name string) *sql.DB {
			db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), name)+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, db.Close()) })
			return db
		}
		store, err := senderSQLite.New(open("sender.db"), nil)
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		db := open("consumer.db")
		require.NoError(t, dedupSQLite.Migrate(t.Context(), db))
		require.NoError(t, catchupSQLite.Migrate(t.Context(), db))
		missed(t, both{store, db, dedupSQLite.New(), catchupSQLite.New(), "INSERT INTO effects VALUES (?)"})
	})
	t.Run("postgres", func(t *testing.T) {
		admin, err := sql.Open("pgx", pgtest.DSN(t))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, admin.Close()) })
		schema := pgtest.Schema(t, admin)
		pool, err := pgxpool.New(t.Context(), pgtest.With(pgtest.DSN(t), "search_path", schema, "pool_max_conns", "15"))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		store, err := senderPostgres.NewSQL(pool, nil)
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		db := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		require.NoError(t, dedupPostgres.Migrate(t.Context(), db, nil))
		require.NoError(t, catchupPostgres.Migrate(t.Context(), db, nil))
		markers, err := dedupPostgres.NewSQL(nil)
		require.NoError(t, err)
		cursors, err := catchupPostgres.NewSQL(nil)
		require.NoError(t, err)
		missed(t, both{store, db, markers, cursors, "INSERT INTO effects VALUES ($1)"})
	})
}

func missed(t *testing.T, b both) {
	const events = 120
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	_, err := b.db.Exec("CREATE TABLE effects (id TEXT NOT NULL)")
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	network := sender.Network{AllowPrivateNetworks: true}
	registry, err := sender.NewRegistry(b.store, keys, &sender.RegistryConfig{Network: network})
	require.NoError(t, err)
	pub, err := sender.NewPublisher(b.store, nil)
	require.NoError(t, err)
	_, secret, err := registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	_, _, err = registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_b"})
	require.NoError(t, err)

	// The consumer is behind a proxy that loses requests that it has accepted.
	keyring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keyring, nil)
	require.NoError(t, err)
	rcv, err := receiver.New(verifier, receiver.SQL(b.db, nil), b.markers, "default", &receiver.Config{Logger: quiet})
	require.NoError(t, err)
	apply := func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, b.insert, ev.ID)
		return err
	}
	inner := rcv.Handler(receiver.State(apply))
	var mu sync.Mutex
	var lost []string
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		again := func() *http.Request {
			r := r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(body))
			return r
		}
		switch rand.IntN(5) {
		case 0: // accepted, and gone
			mu.Lock()
			lost = append(lost, r.Header.Get("Webhook-Id"))
			mu.Unlock()
		case 1: // twice
			inner.ServeHTTP(httptest.NewRecorder(), again())
			inner.ServeHTTP(w, again())
		default:
			inner.ServeHTTP(w, again())
		}
	}))
	t.Cleanup(endpoint.Close)
	sub, err := registry.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: endpoint.URL, EventTypes: []string{"thing.*"}})
	require.NoError(t, err)

	schedule, err := backoff.Fixed(10 * time.Millisecond)
	require.NoError(t, err)
	dispatcher, err := dispatch.New(b.store, keys, &dispatch.Config{
		Network: network, Timeout: 30 * time.Second, Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule}}, Logger: quiet,
	})
	require.NoError(t, err)
	dispatching, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- dispatcher.Run(dispatching) }()
	defer func() {
		stop()
		require.NoError(t, <-ran)
	}()

	var mine []string
	publish := func(n int) {
		for i := range n {
			to := []string{"sub_a", "", "sub_b"}[i%3]
			ref, err := pub.Publish(ctx, sender.Event{Type: "thing.made", Subscriber: to, Object: sender.Object{Type: "thing", ID: fmt.Sprint(len(mine), "-", i)}, Data: json.RawMessage(`{ "a": "<b>" }`)})
			require.NoError(t, err)
			if to != "sub_b" {
				mine = append(mine, ref.ID)
			}
		}
	}
	publish(events)
	past, err := history.New(b.store, nil)
	require.NoError(t, err)
	delivered := func() int {
		list, _, err := past.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusDelivered, Limit: 200})
		require.NoError(t, err)
		return len(list)
	}
	require.Eventually(t, func() bool { return delivered() == len(mine) }, 5*time.Minute, 10*time.Millisecond)

	// The feed is served over TLS and with a token.
	reader, err := feed.NewReader(b.store, nil)
	require.NoError(t, err)
	served, err := feed.NewHandler(reader, func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") != "Bearer token" {
			return "", feed.ErrUnauthorized
		}
		return "sub_a", nil
	}, nil)
	require.NoError(t, err)
	server := httptest.NewTLSServer(served)
	t.Cleanup(server.Close)
	t.Cleanup(reader.Drain)
	client, err := catchup.NewClient(server.URL, &catchup.ClientConfig{Token: catchup.Token("token"), Transport: server.Client().Transport})
	require.NoError(t, err)
	c, err := catchup.New(client, rcv, receiver.SQL(b.db, nil), b.cursors, receiver.State(apply), &catchup.Config{Limit: 13, Wait: 2 * time.Second, Logger: quiet})
	require.NoError(t, err)

	report, err := c.Reconcile(ctx, "")
	require.NoError(t, err)
	mu.Lock()
	require.NotEmpty(t, lost)
	require.ElementsMatch(t, lost, report.Missed)
	require.Equal(t, catchup.Report{Seen: len(mine), Applied: len(lost), Duplicates: len(mine) - len(lost), Missed: report.Missed, Next: report.Next}, report)
	mu.Unlock()
	require.ElementsMatch(t, mine, column(t, b.db, "SELECT id FROM effects"), "one effect each")

	again, err := c.Reconcile(ctx, "")
	require.NoError(t, err)
	require.Zero(t, again.Applied)
	require.Equal(t, len(mine), again.Duplicates)

	reapplied(ctx, t, b, rcv, c, mine)

	// Without posts, as behind NAT, all events come by the feed, as soon as they are there.
	require.NoError(t, registry.Pause(ctx, sub.ID))
	running, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(running) }()
	publish(30)
	require.Eventually(t, func() bool { return len(column(t, b.db, "SELECT DISTINCT id FROM effects")) == len(mine) }, 5*time.Minute, 10*time.Millisecond)
	end()
	require.NoError(t, <-done)
	// The events that were held meanwhile come as duplicates.
	require.NoError(t, registry.Resume(ctx, sub.ID, sender.Resume{}))
	require.Eventually(t, func() bool { return delivered() == len(mine) }, 5*time.Minute, 10*time.Millisecond)
	require.ElementsMatch(t, mine, column(t, b.db, "SELECT DISTINCT id FROM effects"))
	t.Logf("%d events, of which posts had missed %d", len(mine), len(report.Missed))
}

// reapplied asks for events by event, by object and by time. The next run that reads them
// applies them again, once, and no other run does.
func reapplied(ctx context.Context, t *testing.T, b both, rcv *receiver.Receiver[*sql.Tx], c *catchup.Catchup[*sql.Tx], mine []string) {
	again := func(req receiver.ReapplyRequest, want []string) {
		t.Helper()
		effects := column(t, b.db, "SELECT id FROM effects")
		_, err := rcv.Reapply(ctx, req)
		require.NoError(t, err)
		require.ElementsMatch(t, effects, column(t, b.db, "SELECT id FROM effects"), "by itself it changes nothing")
		for _, n := range []int{len(want), 0} {
			report, err := c.Reconcile(ctx, "")
			require.NoError(t, err)
			require.Equal(t, catchup.Report{Seen: len(mine), Reapplied: n, Duplicates: len(mine) - n, Next: report.Next}, report)
			require.ElementsMatch(t, slices.Concat(effects, want), column(t, b.db, "SELECT id FROM effects"))
		}
	}
	again(receiver.ReapplyRequest{Event: mine[3]}, mine[3:4])
	again(receiver.ReapplyRequest{Object: dedup.Object{Type: "thing", ID: "0-0"}}, mine[:1])
	again(receiver.ReapplyRequest{From: time.Now().Add(-time.Hour)}, mine)
	again(receiver.ReapplyRequest{From: time.Now().Add(-time.Hour), Until: time.Now().Add(-time.Hour / 2)}, nil)
}
