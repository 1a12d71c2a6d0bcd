package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

func TestCountAttempt(t *testing.T) {
	published := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var r history.Rollup
	add := func(number int, class sender.Class, became sender.Status, single bool) {
		rules.CountAttempt(&r, rules.Ended{&dispatch.Result{Number: number, Class: class, Published: published, StartedAt: published.Add(time.Second), Duration: time.Second}, became, single, sender.LaneProbation})
	}
	add(1, sender.ClassNone, sender.StatusDelivered, false)
	add(2, sender.ClassNone, sender.StatusDelivered, false)
	add(3, sender.ClassNone, sender.StatusDelivered, true)
	add(1, sender.ClassTimeout, sender.StatusAwaitingRetry, false)
	add(4, sender.ClassTimeout, sender.StatusDelivered, true)
	add(1, sender.ClassStatus, sender.StatusCancelled, false)
	add(9, sender.ClassStatus, sender.StatusDeadLettered, false)
	add(9, sender.ClassInterrupted, sender.StatusDeadLettered, false)
	add(1, sender.ClassInterrupted, sender.StatusAwaitingRetry, false)
	rules.CountAttempt(&r, rules.Ended{Result: &dispatch.Result{Number: 1, StartedAt: published}, Became: sender.StatusDelivered}) // its event's time is not known
	require.Equal(t, []int64{4, 2, 1, 3, 10}, []int64{r.Delivered, r.DeadLettered, r.Interrupted, r.Failed, r.Attempts()})
	require.Equal(t, map[sender.Class]int64{sender.ClassTimeout: 2, sender.ClassStatus: 2, sender.ClassInterrupted: 2}, r.Failures)
	require.Equal(t, []int64{4, 2}, []int64{r.FirstAttempt.Count(), r.Success.Count()}, "first attempts and first successes")
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, []time.Duration{r.FirstAttempt.Longest(), r.Success.Longest()})
}

func TestCountExpanded(t *testing.T) {
	r := history.Rollup{Published: 1, Deliveries: 2}
	rules.CountExpanded(&r, dispatch.Expanded{Events: 3, Deliveries: 40, More: true})
	require.Equal(t, history.Rollup{Published: 4, Deliveries: 42}, r)
}
