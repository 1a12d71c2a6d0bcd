package main_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newerKey is of tests alone.
var newerKey = base64.StdEncoding.EncodeToString([]byte("fedcba9876543210fedcba9876543210"))

// With a newer key before the old one, what is sealed is sealed anew while the server
// runs, answers to repeats too. Then the old one can be left out.
func TestSealingKeyRotates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		dir := t.TempDir()
		file := filepath.Join(dir, "keys")
		begin := func(keys string, flags ...string) *process {
			require.NoError(t, os.WriteFile(file, []byte(keys), 0o600))
			s := launch(t, nil, append(flags, "-addr", "127.0.0.1:0", "-database", p.flag, "-operator-token", operatorToken, "-secret-key-file", file, "-allow-private-networks")...)
			t.Cleanup(s.stop)
			return s
		}
		s := begin(sealingKey + "\n")
		made := s.post(operatorToken, "/subscribers", object{"name": "c"}, "Idempotency-Key", "1").is(http.StatusCreated)
		token := made["token"].(string)
		e := newEndpoint(t)
		id := s.subscribe(token, e.URL)
		s.stop()

		// Not without the old key; the refusal says what to do, and shows no key.
		require.NoError(t, os.WriteFile(file, []byte(newerKey), 0o600))
		code, _, errs := run(t, dir, nil, "-addr", "127.0.0.1:0", "-database", p.flag, "-operator-token", operatorToken, "-secret-key-file", file)
		require.Equal(t, 1, code)
		require.Contains(t, errs, "-secret-key NEW,OLD")
		require.NotContains(t, errs, "NewKeys")
		require.NotContains(t, errs, newerKey)

		// Step by step as docs/running.md says, with another process that is a step behind.
		behind := begin(sealingKey+"\n"+newerKey+"\n", "-workers=false")
		s = begin(newerKey + "\n" + sealingKey + "\n")
		eventually(t, "all is sealed anew", s.logged, func(log string) bool { return strings.Contains(log, "the older ones can be left out") })
		require.Contains(t, s.logged(), "sealed anew with the newest key")
		for _, one := range []*process{s, behind} {
			require.Equal(t, made, one.post(operatorToken, "/subscribers", object{"name": "c"}, "Idempotency-Key", "1").is(http.StatusCreated))
		}
		behind.stop()
		s.stop()

		s = begin(newerKey)
		s.post(token, "/subscriptions/"+id+"/test", nil).is(http.StatusAccepted)
		sent := e.wait(t, 1)[0]
		verifies(t, sent, made["signing_secret"].(string))
		require.Equal(t, made, s.post(operatorToken, "/subscribers", object{"name": "c"}, "Idempotency-Key", "1").is(http.StatusCreated))
		for _, key := range []string{sealingKey, newerKey} {
			require.NotContains(t, s.logged(), key)
		}
	})
}

// Secrets can come from files, which the process list does not show.
func TestFlagsFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	s := launch(t, []string{"SUREHOOK_OPERATOR_TOKEN=another-of-the-environment", "SUREHOOK_SECRET_KEY_FILE=" + write("key", sealingKey+"\n")},
		"-addr", "127.0.0.1:0", "-database-file", write("database", filepath.Join(dir, "test.db")+"\n"), "-operator-token-file", write("token", operatorToken+"\n"))
	defer s.stop()
	s.get(operatorToken, "/notices").is(http.StatusOK)
	require.FileExists(t, filepath.Join(dir, "test.db"))
	require.NoFileExists(t, filepath.Join(dir, "test.db.key"))
}

// With another token of the operator's, the one before and the sessions that it began are of
// no use, and answers to repeats stay.
func TestOperatorTokenRotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, p := filepath.Join(dir, "token"), place{flag: filepath.Join(dir, "test.db")}
	begin := func(token string) *process {
		require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
		s := launch(t, nil, "-addr", "127.0.0.1:0", "-database", p.flag, "-operator-token-file", file, "-secret-key", sealingKey, "-workers=false")
		t.Cleanup(s.stop)
		return s
	}
	s := begin(operatorToken)
	made := s.post(operatorToken, "/subscribers", object{"name": "c"}, "Idempotency-Key", "1").is(http.StatusCreated)
	v := s.visitor()
	v.signIn("")
	res, _ := v.ask(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusOK, res.StatusCode)
	s.stop()

	const other = "another-token-of-the-operator"
	s = begin(other)
	s.get(operatorToken, "/notices").refused(http.StatusUnauthorized)
	v.base = s.base
	res, _ = v.ask(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Equal(t, made, s.post(other, "/subscribers", object{"name": "c"}, "Idempotency-Key", "1").is(http.StatusCreated))
}
