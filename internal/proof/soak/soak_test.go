package soak_test

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/soak"
	"github.com/surehook/surehook/internal/race"
)

// A short soak on each store. It makes all checks except the check of growth under load,
// because growth takes minutes to distinguish from a wave. Nothing here depends on the
// machine's speed.
func TestSoakOnSQLite(t *testing.T) {
	alone(t, "", func() soak.Config { return soak.Config{Store: soak.SQLite, Dir: t.TempDir()} })
}

func TestSoakOnPostgreSQL(t *testing.T) {
	dsn := pgtest.DSN(t)
	alone(t, dsn, func() soak.Config { return soak.Config{Store: soak.Postgres, DSN: dsn} })
}

const aloneVariable = "SUREHOOK_TEST_SOAK_ALONE"

// alone makes a test's soak in a process of its own, on the server with this dsn. A soak
// counts its process's goroutines and descriptors. Most of the time it waits until processes
// are taken for gone, so soaks run beside each other.
func alone(t *testing.T, dsn string, config func() soak.Config) {
	if os.Getenv(aloneVariable) != "" {
		go func() { // the parent's end is ours
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(3)
		}()
		brief(t, config())
		return
	}
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), aloneVariable+"=1")
	if dsn != "" {
		child.Env = append(child.Env, "SUREHOOK_TEST_POSTGRES="+dsn)
	}
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	said, err := child.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS: "+t.Name(), "it has run")
}

func brief(t *testing.T, cfg soak.Config) {
	cfg.WarmUp, cfg.Time = 300*time.Millisecond, 1500*time.Millisecond
	cfg.Reach = time.Minute // so that nothing is pruned before it was checked, however slow the machine is
	cfg.Rate, cfg.Timeout = 20, 500*time.Millisecond
	if race.Enabled { // SQLite, which is compiled Go, is slower by an order
		cfg.Rate, cfg.Timeout = 6, 1500*time.Millisecond
	}
	r, err := soak.Run(t.Context(), cfg)
	if r != nil {
		for _, f := range r.Findings {
			t.Errorf("%v", f)
		}
	}
	require.NoError(t, err)
	// The faults depend on how far the soak gets, but a soak without any of these
	// has tested nothing.
	for _, figure := range []string{"events acknowledged", "posts", "events applied", "2xx seen after the commit", "events read from the feed", "deliveries checked"} {
		require.Positive(t, r.Figures[figure], figure)
	}
}

func TestConfigIsRefused(t *testing.T) {
	_, err := soak.Run(t.Context(), soak.Config{Reach: time.Second, Rate: -1})
	for _, text := range []string{"Config.Dir is empty", "Config.Reach is 1s", "the rate in the Config is negative"} {
		require.ErrorContains(t, err, text)
	}
	_, err = soak.Run(t.Context(), soak.Config{Store: soak.Postgres})
	require.ErrorContains(t, err, "Config.DSN is empty")
	_, err = soak.Run(t.Context(), soak.Config{Store: "oracle"})
	require.ErrorContains(t, err, `there is no store "oracle"`)
}
