package soak_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/soak"
	"github.com/surehook/surehook/internal/race"
)

// A short soak on each store. It makes all checks except the check of growth under load,
// because growth takes minutes to distinguish from a wave. Nothing here depends on the
// machine's speed. The soaks do not run in parallel: they count the process's goroutines
// and descriptors.
func TestSoakOnSQLite(t *testing.T) {
	brief(t, soak.Config{Store: soak.SQLite, Dir: t.TempDir()})
}

func TestSoakOnPostgreSQL(t *testing.T) {
	brief(t, soak.Config{Store: soak.Postgres, DSN: pgtest.DSN(t)})
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
