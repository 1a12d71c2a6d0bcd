//go:build linux

package mysql_test

import (
	"database/sql"
	"strconv"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/mysql"
)

var repeatableRead = &sql.TxOptions{Isolation: sql.LevelRepeatableRead}

func testStore(t *testing.T, s server) {
	for name, c := range map[string]struct {
		opts     *sql.TxOptions
		settings []string
		maria    bool // only there
	}{
		"read committed":     {},
		"repeatable read":    {opts: repeatableRead},
		"serializable":       {opts: &sql.TxOptions{Isolation: sql.LevelSerializable}},
		"snapshot isolation": {opts: repeatableRead, settings: []string{"innodb_snapshot_isolation=1"}, maria: true},
		// Every wait is an error at once.
		"without waiting": {settings: []string{"innodb_lock_wait_timeout=0"}, maria: true},
		// Settings that could spoil a value or an answer.
		"odd settings": {settings: []string{
			"interpolateParams=true", "clientFoundRows=true", "sql_mode=''", "charset=latin1", "parseTime=true",
			"time_zone='-11:00'", "autocommit=0", "sql_safe_updates=1",
		}},
		"odd settings, prepared": {settings: []string{
			"clientFoundRows=true", "sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH'", "collation=utf8mb4_general_ci", "time_zone='%2B12:00'",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := s.database(t)
			if c.maria && !mariaDB(t, s.open(t, database)) {
				t.Skip("NOT TESTED: only MariaDB has this setting")
			}
			require.NoError(t, mysql.Migrate(t.Context(), s.open(t, database, c.settings...)))
			var harness func(t *testing.T) deduptest.Harness[*sql.Tx]
			harness = func(t *testing.T) deduptest.Harness[*sql.Tx] {
				return deduptest.Harness[*sql.Tx]{Store: mysql.New(), InTx: mysql.InTx(s.open(t, database, c.settings...), c.opts), Reopen: harness}
			}
			deduptest.Run(t, harness)
		})
	}
}

// begin returns a transaction that does not outlive the test.
func begin(t *testing.T, db *sql.DB, opts *sql.TxOptions) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func second[T any](_ T, err error) error { return err }

// An error that asks for another run still contains the driver's. After a wait that was too
// long, the transaction is open: its owner must roll it back.
func testLostTransactions(t *testing.T, s server) {
	ctx, store := t.Context(), mysql.New()
	_, db := s.migrated(t, "innodb_lock_wait_timeout=1")
	first, late := begin(t, db, nil), begin(t, db, nil)
	require.NoError(t, second(store.Mark(ctx, late, "test", "b", time.Now())))
	require.NoError(t, second(store.Mark(ctx, first, "test", "a", time.Now())))
	err := second(store.Mark(ctx, late, "test", "a", time.Now()))
	require.ErrorIs(t, err, dedup.ErrRetryTx)
	var cause *driver.MySQLError
	require.ErrorAs(t, err, &cause)
	require.EqualValues(t, 1205, cause.Number)
	require.NoError(t, late.Rollback())
	require.NoError(t, first.Rollback())

	for i, call := range []func(*sql.Tx, dedup.Object) error{
		func(tx *sql.Tx, obj dedup.Object) error { return second(store.Advance(ctx, tx, "test", obj, 5)) },
		func(tx *sql.Tx, obj dedup.Object) error { return second(store.AdvanceAgain(ctx, tx, "test", obj, 5)) },
	} {
		obj := dedup.Object{Type: "subscriber", ID: strconv.Itoa(i)}
		old := begin(t, db, repeatableRead)
		require.NoError(t, second(store.Version(ctx, old, "test", obj))) // its snapshot
		require.NoError(t, mysql.InTx(db, nil)(ctx, func(tx *sql.Tx) error { return second(store.Advance(ctx, tx, "test", obj, 9)) }))
		require.ErrorIs(t, call(old, obj), dedup.ErrRetryTx)
		require.NoError(t, old.Rollback())
	}
}

// A transaction that has ended before its commit is not taken for one that was committed,
// although the server commits without a word.
func testEndedTransactions(t *testing.T, s server) {
	ctx, store := t.Context(), mysql.New()
	_, db := s.migrated(t)
	inTx := mysql.InTx(db, nil)
	for name, statements := range map[string][]string{
		"rolled-back": {"ROLLBACK"}, "committed": {"COMMIT"}, "begun-again": {"COMMIT", "BEGIN"}, "changed": {"CREATE TABLE changed (id INT)"},
	} {
		err := inTx(ctx, func(tx *sql.Tx) error {
			for _, statement := range statements {
				_, err := tx.ExecContext(ctx, statement)
				require.NoError(t, err)
			}
			return second(store.Mark(ctx, tx, "test", name, time.Now()))
		})
		require.ErrorIs(t, err, sql.ErrTxDone, name)
	}
	// A function that goes on after a deadlock. The transaction with fewer rows is given up.
	other := begin(t, db, nil)
	for _, id := range []string{"x", "1", "2", "3", "4", "5"} {
		require.NoError(t, second(store.Mark(ctx, other, "test", id, time.Now())))
	}
	var g errgroup.Group
	err := inTx(ctx, func(tx *sql.Tx) error {
		require.NoError(t, second(store.Mark(ctx, tx, "test", "y", time.Now())))
		g.Go(func() error { return second(store.Mark(ctx, other, "test", "y", time.Now())) })
		require.ErrorIs(t, second(store.Mark(ctx, tx, "test", "x", time.Now())), dedup.ErrRetryTx)
		return nil
	})
	require.ErrorIs(t, err, sql.ErrTxDone)
	require.NoError(t, g.Wait())
	require.NoError(t, inTx(ctx, func(*sql.Tx) error { return nil }), "the pool's connections are good")
}

func testMigrations(t *testing.T, s server) {
	ctx, database := t.Context(), s.database(t)
	db := s.open(t, database)
	err := mysql.InTx(db, nil)(ctx, func(tx *sql.Tx) error { return second(mysql.New().Mark(ctx, tx, "test", "a", time.Now())) })
	require.ErrorContains(t, err, "dedup: marking an event: ")
	require.ErrorContains(t, err, "surehook_dedup_markers")
	require.ErrorContains(t, err, "call Migrate before")
	var g errgroup.Group
	for range 6 {
		g.Go(func() error { return mysql.Migrate(ctx, s.open(t, database)) })
	}
	require.NoError(t, g.Wait(), "all at once")
	_, err = db.ExecContext(ctx, "DROP TABLE surehook_migrations, surehook_dedup_reapplies")
	require.NoError(t, err)
	require.NoError(t, mysql.Migrate(ctx, db), "after one that failed in the middle")
	var tables, engines string
	require.NoError(t, db.QueryRowContext(ctx, `SELECT GROUP_CONCAT(table_name ORDER BY table_name), GROUP_CONCAT(DISTINCT engine)
		FROM information_schema.tables WHERE table_schema = DATABASE()`).Scan(&tables, &engines))
	require.Equal(t, "surehook_dedup_dead_letters,surehook_dedup_markers,surehook_dedup_reapplies,surehook_dedup_versions,surehook_migrations", tables)
	require.Equal(t, "InnoDB", engines)
	_, err = db.ExecContext(ctx, "INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('dedup', 2, 1), ('dedup', 3, 2)")
	require.NoError(t, err)
	require.EqualError(t, mysql.Migrate(ctx, db), "migrate: dedup: the database is at version 3, for releases that know version 2, and this one knows 1: run a newer release")
}

// An operator asks with one statement, as the package's comment says. A row that would
// cover everything, or nothing, by a mistake is refused.
func testReapplyByHand(t *testing.T, s server) {
	ctx, store, obj := t.Context(), mysql.New(), dedup.Object{Type: "invoice", ID: "17"}
	_, db := s.migrated(t, "time_zone='-11:00'")
	inTx := mysql.InTx(db, nil)
	require.NoError(t, inTx(ctx, func(tx *sql.Tx) error { return second(store.Mark(ctx, tx, "billing", "evt_1", time.Now())) }))
	due := func() (due bool) {
		require.NoError(t, inTx(ctx, func(tx *sql.Tx) (err error) {
			due, err = store.TakeReapply(ctx, tx, "billing", "evt_1", obj)
			return err
		}))
		return due
	}
	for _, values := range []string{
		"(scope, event_id) VALUES ('billing', 'evt_1')",
		"(scope, object_type, object_id) VALUES ('billing', 'invoice', '17')",
		"(scope, marked_from, marked_until) VALUES ('billing', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', '2024-03-01 12:00'), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', '2999-03-02 12:00'))",
	} {
		_, err := db.ExecContext(ctx, "INSERT INTO surehook_dedup_reapplies "+values)
		require.NoError(t, err, values)
		require.True(t, due(), values)
		require.False(t, due(), values)
	}
	for values, constraint := range map[string]string{
		"(scope) VALUES ('billing')":                                                          "names_something",
		"(scope, marked_until) VALUES ('billing', 1700000000000000)":                          "names_something",
		"(scope, event_id, object_id) VALUES ('billing', 'a', '17')":                          "whole_object",
		"(scope, marked_from) VALUES ('billing', 1700000000)":                                 "microseconds",
		"(scope, marked_from, marked_until) VALUES ('b', 1700000000000002, 1700000000000001)": "span",
	} {
		_, err := db.ExecContext(ctx, "INSERT INTO surehook_dedup_reapplies "+values)
		require.ErrorContains(t, err, constraint, values)
	}
	require.NoError(t, inTx(ctx, func(tx *sql.Tx) error {
		list, err := store.ListReapplies(ctx, tx, "billing", 0, 10)
		require.Len(t, list, 3)
		require.WithinDuration(t, time.Now(), list[0].At, time.Minute)
		return err
	}))
}

// The cost of a duplicate and of pruning must not grow with the markers and requests that are
// there.
func testRowsRead(t *testing.T, s server) {
	ctx, store := t.Context(), mysql.New()
	_, db := s.migrated(t)
	_, err := db.ExecContext(ctx, `INSERT INTO surehook_dedup_markers (scope, id, marked_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT 's', CONCAT('event-', i), 1000000 * i FROM n`)
	require.NoError(t, err)
	_, err = db.ExecContext(ctx, `INSERT INTO surehook_dedup_reapplies (scope, event_id) SELECT 's', CONCAT('other-', id) FROM surehook_dedup_markers`)
	require.NoError(t, err)
	tx := begin(t, db, nil)
	read := func() (rows int) {
		require.NoError(t, tx.QueryRowContext(ctx, `SELECT CAST(SUM(variable_value) AS SIGNED) FROM `+statusTable(t, db)+` WHERE variable_name LIKE 'Handler_read%'`).Scan(&rows))
		return rows
	}
	before := read()
	own := read() - before // what the question costs
	for what, call := range map[string]func() error{
		"Mark":        func() error { return second(store.Mark(ctx, tx, "s", "event-400", time.Now())) },
		"TakeReapply": func() error { return second(store.TakeReapply(ctx, tx, "s", "event-400", dedup.Object{})) },
		"Prune":       func() error { return second(store.Prune(ctx, tx, time.UnixMicro(1_000_000*500), 20)) },
	} {
		before := read()
		require.NoError(t, call(), what)
		require.Less(t, read()-before-own, 100, what)
	}
}

func statusTable(t *testing.T, db *sql.DB) string {
	if mariaDB(t, db) {
		return "information_schema.session_status"
	}
	return "performance_schema.session_status"
}
