package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/history"
)

// A delivery that is due may wait for its first attempt or for a later one.
func TestJudgeWork(t *testing.T) {
	now := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	found := &findings{}
	judgeWork(&history.Counts{At: now, OldestDue: now.Add(-6 * time.Minute), Live: 1}, found)
	require.Equal(t, []finding{{
		"work", warn, "a delivery has been due for 6m0s: no dispatcher runs, or its endpoint hangs",
		"surehook deliveries -status pending, or -status awaiting_retry, and surehook why ID",
	}}, found.all)
}
