package main_test

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/pgtest"
)

type states struct {
	Sets []struct {
		Set, State string
		Version    int
		Missing    []string
	}
}

func (s states) of(set string) string {
	for _, one := range s.Sets {
		if one.Set == set {
			return one.State
		}
	}
	return "?"
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := newUser(t, "SUREHOOK_DATABASE="+p.flag)
		a := u.run("migrate", "up")
		require.Equal(t, 2, a.code, a.errs)
		require.Contains(t, u.does("migrate", "up", "-sets", "sender,dedup,jobs"), "dedup: applied 001_dedup.sql, 002_reapplies.sql, at version 2 now\n")
		require.Contains(t, u.does("migrate", "up"), "sender: up to date, at version 1\ndedup: up to date")
		var s states
		u.reads(&s, "migrate", "status")
		require.Equal(t, []string{"current", "current", "current", "absent", "absent"}, []string{s.of("sender"), s.of("dedup"), s.of("jobs"), s.of("inbox"), s.of("catchup")})
		require.Equal(t, 1, u.run("migrate", "status", "-sets", "sender, inbox").code, "it is asked for, and not there")

		// One that a newer release has migrated.
		_, err := p.open(t).Exec("INSERT INTO surehook_migrations (set_name, version, needs) VALUES ('dedup', 9, 1)")
		require.NoError(t, err)
		require.Contains(t, u.does("migrate", "status"), "newer")
		_, err = p.open(t).Exec("UPDATE surehook_migrations SET needs = 9 WHERE version = 9")
		require.NoError(t, err)
		require.Equal(t, 1, u.run("migrate", "status").code)
		a = u.run("migrate", "up")
		require.Equal(t, 1, a.code)
		require.Contains(t, a.errs, "run a newer release")
	})
}

// The printed files, run by another tool, are what up would have made, and print knows what
// is missing.
func TestMigratePrint(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := newUser(t)
		dialect := map[string]string{"sqlite": "sqlite", "pgx": "postgres"}[p.driver]
		text := u.does("migrate", "print", "-sets", "sender,dedup", "-dialect", dialect)
		require.Equal(t, 3, strings.Count(text, "\nBEGIN;\n"))
		_, err := p.open(t).Exec(text)
		require.NoError(t, err)
		var s states
		u.reads(&s, "migrate", "status", "-database", p.flag, "-sets", "sender,dedup")
		require.Equal(t, "current", s.of("sender"))
		require.Equal(t, "current", s.of("dedup"))
		a := u.run("migrate", "print", "-sets", "sender,dedup", "-database", p.flag)
		require.Zero(t, a.code)
		require.Empty(t, a.out)
		require.Contains(t, a.errs, "there is nothing to print")
		require.NotContains(t, u.does("migrate", "print", "-sets", "sender,jobs", "-database", p.flag), "001_start")

		// The environment's database is the flag's equal, unless the dialect is given.
		u.env = []string{"SUREHOOK_DATABASE=" + p.flag}
		require.Empty(t, u.does("migrate", "print", "-sets", "sender,dedup"))
		require.Contains(t, u.does("migrate", "print", "-sets", "sender,dedup", "-dialect", dialect), "001_surehook_sender_start")
	})
}

func TestMigrateBehind(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	text, err := fs.ReadFile(dedup.Migrations(), "001_dedup.sql")
	require.NoError(t, err)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(u.dir, "a.db"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(string(text))
	require.NoError(t, err)

	a := u.run("migrate", "status", "-database", "a.db")
	require.Equal(t, 1, a.code)
	require.Regexp(t, `dedup +behind +1 of 2 .*002_reapplies.sql`, a.out)
	require.Equal(t, 1, u.run("doctor", "-database", "a.db").code)
	printed := u.does("migrate", "print", "-database", "a.db", "-sets", "dedup")
	require.Contains(t, printed, "reapplies.sql")
	require.NotContains(t, printed, "001_surehook_dedup_dedup.sql")
	require.Equal(t, "dedup: applied 002_reapplies.sql, at version 2 now\n", u.does("migrate", "up", "-database", "a.db"))
}

func TestMigrateFilesForTools(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for manager, want := range map[string]struct{ name, begins string }{
		"plain":          {"007_surehook_dedup_dedup.sql", "-- "},
		"goose":          {"00007_surehook_dedup_dedup.sql", "-- +goose Up\n-- +goose StatementBegin\n"},
		"dbmate":         {"007_surehook_dedup_dedup.sql", "-- migrate:up\n"},
		"golang-migrate": {"000007_surehook_dedup_dedup.up.sql", "-- "},
		"flyway":         {"V7__surehook_dedup_dedup.sql", "-- "},
	} {
		args := []string{"migrate", "print", "-sets", "dedup", "-dialect", "postgres", "-for", manager, "-dir", manager, "-first", "7"}
		require.Equal(t, 2, strings.Count(u.does(args...), "wrote "), manager)
		text, err := os.ReadFile(filepath.Join(u.dir, manager, want.name))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), want.begins), manager)
		a := u.run(args...)
		require.Equal(t, 2, a.code)
		require.Contains(t, a.errs, "is there already: nothing was written")
	}
	for _, test := range []struct {
		says string
		args []string
	}{
		{"which tables?", []string{"print"}},
		{"for which database?", []string{"print", "-sets", "sender"}},
		{"the tools are dbmate, flyway", []string{"print", "-sets", "sender", "-for", "liquibase"}},
		{"the sets are sender", []string{"up", "-sets", "all", "-database", "x.db"}},
		{"-first is 0", []string{"print", "-sets", "sender", "-first", "0"}},
		{"it must be up, status or print", []string{"down"}},
		{"which database?", []string{"status"}},
	} {
		a := u.run(append([]string{"migrate"}, test.args...)...)
		require.Equal(t, 2, a.code, "%v: %s", test.args, a.errs)
		require.Contains(t, a.errs, test.says)
	}
	_, err := os.Stat(filepath.Join(u.dir, "x.db"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Tables in a schema of their own, as docs/operating.md has them.
func TestSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	schema := pgtest.Schema(t, db)
	u := newUser(t)
	u.write("database", dsn+"\n")
	at := []string{"-database-file", "database", "-schema", schema}
	u.does(append([]string{"migrate", "up", "-sets", "sender,dedup,jobs,inbox,catchup"}, at...)...)
	u.does(append([]string{"migrate", "status", "-sets", "sender,dedup,jobs,inbox,catchup"}, at...)...)
	u.does(append([]string{"trigger", "invoice.paid"}, at...)...)
	var n int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM "`+schema+`".surehook_events`).Scan(&n))
	require.Equal(t, 1, n)
	require.Equal(t, "there are none\n", u.does(append([]string{"deliveries"}, at...)...))
}

// Printed files make the tables in the schema, and leave the search_path to the tool, which
// notes in the same transaction, in a table of its own, that it has applied them.
func TestPrintForSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	tools, err := sql.Open("pgx", pgtest.With(dsn, "search_path", pgtest.Schema(t, db)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = tools.Close() })
	_, err = tools.Exec("CREATE TABLE applied (file text)")
	require.NoError(t, err)
	u := newUser(t)
	for _, manager := range []string{"plain", "goose", "golang-migrate"} {
		schema := pgtest.Schema(t, db)
		text := u.does("migrate", "print", "-sets", "sender,dedup,jobs,inbox,catchup", "-dialect", "postgres", "-schema", schema, "-for", manager)
		if manager == "goose" {
			text = "BEGIN;\n" + text + "INSERT INTO applied VALUES ('all');\nCOMMIT;\n"
		}
		_, err = tools.Exec(text)
		require.NoError(t, err, manager)
		u.does("migrate", "status", "-sets", "sender,dedup,jobs,inbox,catchup", "-database", dsn, "-schema", schema)
	}
	var strays int
	require.NoError(t, tools.QueryRow("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'applied'").Scan(&strays))
	require.Zero(t, strays)
}
