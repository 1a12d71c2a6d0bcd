package simulation_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/internal/proof/simulation"
)

// onSQLite simulates one seed on a database of its own.
func onSQLite(t *testing.T, cfg simulation.Config) (simulation.Report, error) {
	t.Helper()
	folder, err := os.MkdirTemp(pgtest.InMemory(), "surehook-simulation-") //nolint:usetesting // it is in memory
	require.NoError(t, err)
	defer func() { require.NoError(t, os.RemoveAll(folder)) }()
	db, err := sql.Open("sqlite", simulation.SQLiteFile(filepath.Join(folder, "simulation.db")))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	return simulation.Run(t.Context(), simulation.SQLite(db), cfg)
}

// The same seeds run on SQLite, where each process has a store of its own.
func TestSQLite(t *testing.T) {
	sum, began := simulation.Report{}, time.Now()
	for seed := range seedsOf() {
		r, err := onSQLite(t, simulation.Config{Seed: seed, Events: *events})
		require.NoError(t, err)
		sum.Add(r)
	}
	require.Positive(t, sum.Attempts)
	t.Logf("%d attempts, %.0f a second: %v", sum.Attempts, float64(sum.Attempts)/time.Since(began).Seconds(), sum.Counts)
}

func TestSQLiteReplaysBitForBit(t *testing.T) {
	notRacing(t)
	cfg := simulation.Config{Seed: 1, Events: *events}
	first, err := onSQLite(t, cfg)
	require.NoError(t, err)
	again, err := onSQLite(t, cfg)
	require.NoError(t, err)
	require.Equal(t, first, again)
}
