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
	require.Equal(t, []int64{3, 2}, []int64{r.Succeeded, r.FirstTry}, "deliveries that succeeded, and those at the first try")
	require.Equal(t, []int64{3, 6, 4}, []int64{r.Lanes[sender.LaneProbation].Delivered, r.Lanes[sender.LaneProbation].Failed, r.Lanes[sender.LaneProbation].FirstAttempt.Count()}, "in the lane")
	require.Equal(t, []int64{4, 2}, []int64{r.FirstAttempt.Count(), r.Success.Count()}, "first attempts and first successes")
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, []time.Duration{r.FirstAttempt.Longest(), r.Success.Longest()})
}

func TestCountExpanded(t *testing.T) {
	r := history.Rollup{Published: 1, Deliveries: 2}
	rules.CountExpanded(&r, dispatch.Expanded{Events: 3, Deliveries: 40, More: true})
	require.Equal(t, history.Rollup{Published: 4, Deliveries: 42}, r)
}

func TestCountSubscriptionAttempt(t *testing.T) {
	var r history.SubscriptionRollup
	for _, e := range []rules.Ended{
		{Result: &dispatch.Result{Number: 1, Duration: time.Second}, Became: sender.StatusDelivered},
		{Result: &dispatch.Result{Number: 2, Duration: 3 * time.Second}, Became: sender.StatusDelivered},
		{Result: &dispatch.Result{Number: 1}, Became: sender.StatusDelivered, Single: true},
		{Result: &dispatch.Result{Number: 3, Class: sender.ClassTimeout}, Became: sender.StatusAwaitingRetry},
		{Result: &dispatch.Result{Number: 3, Class: sender.ClassTimeout}, Became: sender.StatusDeadLettered},
		{Result: &dispatch.Result{Number: 3, Class: sender.ClassInterrupted, Duration: time.Hour}, Became: sender.StatusAwaitingRetry},
	} {
		rules.CountSubscriptionAttempt(&r, e)
	}
	require.Equal(t, []int64{3, 1, 1, 1, 6, 2, 1}, []int64{r.Delivered, r.DeadLettered, r.Interrupted, r.Failed, r.Attempts(), r.Succeeded, r.FirstTry})
	require.Equal(t, map[sender.Class]int64{sender.ClassTimeout: 2, sender.ClassInterrupted: 1}, r.Failures)
	require.Equal(t, int64(5), r.Duration.Count(), "how long an interrupted one took is not known")
	require.Equal(t, 3*time.Second, r.Duration.Longest())
}
