//go:build linux

package postgres_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/takeovertest"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/storetest"
)

// There are fewer connections to the server than clients, so a connection changes its
// client after each transaction.
const bouncing = `[databases]
postgres = host={{.Host}} port={{.Port}} dbname=postgres user=postgres pool_size=6
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {{.Listen}}
unix_socket_dir =
auth_type = any
pool_mode = {{.Mode}}
max_client_conn = 300
server_reset_query_always = 0
`

// pooled is the server behind all PgBouncers, which reach it by TCP.
var pooled = sync.OnceValues(func() (*pgtest.Server, error) {
	return pgtest.Start(pgtest.Options{Durable: true, TCP: true, Folder: pgtest.InMemory(), Settings: map[string]string{"min_wal_size": "32MB", "max_wal_size": "128MB"}})
})

// bouncer is a PgBouncer in front of a server that has clients of PgBouncers alone.
type bouncer struct {
	direct, through string // connection strings
}

func newBouncer(t *testing.T, mode string) bouncer {
	t.Helper()
	pgtest.DSN(t) // skips without an installed server
	s := servertest.New(t, "pgbouncer")
	server, err := pooled()
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(server.Address())
	require.NoError(t, err)
	listen := s.Port()
	s.Start(s.Write("ini", bouncing, map[string]any{"Host": host, "Port": port, "Listen": listen, "Mode": mode}))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Log())
		}
	})
	return bouncer{server.DSN(), "postgres://postgres@127.0.0.1:" + strconv.Itoa(listen) + "/postgres?sslmode=disable"}
}

func poolOf(t *testing.T, dsn string, settings ...string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), pgtest.With(dsn, append([]string{"pool_max_conns", "16"}, settings...)...))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// In transaction mode all calls work in the query modes in which a statement does not
// depend on an earlier one.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	b := newBouncer(t, "transaction")
	all := schemasOn(t, poolOf(t, b.direct))
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		t.Run("service "+mode, func(t *testing.T) {
			p := &place{schema: all.take(t), pool: all.pool, all: all}
			s := newService(t, poolOf(t, b.through, "default_query_exec_mode", mode), &postgres.Config{Schema: p.schema, Pooler: true}, 3)
			for range 10 {
				s.deliver(t, 20, 60)
			}
			p.settled(t)
		})
	}
	// A connection has another client's prepared statements, unless a newer
	// PgBouncer keeps track of them.
	t.Run("prepared statements", func(t *testing.T) {
		p := &place{schema: all.take(t), pool: all.pool, all: all}
		s, err := postgres.New(poolOf(t, b.through), &postgres.Config{Schema: p.schema, Pooler: true})
		require.NoError(t, err)
		errs := make(chan error, 8*20)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					errs <- s.Check(t.Context())
				}
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				require.ErrorContains(t, err, "max_prepared_statements")
			}
		}
		newService(t, poolOf(t, b.through, "default_query_exec_mode", "exec"), &postgres.Config{Schema: p.schema, Pooler: true}, 1).deliver(t, 1, 1)
	})
	t.Run("two trips", func(t *testing.T) {
		_, err := postgres.New(poolOf(t, b.through, "default_query_exec_mode", "describe_exec"), &postgres.Config{Pooler: true})
		require.ErrorContains(t, err, "default_query_exec_mode=exec")
	})
	// A store that was not told of the PgBouncer.
	t.Run("unsaid", func(t *testing.T) {
		s, err := postgres.New(poolOf(t, b.through, "default_query_exec_mode", "exec"), &postgres.Config{Schema: all.take(t)})
		require.NoError(t, err)
		defer s.Open()()
		err = s.Check(t.Context())
		require.ErrorIs(t, err, sender.ErrUnfit)
		require.ErrorContains(t, err, "set Config.Pooler")
	})
	// No shared connection is left listening, and the hint of a process that
	// publishes is in vain.
	t.Run("hints", func(t *testing.T) {
		s, err := postgres.New(poolOf(t, b.through, "default_query_exec_mode", "exec"), &postgres.Config{Schema: all.take(t), Pooler: true})
		require.NoError(t, err)
		s.Wake()
		require.Eventually(t, func() bool { return !s.Hinting() }, 30*time.Second, time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Listen(ctx)
		}()
		cancel()
		<-ended
		var listening int
		require.NoError(t, all.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`).Scan(&listening))
		require.Zero(t, listening)
	})
}

// A PgBouncer of its own has connections enough, whatever waits behind others.
func TestPgBouncerWithTheSuite(t *testing.T) {
	t.Parallel()
	withoutRace(t, "the race detector's findings do not depend on the pooler")
	b := newBouncer(t, "transaction")
	all := schemasOn(t, poolOf(t, b.direct))
	pool := poolOf(t, b.through, "default_query_exec_mode", "exec")
	open, err := postgres.New(pool, &postgres.Config{Pooler: true})
	require.NoError(t, err)
	t.Cleanup(open.Open())
	run := storetest.RunCallers[pgx.Tx]
	if every() {
		run = storetest.Run[pgx.Tx]
	}
	run(t, func(t *testing.T) storetest.Harness[pgx.Tx] {
		store, h := onPgx(t, all, pool, true)
		store.Share(open)
		return h
	})
}

func TestPgBouncerWithProcesses(t *testing.T) {
	t.Parallel()
	withoutRace(t, "the race detector's findings do not depend on the pooler")
	b := newBouncer(t, "transaction")
	through := pgtest.With(b.through, "default_query_exec_mode", "exec")
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s, place := ofProcesses(t, b.direct, through, true)
		takeovertest.Killed(t, s, place)
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		s, place := ofProcesses(t, b.direct, through, true)
		takeovertest.Stopped(t, s, place)
	})
}

// In session mode it refuses settings as well.
func TestPgBouncerWithSessions(t *testing.T) {
	t.Parallel()
	b := newBouncer(t, "session")
	all := schemasOn(t, poolOf(t, b.direct))
	p := &place{schema: all.take(t), pool: all.pool, all: all}
	pool := poolOf(t, b.through, "pool_max_conns", "2")
	s, err := postgres.New(pool, &postgres.Config{Schema: p.schema})
	require.NoError(t, err)
	done := s.Open()
	err = s.Check(t.Context())
	require.True(t, errors.Is(err, sender.ErrUnfit), err)
	done()
	newService(t, pool, &postgres.Config{Schema: p.schema, Pooler: true}, 3).deliver(t, 20, 60)
	p.settled(t)
}
