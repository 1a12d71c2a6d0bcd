package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/replay"
)

// The total of a replay that was not counted whole is not known.
func TestProgressOfAReplay(t *testing.T) {
	r := replay.Replay{Matched: 9, Admitted: 4, Skipped: 1}
	for more, want := range map[bool]int64{false: 9, true: 0} {
		r.More = more
		done, total := progressOf(r)
		require.Equal(t, []int64{5, want}, []int64{done, total})
	}
}
