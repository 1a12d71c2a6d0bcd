package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/postgres"
)

var answering = roundTripper(func(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
})

// service has the parts of a process that publishes and dispatches.
type service struct {
	store     *pgxStore
	publisher *sender.Publisher[pgx.Tx]
	dispatch  *dispatch.Dispatcher
}

// newService makes a service with a subscriber, who has n subscriptions.
func newService(t *testing.T, pool *pgxpool.Pool, cfg *postgres.Config, subscriptions int) *service {
	t.Helper()
	s, err := postgres.New(pool, cfg)
	require.NoError(t, err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	registry, err := sender.NewRegistry(s, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	_, _, err = registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	for range subscriptions {
		_, err = registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://127.0.0.1/"})
		require.NoError(t, err)
	}
	p, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	d, err := dispatch.New(s, keys, &dispatch.Config{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), UnguardedTransport: answering,
	})
	require.NoError(t, err)
	return &service{s, p, d}
}

// deliver publishes events and runs a dispatcher, which makes a number of deliveries.
func (s *service) deliver(t *testing.T, events, deliveries int) {
	t.Helper()
	all := make([]sender.Event, events)
	for i := range all {
		all[i] = sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}}
	}
	_, err := s.publisher.PublishMany(t.Context(), all)
	require.NoError(t, err)
	s.dispatch1(t, deliveries)
}

// dispatch1 runs a dispatcher once, which makes a number of deliveries.
func (s *service) dispatch1(t *testing.T, delivered int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stats, err := s.dispatch.RunOnce(ctx)
	require.NoError(t, err)
	require.Equal(t, delivered, stats.Delivered)
}

func sessions(t *testing.T, p *place, name string) int {
	return p.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, name)
}

// A dispatcher works although the application has all connections of its pool in use,
// and takes none of them. When the dispatcher has ended it has no connections.
func TestDispatcherHasConnectionsOfItsOwn(t *testing.T) {
	p := newPlace(t)
	name := newid.New("own ", time.Now())
	pool := openPool(t, "pool_max_conns", "1", "application_name", name)
	s := newService(t, pool, &postgres.Config{Schema: p.schema}, 1)
	require.Equal(t, 1, sessions(t, p, name), "a process that only publishes has those of its pool")
	_, err := s.publisher.Publish(t.Context(), sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}})
	require.NoError(t, err)
	// The hint that follows a commit takes a connection of the pool.
	require.Eventually(t, func() bool { return !s.store.Hinting() }, 30*time.Second, time.Millisecond)
	taken, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer taken.Release()
	s.dispatch1(t, 1)
	p.settled(t)
	require.Eventually(t, func() bool { return sessions(t, p, name) == 1 }, 30*time.Second, time.Millisecond, "sessions that go on")
}

// The application's hook for new connections also runs for the dispatchers'. It cannot
// change the settings that they need, and neither can the role's settings.
func TestSettingsOfDispatchers(t *testing.T) {
	p := newPlace(t)
	role := []string{"lock_timeout", "100ms", "statement_timeout", "1s", "synchronous_commit", "off", "default_transaction_isolation", "serializable"}
	limited := p.count(t, `SELECT current_setting('server_version_num')::int`) >= 170000 // the limit of a transaction came with release 17
	if limited {
		role = append(role, "transaction_timeout", "10s")
	}
	cfg, err := pgxpool.ParseConfig(pgtest.With(pgtest.DSN(t), role...))
	require.NoError(t, err)
	var before, after int
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		before++
		c.RuntimeParams["application_name"] = "before"
		return nil
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		after++
		_, err := conn.Exec(ctx, `SET enable_seqscan = on; SET extra_float_digits = 2`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	for _, pooler := range []bool{false, true} {
		s, err := postgres.New(pool, &postgres.Config{Schema: p.schema, Pooler: pooler})
		require.NoError(t, err)
		done := s.Open()
		before, after = 0, 0
		all := map[string]string{}
		require.NoError(t, s.Settings(t.Context(), all))
		require.Equal(t, []int{1, 1}, []int{before, after})
		for name, want := range map[string]string{
			"enable_seqscan": "off", "enable_sort": "off", "plan_cache_mode": "force_generic_plan", "jit": "off",
			"transaction_isolation": "read committed", "synchronous_commit": "on", "lock_timeout": "5s", "statement_timeout": "1min",
			"idle_in_transaction_session_timeout": "2s", "application_name": "before", "extra_float_digits": "2",
		} {
			require.Equal(t, want, all[name], "%s, pooler: %v", name, pooler)
		}
		if limited {
			require.Equal(t, "0", all["transaction_timeout"], "pooler: %v", pooler)
		}
		done()
	}
}

// A setting that is stricter than dispatchers need stays.
func TestDispatchersKeepStricterDurability(t *testing.T) {
	p := newPlace(t)
	s := p.store(t, "synchronous_commit", "remote_apply")
	defer s.Open()()
	all := map[string]string{}
	require.NoError(t, s.Settings(t.Context(), all))
	require.Equal(t, "remote_apply", all["synchronous_commit"])
}

// After a node has refused to write, dispatchers connect anew: their connections do not
// stay with a former primary.
func TestDispatchersLeaveANodeThatIsReadOnly(t *testing.T) {
	p := newPlace(t)
	role := strings.ToLower(p.schema)
	p.exec(t, `CREATE ROLE "`+role+`" SUPERUSER LOGIN`)
	t.Cleanup(func() { p.exec(t, `DROP ROLE "`+role+`"`) })
	cfg, err := pgxpool.ParseConfig(pgtest.DSN(t))
	require.NoError(t, err)
	cfg.ConnConfig.User = role
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	defer s.Open()()
	register(t, s, 1, 1, sender.Settings{})
	publish(t, s, 1, 1)

	// The present connections refuse writes, and new ones accept them.
	require.NoError(t, s.Set(t.Context(), "default_transaction_read_only", "on"))
	_, _, err = s.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.ErrorContains(t, err, "25006")
	require.Equal(t, 1, expandAll(t, s))

	// New connections refuse them, too, until that ends.
	require.NoError(t, s.Set(t.Context(), "default_transaction_read_only", "on"))
	p.exec(t, `ALTER ROLE "`+role+`" SET default_transaction_read_only = on`)
	publish(t, s, 1, 1)
	_, _, err = s.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.ErrorContains(t, err, "25006")
	err = s.Check(t.Context())
	require.Error(t, err)
	require.False(t, errors.Is(err, sender.ErrUnfit), "it is waited for: %v", err)
	p.exec(t, `ALTER ROLE "`+role+`" RESET default_transaction_read_only`)
	require.Equal(t, 1, expandAll(t, s))
}
