package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/surehook/surehook/internal/newid"
)

// DSN returns the connection string of the server to test against, which all tests of the
// process share. It is the environment variable SUREHOOK_TEST_POSTGRES if that is set (a
// URL, see [With]). Otherwise a server is started from installed binaries at the first
// call. That server ends with the process, also if the process is killed, and its data is
// lost. Tests may rely on it if clients die, but not if the server does. So its data is in
// memory where there is room ([InMemory]): it syncs as any server does, and nobody waits
// for a disk.
//
// Without binaries the test is skipped, or fails if SUREHOOK_REQUIRE, a list with
// commas, names postgres.
func DSN(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv("SUREHOOK_TEST_POSTGRES"); dsn != "" {
		return dsn
	}
	if err := Missing(); err != nil {
		t.Skipf("NOT TESTED on PostgreSQL: %v", err)
	}
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return server.DSN()
}

// Missing returns why [DSN] skips tests, or nil if it does not. It starts nothing.
// It is for a TestMain whose package has examples, which cannot be skipped one by
// one.
func Missing() error {
	if os.Getenv("SUREHOOK_TEST_POSTGRES") != "" || slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "postgres") {
		return nil
	}
	if _, err := binaries(); errors.Is(err, errNoBinaries) {
		return err
	}
	return nil
}

// With returns the connection string, a URL, with settings: names and values by turns,
// of the driver (host, connect_timeout) or of the server, for the session (search_path,
// default_transaction_isolation, application_name). They replace those in the
// connection string.
func With(dsn string, settings ...string) string {
	base, query, _ := strings.Cut(dsn, "?")
	values, err := url.ParseQuery(query)
	if err != nil { // the driver reports that, too
		return dsn
	}
	for pair := range slices.Chunk(settings, 2) {
		values.Set(pair[0], pair[1])
	}
	// Some parsers do not read a plus as a space.
	return base + "?" + strings.ReplaceAll(values.Encode(), "+", "%20")
}

var shared = sync.OnceValues(func() (*Server, error) {
	// With its defaults a server keeps a gigabyte of its log, and the memory is everybody's.
	return Start(Options{Durable: true, Folder: InMemory(), Settings: map[string]string{
		"min_wal_size": "32MB", "max_wal_size": "128MB", "deadlock_timeout": soonDeadlock,
	}})
})

// InMemory is a folder whose files are in memory, or "" if there is none with two gigabytes
// of room.
func InMemory() string {
	const folder = "/dev/shm"
	if room(folder) < 2<<30 {
		return ""
	}
	probe, err := os.MkdirTemp(folder, "surehook-")
	if err != nil || os.Remove(probe) != nil {
		return ""
	}
	return folder
}

// TempInMemory has t.TempDir make its folders in memory, if there is room ([InMemory]). TestMain
// calls it where tests commit much to files of SQLite, and do not test the disk.
func TempInMemory() {
	if folder := InMemory(); folder != "" {
		if err := os.Setenv("TMPDIR", folder); err != nil {
			panic(err)
		}
	}
}

// Old is a number that a database has come to after years. It does not fit into an integer of
// 32 bits.
const Old int64 = 3_000_000_000

// Age has all sequences of a schema go on behind Old.
func Age(t testing.TB, db *sql.DB, schema string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = '%[1]s' LOOP
			EXECUTE format('ALTER SEQUENCE %%I.%%I RESTART WITH %[2]d', '%[1]s', name);
		END LOOP;
	END $$`, schema, Old+1)); err != nil {
		t.Fatalf("pgtest: setting the sequences of a schema: %v", err)
	}
}

// Schema makes an empty schema and returns its name, which no other test has. It is
// dropped with its contents when the test ends, so all transactions in it must have
// ended by then. Close db in a clean-up that was registered before.
func Schema(t testing.TB, db *sql.DB) string {
	t.Helper()
	name := newid.New("test_", time.Now())
	if _, err := db.ExecContext(t.Context(), `CREATE SCHEMA "`+name+`"`); err != nil {
		t.Fatalf("pgtest: making a schema: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := db.ExecContext(ctx, `DROP SCHEMA IF EXISTS "`+name+`" CASCADE`); err != nil {
			t.Errorf("pgtest: dropping the schema of the test, did it leave a transaction open? %v", err)
		}
	})
	return name
}
