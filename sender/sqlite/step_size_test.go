package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// A dispatcher makes larger steps on SQLite only while there are no other writers,
// which would wait for them.
func TestStepsAreLargeWhileNobodyElseWrites(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	db := open(t, filepath.Join(t.TempDir(), "steps.db"), "")
	s := newStore(t, db, func() time.Time { return now })
	now = now.Add(time.Hour)
	pub, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	others := map[string]func(){
		"InTx": func() { require.NoError(t, s.InTx(t.Context(), func(*sql.Tx) error { return nil })) },
		"Turn": func() {
			done, err := s.WaitToWrite(t.Context())
			require.NoError(t, err)
			done()
		},
		"PublishTx": func() {
			tx, err := db.Begin()
			require.NoError(t, err)
			_, err = pub.PublishTx(t.Context(), tx, sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}})
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
		},
	}
	for name, write := range others {
		require.Equal(t, 512, s.StepSize(), name)
		write()
		require.Zero(t, s.StepSize(), name)
		now = now.Add(999 * time.Millisecond)
		require.Zero(t, s.StepSize(), name)
		now = now.Add(time.Millisecond)
	}
	for range 3 { // dispatchers' own writes make them no smaller
		_, _, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(nil, 10))
		require.NoError(t, err)
		_, err = s.Sweep(t.Context(), dispatch.SweepParams{Limit: 10})
		require.NoError(t, err)
		require.Equal(t, 512, s.StepSize())
	}
}
