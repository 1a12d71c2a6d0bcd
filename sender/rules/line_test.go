package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

func TestEnterALine(t *testing.T) {
	for name, c := range map[string]struct {
		line           rules.Line
		object, latest rules.Entry // of event 5
	}{
		"that is empty":                   {},
		"with one out":                    {rules.Line{First: 3, Out: 3, Newest: 3}, rules.Entry{Behind: true}, rules.Entry{Supersedes: true}},
		"with one in flight":              {rules.Line{First: 3, Out: 3, Leased: true, Newest: 4}, rules.Entry{Behind: true}, rules.Entry{Supersedes: true, Behind: true}},
		"with a dead letter":              {rules.Line{First: 3, Dead: true, Newest: 4}, rules.Entry{Behind: true}, rules.Entry{Supersedes: true}},
		"with a later one out":            {rules.Line{First: 7, Out: 7, Newest: 8}, rules.Entry{Displaces: true}, rules.Entry{Superseded: true}},
		"with a later one in flight":      {rules.Line{First: 7, Out: 7, Leased: true, Newest: 7}, rules.Entry{Behind: true}, rules.Entry{Superseded: true}},
		"with a later dead letter":        {rules.Line{First: 7, Dead: true}, rules.Entry{}, rules.Entry{Supersedes: true}},
		"with an earlier one behind that": {rules.Line{First: 3, Out: 7, Leased: true, Newest: 7}, rules.Entry{Behind: true}, rules.Entry{Superseded: true}},
	} {
		require.Equal(t, c.object, c.line.Enter(sender.OrderObject, 5), name)
		require.Equal(t, c.latest, c.line.Enter(sender.OrderLatest, 5), name)
	}
}

func TestGoOnInALine(t *testing.T) {
	alone := rules.Line{First: 5, Out: 5, Leased: true, Newest: 5}
	earlier := rules.Line{First: 3, Out: 5, Leased: true, Newest: 5}
	later := rules.Line{First: 5, Out: 5, Leased: true, Newest: 7}
	require.Equal(t, []bool{false, true, false}, []bool{alone.Yields(5), earlier.Yields(5), later.Yields(5)}, "it gives way to an earlier one")
	require.Equal(t, []bool{false, false, true}, []bool{alone.Overtaken(sender.OrderLatest, 5), earlier.Overtaken(sender.OrderLatest, 5), later.Overtaken(sender.OrderLatest, 5)}, "a newer one ends it")
	require.False(t, later.Overtaken(sender.OrderObject, 5))
	require.False(t, rules.Line{}.Yields(5), "it is in no line")
	require.False(t, rules.Line{First: 3, Dead: true, Out: 5, Leased: true, Newest: 5}.Yields(5), "a dead letter was not sent again")
	require.Equal(t, []bool{false, false, true, false}, []bool{alone.Advances(), rules.Line{}.Advances(), rules.Line{First: 3, Newest: 3}.Advances(), rules.Line{First: 3, Dead: true, Newest: 4}.Advances()})
}

func TestTheNewestComesOut(t *testing.T) {
	several := rules.Line{First: 3, Newest: 7}
	require.True(t, several.Overtakes(sender.OrderLatest))
	require.False(t, several.Overtakes(sender.OrderObject))
	require.False(t, several.Overtakes(sender.OrderRelaxed))
	require.False(t, rules.Line{First: 7, Newest: 7}.Overtakes(sender.OrderLatest), "it is alone")
	require.True(t, several.Halts(true))
	require.True(t, rules.Line{First: 3, Out: 3, Newest: 7}.Halts(true))
	require.False(t, rules.Line{First: 3, Out: 3, Leased: true, Newest: 7}.Halts(true), "nothing comes out anyway")
	require.False(t, several.Halts(false))
}

func TestSupersedingGrants(t *testing.T) {
	sweep := rules.SupersedingInSweep(10)
	var step rules.Superseding
	for _, c := range []struct {
		s             *rules.Superseding
		add, one, all int
	}{
		{&sweep, 0, 10, 10}, {&sweep, 4, 6, 6}, {&sweep, 7, 0, 0},
		{&step, 0, rules.SupersedeMost, 20 * rules.SupersedeMost}, {&step, 19*rules.SupersedeMost + 1, rules.SupersedeMost - 1, rules.SupersedeMost - 1},
		{&step, rules.SupersedeMost, 0, 0},
	} {
		c.s.Add(c.add)
		one, all := c.s.Grants()
		require.Equal(t, []int{c.one, c.all}, []int{one, all})
	}
}

func TestHolds(t *testing.T) {
	held := &sender.Settings{Order: sender.OrderObject, HoldDead: true}
	require.True(t, rules.Holds(held, sender.SubscriptionActive))
	require.True(t, rules.Holds(held, sender.SubscriptionPaused))
	require.False(t, rules.Holds(held, sender.SubscriptionClosing), "it is to come to its end")
	require.False(t, rules.Holds(&sender.Settings{Order: sender.OrderObject}, sender.SubscriptionActive))
	require.False(t, rules.Holds(&sender.Settings{HoldDead: true}, sender.SubscriptionActive))
	require.False(t, rules.Holds(nil, sender.SubscriptionActive))
	unreadable := sender.ReadSettings([]byte(`{"HoldDead":"always"}`))
	require.True(t, rules.Holds(&unreadable, sender.SubscriptionActive), "nobody knows")
	require.False(t, rules.Holds(&unreadable, sender.SubscriptionClosing))
}

func TestSettleSupersedes(t *testing.T) {
	again := always(dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now})
	for _, c := range []struct {
		single bool
		class  sender.Class
		want   sender.Status
	}{
		{false, sender.ClassReset, sender.StatusSuperseded},
		{true, sender.ClassInterrupted, sender.StatusDelivered},
	} {
		v, err := rules.Settle(dispatch.Live{Single: c.single}, sender.Health{}, dispatch.Result{Class: c.class}, rules.Standing{Newer: true, Active: true}, again, now)
		require.NoError(t, err)
		require.Equal(t, c.want, v.Status)
	}
	v, err := rules.Settle(dispatch.Live{}, sender.Health{}, dispatch.Result{Class: sender.ClassReset}, rules.Standing{Newer: true, Skipped: true}, again, now)
	require.NoError(t, err)
	require.Equal(t, sender.StatusCancelled, v.Status, "what reads as cancelled stays so")
}
