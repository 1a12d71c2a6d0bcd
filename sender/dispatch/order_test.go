package dispatch_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// orderRun delivers events about some objects in turn to a slow endpoint.
func orderRun(t *testing.T, events, objects int, took time.Duration) (stats dispatch.Stats, lasted time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		for i := range events {
			b.PublishOn(sender.Object{Type: "thing", ID: strconv.Itoa(i % objects)}, "sub_a")
		}
		endpoint := sendertest.NewRoundTripper(sendertest.Func(func(http.ResponseWriter, *http.Request) { time.Sleep(took) }))
		began := time.Now()
		var err error
		stats, err = b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}).RunOnce(t.Context())
		require.NoError(t, err)
		lasted = time.Since(began)
	})
	return stats, lasted
}

// One object is served one delivery at a time, as the package's comment says, and several
// are side by side.
func TestOneObjectsRate(t *testing.T) {
	stats, one := orderRun(t, 200, 1, 50*time.Millisecond)
	require.Equal(t, 200, stats.Delivered)
	require.GreaterOrEqual(t, one, 200*50*time.Millisecond)
	require.Less(t, one, 201*50*time.Millisecond)
	stats, many := orderRun(t, 200, 20, 50*time.Millisecond)
	require.Equal(t, 200, stats.Delivered)
	require.Less(t, many, one/8)
	t.Logf("200 events at an endpoint that takes 50 ms: about one object %v, about twenty %v", one, many)
}

// Deliveries that wait behind one object at a slow endpoint go back before their leases
// end, and are attempted once.
func TestOneObjectAtASlowEndpoint(t *testing.T) {
	for _, took := range []time.Duration{900 * time.Millisecond, 5 * time.Second} {
		stats, lasted := orderRun(t, 150, 1, took)
		require.Equal(t, 150, stats.Delivered)
		require.Equal(t, 150, stats.Attempted, "none was lost with its lease")
		require.Less(t, lasted, 160*took)
	}
}

// A dead letter holds back later versions. Those that it has held back for longer than the reach
// are not sent once it holds them back no more, and their owner gets a notice. The same run sends the
// younger ones.
func TestHeldBackForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		sub, _ := b.Subscribe("sub_a", "http://endpoint/")
		set := func(s sender.Settings) {
			_, err := b.Registry.Update(t.Context(), sub.ID, sender.SubscriptionChange{Settings: &s})
			require.NoError(t, err)
		}
		var told []sender.Notice
		fails := true
		d := b.Dispatcher(dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(sendertest.Func(func(w http.ResponseWriter, _ *http.Request) {
				if fails {
					w.WriteHeader(http.StatusInternalServerError)
				}
			})),
			Policy: shortLife(t),
			Hooks:  dispatch.Hooks{Noticed: func(_ context.Context, n sender.Notice) { told = append(told, n) }},
		})
		run := func() dispatch.Stats {
			stats, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			return stats
		}
		set(sender.Settings{Order: sender.OrderObject, HoldDead: true})
		object := sender.Object{Type: "thing", ID: "a"}
		b.PublishOn(object, "sub_a")
		old := b.PublishOn(object, "sub_a")
		run()
		time.Sleep(time.Minute)
		require.Equal(t, 1, run().DeadLettered)
		require.Len(t, told, 1)

		time.Sleep(29 * 24 * time.Hour)
		young := b.PublishOn(object, "sub_a")
		set(sender.Settings{Order: sender.OrderObject})
		fails = false
		stats := run()
		require.Equal(t, []int{1, 1}, []int{stats.Attempted, stats.Delivered})
		list, _, err := b.Store.Deliveries(t.Context(), history.DeliveryQuery{})
		require.NoError(t, err)
		status := map[string]sender.Delivery{}
		for _, d := range list {
			status[d.Event.ID] = d
		}
		require.Equal(t, sender.StatusDelivered, status[young.ID].Status)
		require.Equal(t, sender.StatusDeadLettered, status[old.ID].Status)
		require.Zero(t, status[old.ID].AttemptCount)
		require.Len(t, told, 2)
		require.Equal(t, []any{sender.NoticeDeadLettered, "sub_a", sub.ID, status[old.ID].ID}, []any{told[1].Kind, told[1].Subscriber, told[1].Subscription, told[1].Delivery})
	})
}
