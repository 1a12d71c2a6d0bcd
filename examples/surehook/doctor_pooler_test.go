//go:build linux

package main_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/servertest"
)

const bouncing = `[databases]
postgres = host={{.Host}} port={{.Port}} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {{.Listen}}
unix_socket_dir =
auth_type = any
pool_mode = {{.Mode}}
`

// The doctor finds a pooler, and tells its modes apart.
func TestDoctorFindsAPooler(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // skips without an installed server
	servers := map[string]*servertest.Server{"transaction": servertest.New(t, "pgbouncer"), "session": servertest.New(t, "pgbouncer")}
	server, err := pgtest.Start(pgtest.Options{TCP: true}) // not durable
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	u := newUser(t)
	u.does("migrate", "up", "-sets", "sender", "-database", server.DSN())
	e := u.doctor("-database", server.DSN())
	require.Equal(t, "ok", e.of("pooler"))
	require.Equal(t, "fail", e.of("durability"), "fsync is off")

	host, port, err := net.SplitHostPort(server.Address())
	require.NoError(t, err)
	for mode, says := range map[string]string{"transaction": "gives one to each transaction", "session": "go through a pooler"} {
		s := servers[mode]
		listen := s.Port()
		s.Start(s.Write("ini", bouncing, map[string]any{"Host": host, "Port": port, "Listen": listen, "Mode": mode}))
		through := "postgres://postgres@127.0.0.1:" + strconv.Itoa(listen) + "/postgres?sslmode=disable"
		e := u.doctor("-database", through)
		require.Equal(t, "warn", e.of("pooler"), "%s: %v", mode, e)
		for _, c := range e.Checks {
			if c.Check == "pooler" {
				require.Contains(t, c.Detail, says, mode)
			}
		}
		require.Equal(t, "there are none\n", u.does("deliveries", "-database", through))
	}
}
