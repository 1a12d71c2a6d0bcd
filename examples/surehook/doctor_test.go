package main_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type examined struct {
	OK     bool
	Checks []struct{ Check, Status, Detail, Do string }
}

// doctor returns what the doctor says, and ends the test unless the exit code agrees.
func (u *user) doctor(args ...string) (e examined) {
	u.t.Helper()
	a := u.run(append([]string{"doctor", "-json"}, args...)...)
	require.NoError(u.t, json.Unmarshal([]byte(a.out), &e), a.errs)
	require.Equal(u.t, e.OK, a.code == 0, "%s%s", a.out, a.errs)
	return e
}

// of are the statuses of a check's lines.
func (e examined) of(check string) string {
	var all []string
	for _, c := range e.Checks {
		if c.Check == check {
			all = append(all, c.Status)
		}
	}
	return strings.Join(all, " ")
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		u.write("key", sealingKey+"\n")
		u.write("wrong", "b3RoZXI2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjA=")
		u.write("named", "2026-11="+sealingKey)
		at := []string{"-database", p.flag}
		e := u.doctor(append(at, "-secret-key-file", "key")...)
		require.True(t, e.OK)
		require.Equal(t, "ok ok", e.of("tables"), "%v", e)
		for _, check := range []string{"durability", "clock", "disk space", "dispatcher", "sealing key", "work", "retention"} {
			require.Equal(t, "ok", e.of(check), "%s: %v", check, e)
		}
		for _, check := range []string{"server", "connections"} {
			require.Equal(t, map[bool]string{true: "ok"}[p.driver == "pgx"], e.of(check), "%s: %v", check, e)
		}
		require.Equal(t, "warn", u.doctor(at...).of("sealing key"))
		e = u.doctor(append(at, "-secret-key-file", "wrong")...)
		require.Equal(t, "fail", e.of("sealing key"), "%v", e)
		e = u.doctor(append(at, "-secret-key-file", "named")...)
		require.Equal(t, "fail", e.of("sealing key"), "the service names it by a fingerprint")
		require.Contains(t, u.run(append([]string{"doctor", "-secret-key-file", "named"}, at...)...).out, "in a line ID=KEY with the ID of its sender.SealingKey")
		e = u.doctor(append(at, "-reach", "720h")...)
		require.Equal(t, "fail", e.of("retention"), "%v", e)

		if p.driver == "sqlite" { // it need not wait for who writes
			conn, err := p.open(t).Conn(t.Context())
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
			require.NoError(t, err)
			e = u.doctor(append(at, "-secret-key-file", "key")...)
			require.True(t, e.OK, "%v", e)
			_, err = conn.ExecContext(t.Context(), "ROLLBACK")
			require.NoError(t, err)
			require.NoError(t, conn.Close())
		}

		for _, twins := range []string{"", "warn"} {
			u.subscribe("https://hooks.example.com/", "a.*")
			require.Equal(t, twins, u.doctor(at...).of("twins"))
		}

		out := u.run(append([]string{"doctor", "-reach", "720h"}, at...)...).out
		require.Regexp(t, `(?m)^FAIL  retention    Retention\.Receivers`, out)
		require.Contains(t, out, "\n                   → change the sender's Retention")
		require.Contains(t, out, "1 to mend")

		e = u.doctor()
		require.Equal(t, []string{"ok", "ok", "ok"}, []string{e.of("server"), e.of("token"), e.of("clock")})
		u.env[1] = "SUREHOOK_TOKEN=another-token"
		require.Equal(t, "fail", u.doctor().of("token"))
	})
}

func TestDoctorOfAFile(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.does("migrate", "up", "-sets", "sender", "-database", "a.db")
	file := filepath.Join(u.dir, "a.db")
	e := u.doctor("-database", "a.db")
	require.True(t, e.OK, "%v", e)
	require.Equal(t, "ok", e.of("file mode"), "up has made it for its owner alone")
	require.NoError(t, os.Chmod(file, 0o644))
	require.Equal(t, "warn", u.doctor("-database", "a.db").of("file mode"))

	u.write("a.db-wal", "")
	require.NoError(t, os.Truncate(file+"-wal", 256<<20))
	require.Equal(t, "warn", u.doctor("-database", "a.db").of("log"), "nobody begins it anew")

	db, err := sql.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	_, err = db.Exec("PRAGMA journal_mode = delete")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	e = u.doctor("-database", "a.db")
	require.Equal(t, "fail", e.of("durability"))
	require.Equal(t, "fail", e.of("dispatcher"))
	for _, c := range e.Checks {
		if c.Check == "durability" {
			require.Contains(t, c.Do, "_pragma=journal_mode(wal)&_pragma=synchronous(full)")
			require.Contains(t, c.Do, "_journal_mode=WAL&_synchronous=FULL", "as mattn/go-sqlite3 has it, which passes over the former")
		}
	}

	u.write("empty.db", "")
	e = u.doctor("-database", "empty.db")
	require.Equal(t, "fail", e.of("tables"))
	u.does("migrate", "up", "-sets", "dedup", "-database", "receiver.db")
	e = u.doctor("-database", "receiver.db")
	require.True(t, e.OK, "a receiver's database has no sender: %v", e)
	require.Empty(t, e.of("dispatcher"))
	require.Empty(t, e.of("set aside"))

	db, err = sql.Open("sqlite", "file:"+filepath.Join(u.dir, "receiver.db"))
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO surehook_dedup_dead_letters VALUES ('billing', 'evt_1', 'a.b', '', '', 0, x'', 'it can never be applied', 0)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.Equal(t, "warn", u.doctor("-database", "receiver.db").of("set aside"), "its sender takes it for delivered")
}
