package pgtest_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
)

const role = "SUREHOOK_TEST_PGTEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	s, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.DSN())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func setting(t *testing.T, db *sql.DB, name string) (value string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&value))
	return value
}

func TestDSNIsOneServer(t *testing.T) {
	require.Equal(t, pgtest.DSN(t), pgtest.DSN(t))
	db := open(t, pgtest.DSN(t))
	var name string
	t.Run("with a schema", func(t *testing.T) {
		name = pgtest.Schema(t, db)
		_, err := db.ExecContext(t.Context(), "CREATE TABLE "+name+".x (a int)")
		require.NoError(t, err)
		require.NotEqual(t, name, pgtest.Schema(t, db))
	})
	var there bool
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT to_regnamespace($1) IS NOT NULL", name).Scan(&there))
	require.False(t, there, "dropped with the test")
}

// If the environment names a server, it is used, and none is started.
func TestDSNFromTheEnvironment(t *testing.T) {
	t.Setenv("SUREHOOK_TEST_POSTGRES", "postgres://elsewhere")
	require.Equal(t, "postgres://elsewhere", pgtest.DSN(t))
}

func TestWith(t *testing.T) {
	require.Equal(t, "postgres://u@h/d?a=x%20%26%2B&b=%2Ftmp&c=3",
		pgtest.With("postgres://u@h/d?c=2&b=%2Ftmp", "a", "x &+", "c", "3"))
	require.Equal(t, "postgres://u@h/d?a=1", pgtest.With("postgres://u@h/d", "a", "1"))
	db := open(t, pgtest.With(pgtest.DSN(t), "application_name", "two words"))
	require.Equal(t, "two words", setting(t, db, "application_name"))
}

func start(t *testing.T, o pgtest.Options) (*pgtest.Server, *sql.DB) {
	t.Helper()
	pgtest.DSN(t) // skips without an installed server
	s, err := pgtest.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	return s, open(t, s.DSN())
}

func overTCP(t *testing.T, s *pgtest.Server) *sql.DB {
	t.Helper()
	return open(t, "postgres://postgres@"+s.Address()+"/postgres?sslmode=disable")
}

func TestStart(t *testing.T) {
	t.Parallel()
	t.Run("durable", func(t *testing.T) {
		s, db := start(t, pgtest.Options{Durable: true, SharedBuffers: "64MB", TCP: true, Settings: map[string]string{"application_name": "it's"}})
		require.Equal(t, "on", setting(t, db, "fsync"))
		require.Equal(t, "on", setting(t, db, "synchronous_commit"))
		require.Equal(t, "on", setting(t, db, "full_page_writes"))
		require.Equal(t, "64MB", setting(t, db, "shared_buffers"))
		require.Equal(t, "it's", setting(t, db, "application_name"))
		require.Equal(t, setting(t, db, "data_directory"), setting(t, overTCP(t, s), "data_directory"))

		folder := filepath.Dir(setting(t, db, "data_directory"))
		require.DirExists(t, folder)
		require.NoError(t, s.Stop())
		require.NoDirExists(t, folder)
		require.Error(t, db.PingContext(t.Context()))
	})
	t.Run("not durable", func(t *testing.T) {
		s, db := start(t, pgtest.Options{})
		require.Equal(t, "off", setting(t, db, "fsync"))
		require.Empty(t, setting(t, db, "listen_addresses"), "a port only for who asks for one")
		require.Empty(t, s.Address())
	})
	t.Run("in vain", func(t *testing.T) {
		folder := t.TempDir()
		require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755)) // a folder that other users can enter
		_, err := pgtest.Start(pgtest.Options{Folder: folder, Settings: map[string]string{"max_connections": "none"}})
		require.ErrorContains(t, err, "pgtest: starting a server with ")
		require.ErrorContains(t, err, "max_connections", "the server's own words")
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// A server that is killed keeps what was committed and its port, and can be started
// again.
func TestKill(t *testing.T) {
	t.Parallel()
	s, db := start(t, pgtest.Options{Durable: true, TCP: true})
	_, err := db.ExecContext(t.Context(), "CREATE TABLE x (a int)")
	require.NoError(t, err)
	for range 2 {
		_, err = db.ExecContext(t.Context(), "INSERT INTO x VALUES (1)")
		require.NoError(t, err)
		require.NoError(t, s.Kill())
		require.Error(t, open(t, s.DSN()).PingContext(t.Context()))
		require.ErrorIs(t, overTCP(t, s).PingContext(t.Context()), syscall.ECONNREFUSED, "nobody else is there")
		require.NoError(t, s.Restart())
		require.NoError(t, open(t, s.DSN()).PingContext(t.Context()))
		require.NoError(t, overTCP(t, s).PingContext(t.Context()))
	}
	var n int
	require.NoError(t, open(t, s.DSN()).QueryRowContext(t.Context(), "SELECT count(*) FROM x").Scan(&n))
	require.Equal(t, 2, n)
}

// The server of a killed process ends by itself, and leaves nothing.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), role+"=1")
	_, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	dsn, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	db := open(t, strings.TrimSpace(dsn))
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	folder := filepath.Dir(setting(t, db, "data_directory"))
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	// It waits for ever, so only the end of the server ends it.
	_, err = conn.ExecContext(t.Context(), "SELECT pg_sleep(86400)")
	require.Error(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(folder)
		return os.IsNotExist(err)
	}, time.Minute, 10*time.Millisecond)
}
