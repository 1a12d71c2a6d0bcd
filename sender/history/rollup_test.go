package history_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

func TestRollupMerge(t *testing.T) {
	minute := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	a := history.Rollup{Minute: minute.Add(time.Minute), Published: 1, Deliveries: 2, Delivered: 3, DeadLettered: 4, Interrupted: 5, Failed: 6, Backlog: 7,
		OldestDue: minute}
	b := history.Rollup{Minute: minute, Published: 10, Deliveries: 20, Delivered: 30, DeadLettered: 40, Interrupted: 50, Failed: 60, Backlog: 5,
		Failures: map[sender.Class]int64{sender.ClassDNS: 1}}
	b.Success.Add(time.Second)
	b.FirstAttempt.Add(time.Minute)
	want := history.Rollup{Minute: minute, Published: 11, Deliveries: 22, Delivered: 33, DeadLettered: 44, Interrupted: 55, Failed: 66, Backlog: 7,
		OldestDue: minute, Failures: b.Failures, Success: b.Success, FirstAttempt: b.FirstAttempt}
	merged := a
	merged.Merge(&b)
	require.Equal(t, want, merged)
}

func TestRollupJSON(t *testing.T) {
	r := history.Rollup{Minute: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Published: 3, Failures: map[sender.Class]int64{sender.ClassReset: 2}}
	r.Success.Add(time.Hour)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var read history.Rollup
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, r, read)
}

func TestRollupMergeKeepsTheOtherAsItIs(t *testing.T) {
	var a history.Rollup
	b := history.Rollup{Failures: map[sender.Class]int64{sender.ClassDNS: 1}}
	a.Merge(&b)
	a.Merge(&b)
	require.Equal(t, map[sender.Class]int64{sender.ClassDNS: 2}, a.Failures)
	require.Equal(t, map[sender.Class]int64{sender.ClassDNS: 1}, b.Failures)
}
