package postgres_test

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender/postgres"
)

// A connection that a firewall has forgotten answers nothing. Those of dispatchers end then,
// also the one that listens: the system would keep them for a quarter of an hour. The
// application's own are left as they are.
func TestConnectionsOfDispatchersEndInSilence(t *testing.T) {
	pgtest.DSN(t) // skips without an installed server
	server, err := pgtest.Start(pgtest.Options{TCP: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	cfg, err := pgxpool.ParseConfig("postgres://postgres@" + server.Address() + "/postgres?sslmode=disable")
	require.NoError(t, err)
	var mu sync.Mutex
	var dialled []net.Conn
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		mu.Lock()
		defer mu.Unlock()
		dialled = append(dialled, c)
		return c, err
	}
	// taken returns the connections that were made since it was called last.
	taken := func() []net.Conn {
		mu.Lock()
		defer mu.Unlock()
		all := dialled
		dialled = nil
		return all
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := postgres.New(pool, nil)
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	application := taken()
	require.Len(t, application, 1)

	require.Zero(t, option(t, application[0], 18), "TCP_USER_TIMEOUT")
	for _, pooler := range []bool{false, true} {
		s, err := postgres.New(pool, &postgres.Config{Pooler: pooler})
		require.NoError(t, err)
		done := s.Open()
		_, err = s.Present(t.Context())
		require.NoError(t, err)
		if !pooler { // through a pooler it does not listen
			listening(t, s)
		}
		all := taken()
		require.Len(t, all, map[bool]int{false: 2, true: 1}[pooler])
		for _, c := range all {
			require.Equal(t, 20*time.Second, time.Duration(option(t, c, 18))*time.Millisecond, "TCP_USER_TIMEOUT")
			require.Equal(t, 5, option(t, c, syscall.TCP_KEEPIDLE))
			require.Equal(t, 5, option(t, c, syscall.TCP_KEEPINTVL))
		}
		done()
	}
}

// option reads an option of a connection's TCP.
func option(t *testing.T, c net.Conn, number int) (value int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		value, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, number)
	}))
	require.NoError(t, failed)
	return value
}
