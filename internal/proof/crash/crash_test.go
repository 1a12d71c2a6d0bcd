package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/overlap"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/crash"
	"github.com/surehook/surehook/internal/race"
)

func TestMain(m *testing.M) {
	crash.Child()
	overlap.Tests(4)
	os.Exit(m.Run())
}

// number is the value of an environment variable, or def.
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

// place returns the place where a store's processes work.
func place(t *testing.T, store string) crash.Config {
	t.Helper()
	if store == "sqlite" {
		return crash.Config{Folder: t.TempDir(), Seed: rand.Uint64()}
	}
	return crash.Config{DSN: schema(t, pgtest.DSN(t)), Seed: rand.Uint64()}
}

var stores = []string{"sqlite", "postgres"}

// Processes are killed at every point, on both databases, and keep all promises.
func TestKilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			cfg := place(t, store)
			cfg.Kills = number(t, "SUREHOOK_KILLS", 0)
			cfg.Points = crash.Points()
			if race.Enabled { // processes race here, and not their code: without it all points are tried
				rand.Shuffle(len(cfg.Points), func(i, j int) { cfg.Points[i], cfg.Points[j] = cfg.Points[j], cfg.Points[i] })
				cfg.Points = append(cfg.Points[:len(cfg.Points)/8], "attempt body sent")
				slices.Sort(cfg.Points)
				cfg.Points = slices.Compact(cfg.Points)
			}
			r, err := crash.Run(t.Context(), cfg)
			require.NoError(t, err, "seed %d", cfg.Seed)
			t.Logf("%+v", r)
			if cfg.Kills == 0 {
				require.Len(t, r.Kills, len(cfg.Points))
			}
			if len(cfg.Points) == len(crash.Points()) {
				require.NotZero(t, r.Interrupted, "kills between a claim and its result")
				require.NotZero(t, r.DeadLetters)
				require.NotZero(t, r.Disabled)
				require.NotZero(t, r.DeadSeen)
				require.NotZero(t, r.DisabledSeen)
				require.NotZero(t, r.Stopped)
			}
		})
	}
}

// The test finds a process that acknowledges before it has committed.
func TestAcknowledgedTooEarly(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			cfg := place(t, store)
			cfg.Points, cfg.Defect = []string{"publish inside"}, crash.Early
			_, err := crash.Run(t.Context(), cfg)
			require.ErrorContains(t, err, "I1: ")
			require.ErrorContains(t, err, "was acknowledged, and is lost")
		})
	}
}

// A killed database loses no acknowledged event. The test finds a database that does not
// wait for its disk.
func TestDatabaseKilled(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // skips without an installed server
	run := func(t *testing.T, cfg crash.Config, settings map[string]string) (crash.Report, error) {
		server, err := pgtest.Start(pgtest.Options{Durable: true, Settings: settings})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
		cfg.DSN, cfg.Seed = schema(t, server.DSN()), rand.Uint64()
		r, err := crash.Database(t.Context(), cfg, server)
		t.Logf("seed %d: %+v", cfg.Seed, r)
		return r, err
	}
	t.Run("durable", func(t *testing.T) {
		t.Parallel()
		kills := 0
		if race.Enabled { // processes race here, and not their code
			kills = 3
		}
		cfg := crash.Config{Kills: number(t, "SUREHOOK_DATABASE_KILLS", kills)}
		_, err := run(t, cfg, nil)
		require.NoError(t, err)
	})
	t.Run("unsynced", func(t *testing.T) {
		t.Parallel()
		var err error
		for range 10 { // histories: in a single one everything can have been written by chance
			if _, err = run(t, crash.Config{Kills: 1, Defect: crash.Unsynced}, map[string]string{"wal_writer_delay": "10s"}); err != nil {
				break
			}
		}
		require.ErrorContains(t, err, "I1: ")
		require.ErrorContains(t, err, "was acknowledged, and is lost")
	})
}

// gone is a server that cannot be started again after a kill.
type gone struct{ *pgtest.Server }

func (gone) Restart() error { return errors.New("it does not start") }

// If the database does not come back, Database fails at once, and not only when the
// time for an answer is over.
func TestDatabaseDoesNotComeBack(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // skips without an installed server
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = crash.Database(ctx, crash.Config{DSN: schema(t, server.DSN())}, gone{server})
	require.ErrorContains(t, err, "it does not start")
	require.NoError(t, ctx.Err())
}
