package fault_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	deduppostgres "github.com/surehook/surehook/dedup/postgres"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/faultdriver"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender/postgres"
)

// counted is a pool whose writes and dials are counted.
func counted(t *testing.T, dsn string, calls *atomic.Int64) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	require.NoError(t, err)
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		calls.Add(1)
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &faultdriver.Conn{Conn: c, OnWrite: func(b []byte, write func([]byte) (int, error)) (int, error) {
			calls.Add(1)
			return write(b)
		}}, nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// A database in trouble stops a sender and a receiver for as long as the trouble lasts.
// They lose nothing, do not poll all the time, and go on by themselves.
func TestDatabaseInTrouble(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // skips without an installed server
	server, err := pgtest.Start(pgtest.Options{Durable: true, TCP: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	l := newLink(t, server.Address())
	direct := "postgres://postgres@" + server.Address() + "/postgres?sslmode=disable"
	over := "postgres://postgres@" + l.addr + "/postgres?sslmode=disable&connect_timeout=2"

	sound, err := sql.Open("pgx", direct)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sound.Close()) })
	require.NoError(t, deduppostgres.Migrate(t.Context(), sound, nil))
	_, err = sound.ExecContext(t.Context(), effects)
	require.NoError(t, err)
	var folder string
	require.NoError(t, sound.QueryRowContext(t.Context(), "SHOW data_directory").Scan(&folder))

	var dispatching, others atomic.Int64
	pool := counted(t, over, &dispatching)
	store, err := postgres.NewSQL(pool, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	s := newService(t, store, 400*time.Millisecond)
	publishing, err := postgres.NewSQL(counted(t, over, &others), nil)
	require.NoError(t, err)
	s.publisher = newService(t, publishing, time.Second).publisher

	applying := stdlib.OpenDBFromPool(counted(t, over, &others))
	t.Cleanup(func() { _ = applying.Close() })
	dedup, err := deduppostgres.NewSQL(nil)
	require.NoError(t, err)
	endpoint := httptest.NewUnstartedServer(nil)
	verifier := s.register(t, "http://"+endpoint.Listener.Addr().String()+"/")
	rcv, err := receiver.New(verifier, receiver.SQL(applying, nil), dedup, "default", &receiver.Config{Logger: quiet, Timeout: 300 * time.Millisecond})
	require.NoError(t, err)
	endpoint.Config.Handler = s.observed(rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects VALUES ('%s', '%s')", ev.ID, ev.Object.ID))
		return err
	})))
	endpoint.Start()
	t.Cleanup(endpoint.Close)
	s.dispatch(t)

	enough, published := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(published)
		for {
			// The publish is not broken off: otherwise nobody would know whether it was
			// committed.
			s.publish(t.Context())
			select {
			case <-enough:
				return
			case <-time.After(10 * time.Millisecond): // so that events do not pile up
			}
		}
	}()
	acknowledged := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.acknowledged)
	}
	goesOn := func(what string) {
		t.Helper()
		before := acknowledged()
		require.Eventually(t, func() bool { return acknowledged() >= before+5 }, soon, 5*time.Millisecond, "%s: it recovers by itself", what)
		require.Eventually(t, func() bool {
			s.lookUp(t.Context())
			return s.pending() < 5
		}, soon, 20*time.Millisecond, "%s: it dispatches again", what)
	}
	// lasts is how long each trouble lasts, and calm how often a dispatcher may call the
	// database in that time. A dispatcher that tries again at once makes thousands of
	// calls.
	const lasts, calm = 800 * time.Millisecond, 150
	goesOn("before")
	for what, begin := range map[string]func() (end func()){
		"delays": func() func() { l.set(delays); return func() { l.set(none) } },
		"drips":  func() func() { l.set(drips); return func() { l.set(none) } },
		"hangs":  func() func() { l.set(hangs); return func() { l.set(none) } },
		"cuts":   func() func() { l.set(cuts); return func() { l.set(none) } },
		"resets": func() func() { l.set(resets); return func() { l.set(none) } },
		"is killed, and restarts": func() func() {
			require.NoError(t, server.Kill())
			return func() { require.NoError(t, server.Restart()) }
		},
		"is read-only, as a standby that is promoted": func() func() {
			require.NoError(t, server.Kill())
			require.NoError(t, os.WriteFile(filepath.Join(folder, "standby.signal"), nil, 0o644))
			before := dispatching.Load()
			require.NoError(t, server.Restart())
			require.Eventually(t, func() bool { return dispatching.Load() > before+3 }, soon, 5*time.Millisecond, "it asks the standby")
			return func() {
				again, err := sql.Open("pgx", direct)
				require.NoError(t, err)
				defer func() { _ = again.Close() }()
				var promoted bool
				require.NoError(t, again.QueryRowContext(t.Context(), "SELECT pg_promote(true, 60)").Scan(&promoted))
				require.True(t, promoted)
			}
		},
	} {
		end := begin()
		began, asked := time.Now(), dispatching.Load()
		time.Sleep(lasts) // the time of the trouble
		asked = dispatching.Load() - asked
		most := calm * time.Since(began).Seconds() / lasts.Seconds() // a busy machine sleeps for longer
		end()
		t.Logf("%s: asked %d times", what, asked)
		require.Less(t, float64(asked), most, "%s: it asks all the time", what)
		goesOn(what)
	}
	close(enough)
	<-published
	s.settled(t, "in the end")
	s.history = newService(t, publishing, time.Second).history
	s.check(t)
	require.Equal(t, len(s.acknowledged), count(t, sound, "SELECT count(*) FROM effects"), "effects")
	require.Equal(t, len(s.acknowledged), count(t, sound, "SELECT count(DISTINCT event) FROM effects"), "events that had effects")
	require.Equal(t, len(s.acknowledged), count(t, sound, "SELECT count(*) FROM surehook_dedup_markers"), "markers")
}
