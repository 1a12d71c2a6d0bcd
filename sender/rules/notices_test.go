package rules_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// Notices tell only of changes that have happened.
func TestNotices(t *testing.T) {
	all := []sender.NoticeKind{sender.NoticeDeadLettered, sender.NoticeFailing, sender.NoticeDisabled}
	for name, c := range map[string]struct {
		decision dispatch.Decision
		want     []sender.NoticeKind
	}{
		"all of it":           {dispatch.Decision{Status: sender.StatusDeadLettered, Disable: "it broke"}, all},
		"it goes on":          {dispatch.Decision{Status: sender.StatusAwaitingRetry, Disable: "it broke"}, all[1:]},
		"it was cancelled":    {dispatch.Decision{Status: sender.StatusCancelled, Disable: "it broke"}, all[1:]},
		"it was not disabled": {dispatch.Decision{Status: sender.StatusDeadLettered}, all[:2]},
		"neither":             {dispatch.Decision{Status: sender.StatusDelivered}, all[1:2]},
	} {
		given := make([]sender.Notice, len(all))
		for i, kind := range all {
			given[i] = sender.Notice{Kind: kind, Detail: "why"}
		}
		c.decision.Notices = given
		var got []sender.NoticeKind
		for _, n := range rules.Notices(&c.decision, "owner", "subscription") {
			require.Equal(t, []string{"owner", "subscription", "", "why"}, []string{n.Subscriber, n.Subscription, n.Delivery, n.Detail}, name)
			got = append(got, n.Kind)
		}
		require.Equal(t, c.want, got, name)
		require.Empty(t, given[0].Subscription, "what was decided is left as it is: a transaction that runs again may decide the same")
	}
	told := rules.Notices(&dispatch.Decision{Notices: []sender.Notice{{Kind: sender.NoticeFailing, Subscriber: sender.Operator}}}, "owner", "subscription")
	require.Equal(t, sender.Operator, told[0].Subscriber, "who is named is told")
}

func TestStamped(t *testing.T) {
	n := rules.Stamped(sender.Notice{Detail: "why"}, now)
	require.Regexp(t, "^ntc_[0-9a-v]{26}$", n.ID)
	require.Equal(t, now, n.CreatedAt)
	require.Equal(t, "why", n.Detail)
	require.NotEqual(t, n.ID, rules.Stamped(sender.Notice{}, now).ID)
	require.Empty(t, cmp.Diff(n, rules.Stamped(n, now.Add(time.Hour))), "what it has, it keeps")
}

func TestAnnounced(t *testing.T) {
	_, ok := rules.Announced(nil, sender.Notice{})
	require.False(t, ok)
	for _, made := range []bool{false, true} {
		d, ok := rules.Announced(func(n sender.Notice) (sender.Draft, bool) { return sender.Draft{ID: n.ID}, made }, sender.Notice{ID: "a"})
		require.Equal(t, made, ok)
		require.True(t, d.Notice)
		require.Equal(t, "a", d.ID)
	}
}
