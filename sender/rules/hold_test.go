package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	active   = sender.SubscriptionActive
	paused   = sender.SubscriptionPaused
	disabled = sender.SubscriptionDisabled
	closing  = sender.SubscriptionClosing
)

func TestHold(t *testing.T) {
	for _, c := range []struct {
		present, to sender.SubscriptionStatus
		hold        bool
		refused     error
		says        string
	}{
		{present: active, to: paused, hold: true},
		{present: active, to: disabled, hold: true},
		{present: paused, to: paused},
		{present: paused, to: disabled, hold: true},
		{present: disabled, to: disabled},
		{present: disabled, to: paused, refused: sender.ErrStatus, says: "resume it first"},
		{present: closing, to: paused, refused: sender.ErrStatus, says: "it can only be deleted"},
		{present: closing, to: disabled, refused: sender.ErrStatus, says: "it can only be deleted"},
		{present: active, to: active, refused: sender.ErrInvalid, says: "paused or disabled"},
		{present: closing, to: closing, refused: sender.ErrInvalid, says: "paused or disabled"},
		{present: paused, to: "", refused: sender.ErrInvalid, says: "paused or disabled"},
	} {
		hold, err := rules.Hold("sub_1", c.present, c.to)
		require.Equal(t, c.hold, hold, "%s, to %s", c.present, c.to)
		require.ErrorIs(t, err, c.refused, "%s, to %s", c.present, c.to)
		if c.refused != nil {
			require.ErrorContains(t, err, c.says)
		}
	}
}

func TestResume(t *testing.T) {
	for _, c := range []struct {
		present sender.SubscriptionStatus
		resume  bool
		refused error
	}{
		{active, false, nil}, {paused, true, nil}, {disabled, true, nil}, {closing, false, sender.ErrStatus},
	} {
		resume, err := rules.Resume("sub_1", c.present)
		require.Equal(t, c.resume, resume, c.present)
		require.ErrorIs(t, err, c.refused, c.present)
	}
}

func TestRecovered(t *testing.T) {
	h := sender.Health{Lane: sender.LaneProbation, Streak: 9, FailingSince: now, LastSuccess: now, LastFailure: now, Warned: 90, WarnedAt: now}
	require.Equal(t, sender.Health{Lane: sender.LaneProbation, LastSuccess: now, LastFailure: now}, rules.Recovered(h))
}

func TestClose(t *testing.T) {
	for present, want := range map[sender.SubscriptionStatus]sender.SubscriptionStatus{active: closing, closing: closing, paused: "", disabled: ""} {
		require.Equal(t, want, rules.Close(present), present)
	}
}

func TestRedeliver(t *testing.T) {
	at := func(status sender.Status) sender.Delivery {
		return sender.Delivery{ID: "dlv_1", Subscription: "sub_1", Status: status, CreatedAt: now}
	}
	for _, status := range []sender.Status{
		sender.StatusPending, sender.StatusAwaitingRetry, sender.StatusHeld, sender.StatusDelivered, sender.StatusDeadLettered,
	} {
		d := at(status)
		require.NoError(t, rules.Redeliver(&d, false, now), "%s: it was published just then", status)
		require.NoError(t, rules.Redeliver(&d, false, time.Time{}), status)
		gone := rules.Redeliver(&d, true, time.Time{})
		require.ErrorIs(t, gone, sender.ErrCancelled, status)
		require.NotContains(t, gone.Error(), "cancelled", "it was not: its subscription was deleted")
		var old *sender.RetentionError
		require.ErrorAs(t, rules.Redeliver(&d, false, now.Add(time.Microsecond)), &old, status)
		require.Equal(t, sender.RetentionError{Published: now, NotBefore: now.Add(time.Microsecond)}, *old)
		d.Redacted = true
		require.ErrorIs(t, rules.Redeliver(&d, false, now), sender.ErrRedacted, status)
	}
	d := at(sender.StatusCancelled)
	require.ErrorIs(t, rules.Redeliver(&d, false, time.Time{}), sender.ErrCancelled)
}

func TestWithin(t *testing.T) {
	require.NoError(t, rules.Within(time.Time{}, now), "there is none")
	require.NoError(t, rules.Within(now, time.Time{}), "nothing is too old")
	require.NoError(t, rules.Within(now, now))
	require.ErrorIs(t, rules.Within(now.Add(-1), now), sender.ErrRetention)
}

func TestReplayNotBefore(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	notBefore := created.Add(-28 * 24 * time.Hour)
	require.Equal(t, notBefore, rules.ReplayNotBefore(notBefore, created, created))
	require.Equal(t, notBefore.Add(time.Hour), rules.ReplayNotBefore(notBefore, created, created.Add(time.Hour)))
	require.Equal(t, notBefore, rules.ReplayNotBefore(notBefore, created, created.Add(-time.Hour)), "the clock was set back")
	require.Zero(t, rules.ReplayNotBefore(time.Time{}, created, created.Add(time.Hour)), "of any age")
}
