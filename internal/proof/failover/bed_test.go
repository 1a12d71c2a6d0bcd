package failover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
)

// serve starts a server that ends with the test.
func serve(t *testing.T, start func() (*pgtest.Server, error)) *pgtest.Server {
	t.Helper()
	if err := pgtest.Missing(); err != nil {
		t.Skipf("NOT TESTED on PostgreSQL: %v", err)
	}
	s, err := start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

func fresh(t *testing.T) *pgtest.Server {
	t.Helper()
	return serve(t, func() (*pgtest.Server, error) { return pgtest.Start(pgtest.Options{Durable: true}) })
}

func connect(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func run(t *testing.T, pool *pgxpool.Pool, query string, args ...any) {
	t.Helper()
	_, err := pool.Exec(context.Background(), query, args...)
	require.NoError(t, err, query)
}

func read[T any](t *testing.T, pool *pgxpool.Pool, query string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, pool.QueryRow(context.Background(), query, args...).Scan(&v), query)
	return v
}

// service is a sending service on a database. Its posts go to its world.
type service struct {
	t       *testing.T
	world   *world
	pool    *pgxpool.Pool
	store   *postgres.Store[pgx.Tx]
	keys    *sender.Keys
	reg     *sender.Registry[pgx.Tx]
	pub     *sender.Publisher[pgx.Tx]
	history *history.History
}

func newService(t *testing.T, w *world, dsn string) *service {
	t.Helper()
	s := &service{t: t, world: w, pool: connect(t, dsn)}
	var err error
	s.store, err = postgres.New(s.pool, nil)
	require.NoError(t, err)
	s.keys, err = sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	s.reg, err = sender.NewRegistry(s.store, s.keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	s.pub, err = sender.NewPublisher(s.store, nil)
	require.NoError(t, err)
	s.history, err = history.New(s.store, nil)
	require.NoError(t, err)
	return s
}

// subscribe makes a subscription to all events. The world keeps its events under the
// name.
func (s *service) subscribe(name string) sender.Subscription {
	s.t.Helper()
	ctx := context.Background()
	_, _, err := s.reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_" + name})
	require.NoError(s.t, err)
	sub, err := s.reg.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_" + name, URL: "https://127.0.0.1/" + name, EventTypes: []string{"thing.*"}})
	require.NoError(s.t, err)
	return sub
}

// begun is a service on a fresh server, with the tables.
func begun(t *testing.T) (*service, *pgtest.Server) {
	t.Helper()
	server := fresh(t)
	s := newService(t, newWorld(t), server.DSN())
	require.NoError(t, s.store.Migrate(t.Context()))
	return s, server
}

// publish publishes an event about an object, for everybody.
func (s *service) publish(object string) sender.Ref {
	s.t.Helper()
	ref, err := s.pub.Publish(context.Background(), change(object))
	require.NoError(s.t, err)
	return ref
}

func change(object string) sender.Event {
	return sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: object}}
}

func (s *service) dispatcher() *dispatch.Dispatcher { return s.dispatcherWith(dispatch.Hooks{}) }

func (s *service) dispatcherWith(hooks dispatch.Hooks) *dispatch.Dispatcher {
	s.t.Helper()
	soon, err := backoff.Fixed(time.Millisecond)
	require.NoError(s.t, err)
	d, err := dispatch.New(s.store, s.keys, &dispatch.Config{
		Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: soon, Horizon: time.Millisecond}},
		// A claim without a result lasts for its lease.
		Timeout: 3 * time.Second, Lease: 9 * time.Second, Hooks: hooks,
		UnguardedTransport: s.world, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(s.t, err)
	return d
}

// drain makes all due attempts.
func (s *service) drain() {
	s.t.Helper()
	_, err := s.dispatcher().RunOnce(context.Background())
	require.NoError(s.t, err)
}

// posted has the fields of an event that a receiver reads.
type posted struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Object  struct {
		ID string `json:"id"`
	} `json:"object"`
}

// world has all receivers. It outlives every database.
type world struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[string][]posted // by the name of the subscription

	failing string // the name of a receiver that answers with an error

	tokens atomic.Int64 // of claims: no two are the same, like random ones
}

func newWorld(t *testing.T) *world { return &world{t: t, seen: map[string][]posted{}} }

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var p posted
	if err := json.Unmarshal(body, &p); err != nil {
		w.t.Errorf("%s: %v", body, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.URL.Path[1:] == w.failing {
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody}, nil
	}
	w.seen[r.URL.Path[1:]] = append(w.seen[r.URL.Path[1:]], p)
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
}

// ids returns the ids of the events that a subscription has got.
func (w *world) ids(name string) (ids []string) {
	for _, p := range w.all(name) {
		ids = append(ids, p.ID)
	}
	return ids
}

func (w *world) all(name string) []posted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]posted(nil), w.seen[name]...)
}

// claim claims the due deliveries, like a process that is cut off after the claim.
func (s *service) claim() []dispatch.Claimed {
	s.t.Helper()
	b := dispatch.Batch{Decide: dispatch.Policy{}.Decide}
	b.Claim.Lease, b.Claim.Token = time.Minute, s.world.tokens.Add(1)
	for lane := range b.Claim.Lanes {
		b.Claim.Lanes[lane] = dispatch.LaneParams{Slots: 100, PerSubscriber: 100, PerSubscription: 100}
	}
	_, c, err := s.store.Step(context.Background(), dispatch.ExpandParams{}, b)
	require.NoError(s.t, err)
	return c.Claimed
}
