package main

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender/history"
)

// A forgotten transaction is found also while it is idle, and after the first phase of its
// commit.
func TestOldestTransaction(t *testing.T) {
	t.Parallel()
	pgtest.DSN(t) // skips without an installed server
	server, err := pgtest.Start(pgtest.Options{Settings: map[string]string{"max_prepared_transactions": "1"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	db, err := sql.Open("pgx", server.DSN())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	oldest := func() time.Duration {
		age, err := oldestTransaction(t.Context(), db)
		require.NoError(t, err)
		return age
	}
	require.Zero(t, oldest())
	forgotten, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer forgotten.Close()
	_, err = forgotten.ExecContext(t.Context(), "BEGIN; CREATE TABLE a ()")
	require.NoError(t, err)
	require.Positive(t, oldest())
	_, err = forgotten.ExecContext(t.Context(), "PREPARE TRANSACTION 'a'")
	require.NoError(t, err)
	require.Positive(t, oldest())
	_, err = forgotten.ExecContext(t.Context(), "COMMIT PREPARED 'a'")
	require.NoError(t, err)
	require.Zero(t, oldest())
}

// A delivery that is due may wait for its first attempt or for a later one.
func TestJudgeWork(t *testing.T) {
	now := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	found := &findings{}
	judgeWork(&history.Counts{At: now, OldestDue: now.Add(-6 * time.Minute), Live: 1}, found)
	require.Equal(t, []finding{{
		"work", warn, "a delivery has been due for 6m0s: no dispatcher runs, or its endpoint hangs",
		"surehook deliveries -status pending, or -status awaiting_retry, and surehook why ID",
	}}, found.all)

	found = &findings{}
	judgeWork(&history.Counts{At: now, Live: 1, DeadLettered: 1, Notices: 1}, found)
	var said []string
	for _, f := range found.all {
		said = append(said, f.Detail)
	}
	require.Equal(t, []string{"1 delivery live, 0 held, 1 dead-lettered", "1 delivery was given up", "1 is not acknowledged"}, said)
}
