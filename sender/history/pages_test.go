package history_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
)

// Pages of any size, one behind the other, list each delivery that a filter selects once,
// newest first, and no other deliveries.
func TestPropertyPagesListEachOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		store, err := memory.New(nil)
		require.NoError(t, err)
		keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, 32)})
		require.NoError(t, err)
		reg, err := sender.NewRegistry(store, keys, nil)
		require.NoError(t, err)
		pub, err := sender.NewPublisher(store, nil)
		require.NoError(t, err)
		past, err := history.New(store, nil)
		require.NoError(t, err)
		_, _, err = reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a"})
		require.NoError(t, err)
		patterns := [][]string{{"*"}, {"a.*"}, {"b"}, {"a.b", "c.*"}}
		var subscriptions []sender.Subscription
		for range rapid.IntRange(1, 4).Draw(t, "subscriptions") {
			sub, err := reg.Subscribe(ctx, sender.NewSubscription{
				Subscriber: "sub_a", URL: "https://example.com/", EventTypes: rapid.SampledFrom(patterns).Draw(t, "patterns"),
			})
			require.NoError(t, err)
			subscriptions = append(subscriptions, sub)
		}
		asked := rapid.SampledFrom([]string{"", "*", "a.*", "b", "c.d"}).Draw(t, "asked")
		query := history.DeliveryQuery{EventType: asked}
		var want []string
		place := map[string]int{} // of the events
		for range rapid.IntRange(0, 25).Draw(t, "events") {
			eventType := rapid.SampledFrom([]string{"a.b", "a.c", "b", "c.d"}).Draw(t, "type")
			ref, err := pub.Publish(ctx, sender.Event{Type: eventType, Object: sender.Object{Type: "t", ID: "1"}})
			require.NoError(t, err)
			place[ref.ID] = len(place)
			for _, sub := range subscriptions {
				if sender.Matches(sub, eventType, "", "", "") && query.MatchesEvent(sender.EventInfo{Type: eventType}) {
					want = append(want, ref.ID+" "+sub.ID)
				}
			}
		}
		for {
			x, _, err := store.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
			require.NoError(t, err)
			if x == (dispatch.Expanded{}) {
				break
			}
		}
		var got []string
		last := len(place)
		for calls := 0; ; calls++ {
			require.Less(t, calls, 500, "the pages have no end")
			query.Limit = rapid.IntRange(1, 7).Draw(t, "limit")
			page, next, err := past.Deliveries(ctx, query)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), query.Limit)
			for _, d := range page {
				got = append(got, d.Event.ID+" "+d.Subscription)
				require.LessOrEqual(t, place[d.Event.ID], last, "the newest come first")
				last = place[d.Event.ID]
			}
			if next == "" {
				break
			}
			query.Cursor = next
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
	})
}
