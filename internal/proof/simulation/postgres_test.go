package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/simulation"
	"github.com/surehook/surehook/internal/race"
)

// onPostgres simulates one seed in a schema of its own.
func onPostgres(t *testing.T, cfg simulation.Config) (simulation.Report, error) {
	t.Helper()
	db, err := simulation.Postgres(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	return simulation.Run(t.Context(), db, cfg)
}

// eventsOnPostgres is smaller under the race detector, because only one goroutine runs.
func eventsOnPostgres() int {
	if race.Enabled {
		return min(*events, 20)
	}
	return *events
}

// The same seeds run on PostgreSQL, where connections really break, and the receivers'
// markers and effects are in tables, too. For other seeds: -from 1000 -seeds 100.
func TestPostgres(t *testing.T) {
	sum, began := simulation.Report{}, time.Now()
	for seed := range seedsOf() {
		r, err := onPostgres(t, simulation.Config{Seed: seed, Events: eventsOnPostgres()})
		require.NoError(t, err)
		sum.Add(r)
	}
	require.Positive(t, sum.Attempts)
	if *from == 0 && *seeds >= 3 && !race.Enabled {
		require.Positive(t, sum.Counts["connection broken"])
		require.Positive(t, sum.Counts["connection broken at work"])
	}
	t.Logf("%d attempts, %.0f a second: %v", sum.Attempts, float64(sum.Attempts)/time.Since(began).Seconds(), sum.Counts)
}

// A seed repeats on PostgreSQL, too, although connections, ids and transaction numbers
// differ.
func TestPostgresReplaysBitForBit(t *testing.T) {
	notRacing(t)
	var lines []string
	cfg := simulation.Config{Seed: 1, Events: min(*events, 20), Watch: func(line string) { lines = append(lines, line) }}
	first, err := onPostgres(t, cfg)
	require.NoError(t, err)
	n := 0
	cfg.Watch = func(line string) {
		if n < len(lines) && lines[n] != line {
			t.Fatalf("it has %q where it had %q", line, lines[n])
		}
		n++
	}
	again, err := onPostgres(t, cfg)
	require.NoError(t, err)
	require.Equal(t, first, again)
}
