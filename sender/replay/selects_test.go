package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

var propertyTime = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// A replay selects deliveries that pass each of its conditions, one by one.
func TestPropertyReplaySelection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"", "x", "y"})
		at := rapid.Custom(func(t *rapid.T) time.Time {
			n := rapid.IntRange(0, 4).Draw(t, "n")
			if n == 0 {
				return time.Time{}
			}
			return propertyTime.Add(time.Duration(n) * time.Hour)
		})
		class := rapid.SampledFrom([]sender.Class{sender.ClassNone, sender.ClassDNS, sender.ClassTimeout})
		pattern := rapid.SampledFrom([]string{"", "*", "a", "a.*", "a.b.*", "ab", "a.b"})
		f := replay.Filter{
			Subscription: id.Draw(t, "subscription"), Subscriber: id.Draw(t, "subscriber"), EventType: pattern.Draw(t, "pattern"),
			Since: at.Draw(t, "since"), Until: at.Draw(t, "until"), ErrorClass: class.Draw(t, "class"),
		}
		c := replay.Candidate{
			Subscription: id.Draw(t, "its subscription"), Subscriber: id.Draw(t, "its subscriber"), EventType: someTypes.Draw(t, "its type"),
			Published: propertyTime.Add(time.Duration(rapid.IntRange(1, 4).Draw(t, "published")) * time.Hour), ErrorClass: class.Draw(t, "its class"),
		}
		want := true
		want = want && (f.Subscription == "" || f.Subscription == c.Subscription)
		want = want && (f.Subscriber == "" || f.Subscriber == c.Subscriber)
		want = want && (f.EventType == "" || f.EventType == "*" || f.EventType == c.EventType ||
			strings.HasSuffix(f.EventType, ".*") && strings.HasPrefix(c.EventType, strings.TrimSuffix(f.EventType, "*")))
		want = want && (f.Since.IsZero() || f.Since.Compare(c.Published) <= 0)
		want = want && (f.Until.IsZero() || f.Until.Compare(c.Published) > 0)
		want = want && (f.ErrorClass == sender.ClassNone || f.ErrorClass == c.ErrorClass)
		require.Equal(t, want, f.Selects(c))
	})
}

// A replay that has ended stays as it ended. A request for the present status changes
// nothing. Every other request is a change.
func TestPropertyStatusBecomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		status := rapid.SampledFrom([]replay.Status{replay.Running, replay.Paused, replay.Cancelled, replay.Finished})
		is := replay.Running
		for range 10 {
			to := status.Draw(t, "to")
			ended := is == replay.Cancelled || is == replay.Finished
			changes, err := is.Become(to)
			if ended && to != is {
				require.ErrorIs(t, err, sender.ErrStatus)
				require.False(t, changes)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, to != is, changes)
			is = to
		}
	})
}

var someTypes = rapid.SampledFrom([]string{"a", "b", "a.b", "a.c", "a.b.c", "ab", "ab.c", "a.b.c.d"})

// Groups select what belongs to one of them, and meets the other conditions.
func TestSelectsGroups(t *testing.T) {
	c := replay.Candidate{Subscription: "a", Subscriber: "s", ErrorClass: sender.ClassStatus, StatusCode: 500}
	is, other := replay.Group{"a", sender.ClassStatus, 500}, replay.Group{"b", sender.ClassStatus, 500}
	for _, x := range []struct {
		f    replay.Filter
		want bool
	}{
		{replay.Filter{Groups: []replay.Group{other, is}}, true}, {replay.Filter{Groups: []replay.Group{other}}, false}, {replay.Filter{Groups: []replay.Group{is}, Subscriber: "t"}, false},
		{replay.Filter{Groups: []replay.Group{{"a", sender.ClassStatus, 503}, {"a", sender.ClassDNS, 500}}}, false}, {replay.Filter{StatusCode: 500}, true}, {replay.Filter{StatusCode: 503}, false},
	} {
		require.Equal(t, x.want, x.f.Selects(c), "%+v", x.f)
	}
	f := replay.Filter{Groups: []replay.Group{is, other, is}}
	require.Equal(t, []string{"a", "b"}, f.Names())
	f.Subscription = "c"
	require.Equal(t, []string{"c"}, f.Names())
}
