package rules_test

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// always returns the same decision for everything.
func always(d dispatch.Decision) func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision {
	return func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision { return d }
}

var statuses = []sender.Status{sender.StatusDelivered, sender.StatusAwaitingRetry, sender.StatusDeadLettered}

// A delivery that reads as cancelled ends with the attempt in hand, whatever made it
// cancelled.
func TestCancelledDeliveriesEnd(t *testing.T) {
	for name, standing := range map[string]rules.Standing{
		"deleted": {Gone: true}, "resumed without it": {Skipped: true}, "redacted": {Redacted: true},
		"all at once": {Gone: true, Skipped: true, Redacted: true, Active: true, Resumed: true},
	} {
		for _, c := range []struct {
			class  sender.Class
			single bool
			want   sender.Status
		}{
			{sender.ClassNone, false, sender.StatusDelivered},
			{sender.ClassNone, true, sender.StatusDelivered},
			{sender.ClassTimeout, false, sender.StatusCancelled},
			{sender.ClassTimeout, true, sender.StatusDelivered},
			{sender.ClassInterrupted, false, sender.StatusCancelled},
			{sender.ClassInterrupted, true, sender.StatusDelivered},
		} {
			l, r := dispatch.Live{Number: 3, Tries: 3, Single: c.single}, dispatch.Result{Class: c.class}
			for _, decided := range append(statuses, "") {
				v, err := rules.Settle(l, sender.Health{}, r, standing, always(dispatch.Decision{Status: decided, Due: now}), now)
				require.NoError(t, err)
				require.Equal(t, c.want, v.Status, "%s, %q, single: %v, decided: %q", name, c.class, c.single, decided)
			}
			v, err := rules.Settle(l, sender.Health{Streak: 2}, r, standing, nil, now)
			require.NoError(t, err, "nothing needs to be decided")
			require.Equal(t, c.want, v.Status)
			require.Equal(t, sender.Health{Streak: 2}, v.Health)
		}
	}
}

func TestOthersEndAsDecided(t *testing.T) {
	for _, status := range statuses {
		for _, class := range []sender.Class{sender.ClassNone, sender.ClassReset, sender.ClassInterrupted} {
			v, err := rules.Settle(dispatch.Live{}, sender.Health{}, dispatch.Result{Class: class}, rules.Standing{Active: true}, always(dispatch.Decision{Status: status}), now)
			require.NoError(t, err)
			require.Equal(t, status, v.Status)
		}
	}
}

func TestWhatTheRowRemembers(t *testing.T) {
	claimed := now.Add(-time.Second)
	stored := dispatch.Live{
		Key: dispatch.DeliveryKey{Event: 1, Subscription: 2}, Number: 9, Tries: 4, First: now.Add(-time.Hour),
		Single: true, Stood: time.Minute, Notice: true, Spared: true,
	}
	anew := stored
	anew.Tries, anew.First, anew.Stood, anew.Spared = 1, claimed, 0, false
	with := func(l dispatch.Live, change func(*dispatch.Live)) dispatch.Live {
		change(&l)
		return l
	}
	lost := anew
	lost.First = now
	for name, c := range map[string]struct {
		resumed bool
		class   sender.Class // "": it timed out
		decided dispatch.Decision
		want    dispatch.Live
	}{
		"counted":                  {want: with(stored, func(l *dispatch.Live) { l.Spared = false })},
		"spared":                   {decided: dispatch.Decision{Spared: true}, want: stored},
		"uncounted":                {decided: dispatch.Decision{Uncounted: true, Spared: true}, want: with(stored, func(l *dispatch.Live) { l.Tries = 3 })},
		"stood still":              {decided: dispatch.Decision{Stands: time.Second, Spared: true}, want: with(stored, func(l *dispatch.Live) { l.Stood = 61 * time.Second })},
		"resumed":                  {resumed: true, want: anew},
		"resumed, and uncounted":   {resumed: true, decided: dispatch.Decision{Uncounted: true}, want: with(anew, func(l *dispatch.Live) { l.Tries = 0 })},
		"resumed, and stood still": {resumed: true, decided: dispatch.Decision{Stands: time.Second}, want: with(anew, func(l *dispatch.Live) { l.Stood = time.Second })},
		"lost":                     {class: sender.ClassInterrupted, want: with(stored, func(l *dispatch.Live) { l.Spared = false })},
		"resumed, and lost":        {resumed: true, class: sender.ClassInterrupted, want: lost},
	} {
		t.Run(name, func(t *testing.T) {
			c.decided.Status = sender.StatusAwaitingRetry
			decide := func(l dispatch.Live, _ sender.Health, _ dispatch.Result, at time.Time) dispatch.Decision {
				before := stored
				if c.resumed {
					before = anew
					before.First = c.want.First
				}
				require.Equal(t, before, l, "what is decided about")
				require.Equal(t, now, at)
				return c.decided
			}
			v, err := rules.Settle(stored, sender.Health{}, dispatch.Result{Class: cmp.Or(c.class, sender.ClassTimeout)}, rules.Standing{Claimed: claimed, Resumed: c.resumed}, decide, now)
			require.NoError(t, err)
			require.Empty(t, gocmp.Diff(c.want, v.Live))
		})
	}
}

// Decisions for the subscription are kept, except for parts that do not apply to it.
func TestTheSubscriptionsPart(t *testing.T) {
	decided := dispatch.Decision{
		Status: sender.StatusAwaitingRetry, Health: sender.Health{Lane: sender.LaneProbation, Streak: 5},
		Disable: "it broke", Notices: []sender.Notice{{Kind: sender.NoticeDisabled}, {Kind: sender.NoticeFailing}},
	}
	for name, c := range map[string]struct {
		standing rules.Standing
		disable  string
		notices  int
	}{
		"active":             {rules.Standing{Active: true}, "it broke", 2},
		"held or closing":    {rules.Standing{}, "", 2},
		"resumed without it": {rules.Standing{Skipped: true, Active: true}, "it broke", 2},
		"redacted":           {rules.Standing{Redacted: true, Active: true}, "it broke", 2},
		"deleted":            {rules.Standing{Gone: true}, "", 0},
	} {
		v, err := rules.Settle(dispatch.Live{}, sender.Health{}, dispatch.Result{Class: sender.ClassReset}, c.standing, always(decided), now)
		require.NoError(t, err)
		want := decided.Health
		want.Recent = sender.Recent(0).Add(sender.OutcomeFailed)
		require.Equal(t, want, v.Health, name)
		require.Equal(t, c.disable, v.Disable, name)
		require.Len(t, v.Notices, c.notices, name)
	}
}

func TestARedactedEventLeavesNoSnippet(t *testing.T) {
	r := dispatch.Result{Class: sender.ClassStatus, Snippet: []byte("it quotes the body")}
	v, err := rules.Settle(dispatch.Live{}, sender.Health{}, r, rules.Standing{}, always(dispatch.Decision{Status: sender.StatusDeadLettered}), now)
	require.NoError(t, err)
	require.Equal(t, r.Snippet, v.Snippet)
	decide := func(_ dispatch.Live, _ sender.Health, r dispatch.Result, _ time.Time) dispatch.Decision {
		require.Nil(t, r.Snippet)
		return dispatch.Decision{}
	}
	v, err = rules.Settle(dispatch.Live{}, sender.Health{}, r, rules.Standing{Redacted: true}, decide, now)
	require.NoError(t, err)
	require.Nil(t, v.Snippet)
	require.NotNil(t, r.Snippet, "the caller's is left alone")
}

func TestNoDecision(t *testing.T) {
	for name, decide := range map[string]func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision{
		"nobody decides": nil,
		"no status":      always(dispatch.Decision{}),
		"pending":        always(dispatch.Decision{Status: sender.StatusPending}),
		"held":           always(dispatch.Decision{Status: sender.StatusHeld}),
		"cancelled":      always(dispatch.Decision{Status: sender.StatusCancelled}),
		"no such lane":   always(dispatch.Decision{Status: sender.StatusDelivered, Health: sender.Health{Lane: sender.Lanes}}),
	} {
		_, err := rules.Settle(dispatch.Live{}, sender.Health{}, dispatch.Result{Class: sender.ClassReset}, rules.Standing{Active: true}, decide, now)
		require.ErrorIs(t, err, sender.ErrInvalid, name)
	}
	_, err := rules.Settle(dispatch.Live{}, sender.Health{}, dispatch.Result{Class: sender.ClassReset}, rules.Standing{Gone: true},
		always(dispatch.Decision{Health: sender.Health{Lane: sender.Lanes}}), now)
	require.ErrorIs(t, err, sender.ErrInvalid, "a lane is looked up before anything is stored, of a cancelled one too")
}

// A step settles hundreds of results.
func TestSettleAllocatesNothing(t *testing.T) {
	decide := always(dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		v, err := rules.Settle(dispatch.Live{Tries: 1}, sender.Health{}, dispatch.Result{Class: sender.ClassReset}, rules.Standing{Active: true}, decide, now)
		if err != nil || len(rules.Notices(&v.Decision, "a", "b")) > 0 {
			panic("it is settled, and nobody is told")
		}
	}))
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		cancelled, single, held bool
		attempts                int
		want                    sender.Status
	}{
		{want: sender.StatusPending},
		{attempts: 1, want: sender.StatusAwaitingRetry},
		{single: true, attempts: 1, want: sender.StatusAwaitingRetry},
		{held: true, want: sender.StatusHeld},
		{held: true, attempts: 1, want: sender.StatusHeld},
		{cancelled: true, want: sender.StatusCancelled},
		{cancelled: true, held: true, attempts: 1, want: sender.StatusCancelled},
		{cancelled: true, single: true, held: true, attempts: 2, want: sender.StatusDelivered},
	} {
		require.Equal(t, c.want, rules.Status(c.cancelled, c.single, c.held, c.attempts), "%+v", c)
	}
}

func TestLost(t *testing.T) {
	l := dispatch.Live{Key: dispatch.DeliveryKey{Event: 7, Subscription: 8}, Number: 3, Tries: 2}
	published, claimed := now.Add(-time.Minute), now.Add(-time.Second)
	require.Empty(t, gocmp.Diff(dispatch.Result{
		Key: l.Key, Token: 99, Number: 3, StartedAt: claimed, Published: published, Class: sender.ClassInterrupted,
		Error: "the process was lost; whether the request arrived is not known", Chance: 0.5,
	}, rules.Lost(l, 99, claimed, published, 0.5)))
}

// The outcome of an attempt is remembered, whatever is decided about the health.
func TestSettleRemembersOutcomes(t *testing.T) {
	before := sender.Health{Recent: sender.Recent(0).Add(sender.OutcomeFailed)}
	for name, c := range map[string]struct {
		result   dispatch.Result
		decision dispatch.Decision
		want     []sender.Outcome
	}{
		"success":         {dispatch.Result{Class: sender.ClassNone}, dispatch.Decision{Status: sender.StatusDelivered}, []sender.Outcome{sender.OutcomeFailed, sender.OutcomeSucceeded}},
		"failure":         {dispatch.Result{Class: sender.ClassStatus}, dispatch.Decision{Status: sender.StatusAwaitingRetry}, []sender.Outcome{sender.OutcomeFailed, sender.OutcomeFailed}},
		"dead letter":     {dispatch.Result{Class: sender.ClassStatus}, dispatch.Decision{Status: sender.StatusDeadLettered}, []sender.Outcome{sender.OutcomeFailed, sender.OutcomeDeadLettered}},
		"interrupted":     {dispatch.Result{Class: sender.ClassInterrupted}, dispatch.Decision{Status: sender.StatusAwaitingRetry}, []sender.Outcome{sender.OutcomeFailed}},
		"our own network": {dispatch.Result{Class: sender.ClassConnect}, dispatch.Decision{Status: sender.StatusAwaitingRetry, Uncounted: true}, []sender.Outcome{sender.OutcomeFailed}},

		"lost at the end":                   {dispatch.Result{Class: sender.ClassInterrupted}, dispatch.Decision{Status: sender.StatusDeadLettered}, []sender.Outcome{sender.OutcomeFailed}},
		"our own network, of a single one":  {dispatch.Result{Class: sender.ClassConnect, OwnNetwork: true}, dispatch.Decision{Status: sender.StatusDelivered}, []sender.Outcome{sender.OutcomeFailed}},
		"our own network, for all too long": {dispatch.Result{Class: sender.ClassConnect, OwnNetwork: true}, dispatch.Decision{Status: sender.StatusAwaitingRetry}, []sender.Outcome{sender.OutcomeFailed}},
		"our own proxy, for all too long":   {dispatch.Result{Class: sender.ClassConnect, ProxyFailed: true}, dispatch.Decision{Status: sender.StatusAwaitingRetry}, []sender.Outcome{sender.OutcomeFailed}},
		"our own proxy, to the very last":   {dispatch.Result{Class: sender.ClassConnect, ProxyFailed: true}, dispatch.Decision{Status: sender.StatusDeadLettered}, []sender.Outcome{sender.OutcomeFailed}},
	} {
		v, err := rules.Settle(dispatch.Live{}, before, c.result, rules.Standing{Active: true},
			func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision { return c.decision }, time.Now())
		require.NoError(t, err, name)
		require.Equal(t, c.want, v.Health.Recent.Outcomes(), name)
	}
}
