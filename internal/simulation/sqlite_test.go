package simulation_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/simulation"
)

// The same seeds on SQLite, where each process has a store of its own. Each commit is
// synced, so there are fewer.
func TestSQLite(t *testing.T) {
	seeds, sum, began := uint64(4), simulation.Report{}, time.Now()
	if raceEnabled {
		seeds = 1
	}
	run := func(seed uint64) simulation.Report {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "simulation.db")+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
		require.NoError(t, err)
		r, err := simulation.Run(t.Context(), simulation.SQLite(db), simulation.Config{Seed: seed, Events: 40})
		require.NoError(t, err)
		require.NoError(t, db.Close())
		return r
	}
	for seed := range seeds {
		sum.Add(run(seed))
	}
	require.Equal(t, run(0), run(0), "bit for bit")
	t.Logf("%d attempts, %.0f a second: %v", sum.Attempts, float64(sum.Attempts)/time.Since(began).Seconds(), sum.Counts)
}
