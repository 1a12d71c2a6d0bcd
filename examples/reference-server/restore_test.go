package main_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
)

// A backup that was made while the server ran is restored as docs/running.md says. Neither
// versions nor positions that receivers have seen since are given out again.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		path, copied := filepath.Join(dir, "test.db"), filepath.Join(dir, "copy.db")
		p := place{driver: "sqlite", flag: path}
		restores(t, p, func() place {
			code, out, errs := run(t, dir, nil, "-database", path, "-backup", copied)
			require.Zero(t, code, errs)
			require.Contains(t, out, copied)
			info, err := os.Stat(copied)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			code, _, errs = run(t, dir, nil, "-database", path, "-backup", copied)
			require.Equal(t, 1, code, "what is there is not overwritten")
			require.Contains(t, errs, "exists")
			code, _, _ = run(t, dir, nil, "-database", filepath.Join(dir, "none.db"), "-backup", filepath.Join(dir, "x.db"))
			require.Equal(t, 1, code)
			require.NoFileExists(t, filepath.Join(dir, "none.db"), "nothing is made where nothing is")
			return place{driver: "sqlite", flag: copied}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		pgtest.DSN(t) // says aloud if there are no binaries
		server := func() *pgtest.Server {
			s, err := pgtest.Start(pgtest.Options{Durable: true})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Stop() })
			return s
		}
		from := server()
		restores(t, place{flag: from.DSN()}, func() place {
			code, _, errs := run(t, t.TempDir(), nil, "-database", from.DSN(), "-backup", "x")
			require.Equal(t, 1, code)
			require.Contains(t, errs, "pg_dump")
			to := server()
			require.NoError(t, from.Dump(t.Context(), to))
			return place{flag: to.DSN()}
		})
	})
}

func restores(t *testing.T, p place, backup func() place) {
	s := start(t, p)
	c := s.customer("c")
	e := newEndpoint(t)
	id := s.subscribe(c.token, e.URL, "order.*")
	publish := func(s *process) float64 {
		return s.post(operatorToken, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}}).is(http.StatusCreated)["version"].(float64)
	}
	publish(s)
	s.deliveries(c.token, id, "delivered", 1)
	at := backup()
	publish(s)
	seen := publish(s)
	s.deliveries(c.token, id, "delivered", 3)
	page := s.get(c.token, "/events?limit=200").is(http.StatusOK)
	require.NotEmpty(t, page["data"])
	s.stop()

	code, out, errs := run(t, t.TempDir(), nil, "-database", at.flag, "-secret-key", sealingKey, "-restored")
	require.Zero(t, code, errs)
	require.Contains(t, out, "the next versions are above")
	require.NotContains(t, errs, "operator token", "it serves nobody")
	s = start(t, at)
	require.Greater(t, publish(s), seen)
	sent := e.wait(t, 4)[3]
	verifies(t, sent, c.secret)
	after := eventually(t, "it is behind the reader's cursor", func() []any {
		return s.get(c.token, "/events?after="+url.QueryEscape(page["next_cursor"].(string))).is(http.StatusOK)["data"].([]any)
	}, func(data []any) bool { return len(data) > 0 })
	require.Equal(t, sent.header.Get("Webhook-Id"), after[0].(object)["id"])
}

// A container that holds nothing but the program can ask whether it is ready.
func TestProbe(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false")
	at, err := url.Parse(s.base)
	require.NoError(t, err)
	for _, addr := range []string{at.Host, ":" + at.Port(), "0.0.0.0:" + at.Port()} {
		code, _, errs := run(t, t.TempDir(), nil, "-probe", "-addr", addr)
		require.Zero(t, code, errs)
	}
	s.stop()
	code, _, errs := run(t, t.TempDir(), nil, "-probe", "-addr", at.Host)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "refused")
}
