package crash_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/crash"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
)

func TestMain(m *testing.M) {
	crash.Child()
	os.Exit(m.Run())
}

// number is what an environment variable says, or def.
func number(t *testing.T, variable string, def int) int {
	t.Helper()
	if text := os.Getenv(variable); text != "" {
		_, err := fmt.Sscan(text, &def)
		require.NoError(t, err, variable)
	}
	return def
}

func schema(t *testing.T, dsn string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	name := newid.New("crash_", time.Now())
	_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+name)
	require.NoError(t, err)
	return pgtest.With(dsn, "search_path", name)
}

// place says where a store's processes work.
func place(t *testing.T, store string) crash.Config {
	t.Helper()
	if store == "sqlite" {
		return crash.Config{Folder: t.TempDir(), Seed: rand.Uint64()}
	}
	return crash.Config{DSN: schema(t, pgtest.DSN(t)), Seed: rand.Uint64()}
}

var stores = []string{"sqlite", "postgres"}

// Processes are killed at every point, on both databases, and everything that was
// promised is kept.
func TestKilledAtEveryPoint(t *testing.T) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			cfg := place(t, store)
			cfg.Kills = number(t, "SUREHOOK_KILLS", 0)
			r, err := crash.Run(t.Context(), cfg)
			require.NoError(t, err, "seed %d", cfg.Seed)
			t.Logf("%+v", r)
			if cfg.Kills == 0 {
				require.Len(t, r.Kills, len(crash.Points()))
			}
			require.NotZero(t, r.Interrupted, "kills between a claim and its result")
			require.NotZero(t, r.DeadLetters)
			require.NotZero(t, r.Disabled)
			require.NotZero(t, r.Cut, "a kill in the middle of a body")
		})
	}
}

// A process that acknowledges before it has committed is found out.
func TestAcknowledgedTooEarly(t *testing.T) {
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			cfg := place(t, store)
			cfg.Points, cfg.Loose = []string{"publish inside"}, true
			_, err := crash.Run(t.Context(), cfg)
			require.ErrorContains(t, err, "I1: ")
			require.ErrorContains(t, err, "was acknowledged, and is lost")
		})
	}
}
