package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/overlap"
)

// TestMain lets the tests' program play the roles of its children.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-role" {
		if err := play(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	countSyncsOnce() // before any test opens a database
	overlap.Tests(3)
	os.Exit(m.Run())
}

// The figures depend on the machine. But each event is committed and arrives, and its
// cost was counted.
func TestOrdinary(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f := ordinaryOnce(t, onPostgres)
		require.Positive(t, f[dispatcherMS])
		require.Greater(t, f[databaseMS], f[dispatcherMS], "the producer's connections are counted, too")
		require.Contains(t, f, serverMS)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f := ordinaryOnce(t, onSQLite)
		require.Greater(t, f[fsyncs], 1.0, "each commit of the producer, and some of the dispatcher")
		require.InDelta(t, f[fsyncs]-1, f[dispatcherFS], 0.01)
	})
}

func ordinaryOnce[Tx any](t *testing.T, k kind[Tx]) map[string]float64 {
	b, err := newBench(options{quick: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close()) })
	measures, closeAll, err := openOrdinary(t.Context(), b, k, []int{50}, surehookRun(k, surehookOrdinary, 0))
	require.NoError(t, err)
	defer func() { require.NoError(t, closeAll()) }()
	require.Len(t, measures, 1)
	samples, err := measures[0](t.Context())
	require.NoError(t, err)
	require.Len(t, samples, 1)
	require.Equal(t, "Surehook, 50/s", samples[0].Variant)
	f := samples[0].Figures
	require.Positive(t, f[processMS])
	require.Positive(t, f[arriveP99])
	require.GreaterOrEqual(t, f[arriveP99], f[arriveP50])
	return f
}

func TestSince(t *testing.T) {
	before := processes{ended: 10_000, of: map[int]process{
		1: {forProducer, 100}, 2: {forDispatcher, 200}, 3: {forServer, 300}, 4: {forServer, 5000},
	}}
	after := processes{ended: 30_000, of: map[int]process{
		1: {forProducer, 150}, 2: {forDispatcher, 200}, 3: {forServer, 307}, 5: {forDispatcher, 40},
	}}
	require.Equal(t, map[string]float64{forProducer: 50, forDispatcher: 40, forServer: 7 + 20_000 - 5000}, after.since(&before),
		"what began meanwhile counts from nothing, and of what ended only the rest")
}

// Each commit in WAL mode syncs the log once, and a checkpoint syncs the log and the
// database.
func TestCountSyncs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(0)")
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	exec := func(query string) (synced int64) {
		before := syncs.Load()
		_, err := db.ExecContext(t.Context(), query)
		require.NoError(t, err)
		return syncs.Load() - before
	}
	exec("CREATE TABLE t (n INTEGER)")
	for range 3 {
		require.EqualValues(t, 1, exec("INSERT INTO t VALUES (1)"))
	}
	require.EqualValues(t, 0, exec("SELECT * FROM t"))
	require.EqualValues(t, 2, exec("PRAGMA wal_checkpoint(FULL)"))
}
