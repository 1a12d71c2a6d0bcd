package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const keyOfTests = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // of tests alone

// environment looks up what is set as NAME=value.
func environment(set []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, one := range set {
			if value, ok := strings.CutPrefix(one, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

// Flags that cannot be are refused before anything is made, all at once, without their
// secrets.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args, env, says []string
	}{
		{args: []string{"-timeout", "11s"}, says: []string{"-timeout", "10s"}},
		{args: []string{"-timeout", "0s"}, says: []string{"-timeout"}},
		{args: []string{"-schedule", "1m,soon"}, says: []string{"-schedule", "soon"}},
		{args: []string{"-schedule", "-1m", "-jitter", "2", "-horizon", "0s"}, says: []string{"-schedule", "-jitter", "-horizon"}},
		{args: []string{"-horizon", "373h"}, says: []string{"-horizon is 373h0m0s", "at most 372h0m0s, since receivers remember events for 768h0m0s"}},
		{args: []string{"-disable-after", "-1h"}, says: []string{"-disable-after"}},
		{args: []string{"-own-policies", "-horizon", "59s"}, says: []string{"-own-policies", "at least 1m"}},
		{args: []string{"-own-policies", "-disable-after", "59m"}, says: []string{"-own-policies", "at least 1h"}},
		{args: []string{"-operator-token", "eleven-char", "-addr", ":0"}, says: []string{"-operator-token", "11", "at least 12"}},
		{args: []string{"-operator-token", "eleven-char", "-addr", "192.0.2.1:0"}, says: []string{"-operator-token", "11", "at least 12"}},
		{args: []string{"-operator-token", "a token with spaces"}, says: []string{"-operator-token", "visible"}},
		{args: []string{"-operator-token-file", "/nowhere/token"}, says: []string{"-operator-token-file", "/nowhere/token"}},
		{args: []string{"-database-file", "/dev/null"}, says: []string{"-database-file", "empty"}},
		{args: []string{"-operator-token", "the-operators-token", "-operator-token-file", "/dev/null"}, says: []string{"-operator-token and -operator-token-file are both given"}},
		{env: []string{"SUREHOOK_SECRET_KEY=x", "SUREHOOK_SECRET_KEY_FILE=/dev/null"}, says: []string{"-secret-key and -secret-key-file are both given"}},
		{args: []string{"-max-subscriptions", "-1", "-max-jobs", "-1", "-max-requests", "-1"}, says: []string{"-max-subscriptions", "-max-jobs", "-max-requests"}},
		{args: []string{"-keep-events", "71h", "-keep-dead-letters", "1h"}, says: []string{"-keep-events", "-keep-dead-letters", "-horizon", "72h"}},
		{args: []string{"-secret-key", keyOfTests + "," + keyOfTests}, says: []string{"-secret-key", "give each once"}},
		{args: []string{"-secret-key", keyOfTests + ",bm90IDMyIGJ5dGVz"}, says: []string{"-secret-key", "number 2"}},
		{args: []string{"-secret-key", ","}, says: []string{"-secret-key", "32 bytes"}},
		{args: []string{"-database", "", "-addr", ""}, says: []string{"-database is empty", "-addr is empty"}},
		{args: []string{"-backup", ""}, env: []string{"SUREHOOK_OPERATOR_TOKEN_FILE="}, says: []string{"-backup is empty", "-operator-token-file is empty"}},
		{args: []string{"-addr"}, says: []string{"addr"}},
		{args: []string{"-wrokers"}, says: []string{"wrokers"}},
		{args: []string{"serve"}, says: []string{"serve"}},
		{env: []string{"SUREHOOK_TIMEOUT=long"}, says: []string{"SUREHOOK_TIMEOUT"}},
		{env: []string{"SUREHOOK_DISABLE_AFTER=long"}, says: []string{"SUREHOOK_DISABLE_AFTER"}},
		{args: []string{"-secret-key", "bm90IDMyIGJ5dGVz"}, says: []string{"-secret-key", "32 bytes"}},
		{args: []string{"-database", "postgres://127.0.0.1:1/x"}, says: []string{"-secret-key", "PostgreSQL"}},
	} {
		dir := t.TempDir()
		args := test.args
		if !strings.Contains(strings.Join(args, " "), "-database") {
			args = append([]string{"-database", filepath.Join(dir, "test.db")}, args...)
		}
		var out, errs strings.Builder
		code := program(args, environment(test.env), &out, &errs)
		require.NotZero(t, code, "%v", test)
		require.Empty(t, out.String())
		for _, word := range test.says {
			require.Contains(t, errs.String(), word, "%v", test)
		}
		require.NotContains(t, errs.String(), "bm90IDMy")
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "%v", test)
	}
}

// A file of a flag as programs on Windows save it: the byte order mark is no part of the value,
// and UTF-16 is refused by its name.
func TestFilesAsWindowsSavesThem(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("\ufeffthe-operators-token-of-a-file\r\n"), 0o600))
	o, err := parse([]string{"-operator-token-file", file}, environment(nil), io.Discard)
	require.NoError(t, err)
	require.Equal(t, "the-operators-token-of-a-file", o.operatorToken)
	for _, text := range []string{"\xff\xfet\x00o\x00", "\xfe\xff\x00t\x00o", "t\x00o\x00"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := parse([]string{"-operator-token-file", file}, environment(nil), io.Discard)
		require.ErrorContains(t, err, "is in UTF-16, as programs on Windows save files: save it as UTF-8")
	}
}

// A directory is no database, and gets no key beside it.
func TestDatabaseThatIsADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var errs strings.Builder
	require.NotZero(t, program([]string{"-database", dir}, environment(nil), io.Discard, &errs))
	require.Contains(t, errs.String(), dir+" is a directory")
	require.NoFileExists(t, dir+".key")
}

// Strangers cannot guess at a server that they cannot reach.
func TestShortOperatorToken(t *testing.T) {
	for addr, taken := range map[string]bool{
		"127.0.0.1:0": true, "localhost:8080": true, "[::1]:0": true, "[::ffff:127.0.0.1]:0": true,
		":8080": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:0": false, "localhost.example.com:0": false,
	} {
		_, err := parse([]string{"-operator-token", "short", "-addr", addr}, environment(nil), io.Discard)
		require.Equal(t, taken, err == nil, "%s: %v", addr, err)
	}
}

// A process that was killed while it made the key file leaves a part of one, and the next one can
// have its process id: in a container it is always the same.
func TestKeyFileAfterAKill(t *testing.T) {
	t.Parallel()
	o := options{database: filepath.Join(t.TempDir(), "x.db")}
	require.NoError(t, os.WriteFile(fmt.Sprintf("%s.key.%d", o.database, os.Getpid()), nil, 0o600))
	made, err := sealingKeys(o)
	require.NoError(t, err)
	again, err := sealingKeys(o)
	require.NoError(t, err)
	require.Equal(t, made, again)
	info, err := os.Stat(o.database + ".key")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}
