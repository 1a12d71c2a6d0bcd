//go:build linux

package mysql_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/mysql"
	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/servertest"
)

func TestMain(m *testing.M) {
	killtest.Serve(applying)
	os.Exit(m.Run())
}

// One server for all, since it takes seconds to make one.
func TestMySQL(t *testing.T) {
	s := start(t)
	for name, test := range map[string]func(*testing.T, server){
		"store": testStore, "lost transactions": testLostTransactions, "ended transactions": testEndedTransactions,
		"migrations": testMigrations, "reapply by hand": testReapplyByHand, "rows that are read": testRowsRead,
		"receiver": testReceiver, "kills": testKills, "page for other languages": testPage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// server is a DSN up to the name of the database.
type server string

func start(t *testing.T) server {
	if dsn := os.Getenv("SUREHOOK_TEST_MYSQL"); dsn != "" {
		return server(dsn)
	}
	s := servertest.New(t, "mariadbd")
	data, socket := filepath.Join(s.Folder, "data"), filepath.Join(s.Folder, "socket")
	small := []string{"--datadir=" + data, "--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M"}
	s.Run("mariadb-install-db", append([]string{"--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"}, small...)...)
	// Clients are killed and the server is not, so it need not wait for its disk.
	s.Start(append([]string{"--no-defaults", "--socket=" + socket, "--pid-file=" + filepath.Join(s.Folder, "pid"),
		"--skip-networking", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--max-connections=400"}, small...)...)
	at := server("root@unix(" + socket + ")/")
	db := at.open(t, "")
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, time.Minute, 10*time.Millisecond, "%s", s.Log())
	return at
}

// dsn is of a database, with the driver's settings or the server's, for the session.
func (s server) dsn(database string, settings ...string) string {
	return string(s) + database + "?" + strings.Join(settings, "&")
}

func (s server) open(t testing.TB, database string, settings ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.dsn(database, settings...))
	require.NoError(t, err)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// database makes an empty database for as long as the test lasts.
func (s server) database(t *testing.T) (name string) {
	t.Helper()
	name = "test_" + strings.ToLower(rand.Text())
	db := s.open(t, "")
	_, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), "DROP DATABASE "+name)
		require.NoError(t, err)
	})
	return name
}

// migrated is a database with the tables.
func (s server) migrated(t *testing.T, settings ...string) (name string, db *sql.DB) {
	t.Helper()
	name = s.database(t)
	db = s.open(t, name, settings...)
	require.NoError(t, mysql.Migrate(t.Context(), db))
	return name, db
}

// mariaDB reports whether the server is one: some settings are only there.
func mariaDB(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version))
	return strings.Contains(version, "MariaDB")
}
