package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// A subscription's headers are for its own origin.
func TestEventsOwnURLIsOfTheSubscriptionsOrigin(t *testing.T) {
	for name, drive := range map[string]func(t *testing.T, b *bedtest.Bed){
		"RunOnce": func(t *testing.T, b *bedtest.Bed) {
			_, err := b.Dispatcher(dispatch.Config{}).RunOnce(t.Context())
			require.NoError(t, err)
		},
		"Loop": func(t *testing.T, b *bedtest.Bed) {
			l, err := dispatch.NewLoop(b.Store, b.Keys, &dispatch.Config{Network: bedtest.Private}, time.Now)
			require.NoError(t, err)
			l.Step(t.Context())
			require.Nil(t, l.Begin())
			l.Stop()
			for !l.Stopped() {
				l.Step(t.Context())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			own, other := sendertest.NewEndpoint(t, sendertest.Status(204)), sendertest.NewEndpoint(t, sendertest.Status(204))
			sub, _ := b.Subscribe("sub_a", own.URL())
			_, err := b.Registry.Update(t.Context(), sub.ID, sender.SubscriptionChange{Settings: &sender.Settings{Headers: map[string]string{"Authorization": "the-owners-key"}}})
			require.NoError(t, err)
			_, err = b.Publisher.Publish(t.Context(), sender.Event{
				Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}, Subscriber: "sub_a", Subscription: sub.ID, URL: other.URL() + "/hook",
			})
			require.NoError(t, err)

			drive(t, b)
			require.Empty(t, other.Requests())
			require.Empty(t, own.Requests())
			d := b.Delivery()
			require.Equal(t, sender.StatusAwaitingRetry, d.Status)
			require.Len(t, d.Attempts, 1)
			require.Equal(t, sender.ClassBlocked, d.Attempts[0].Class)
			require.Contains(t, d.Attempts[0].Error, "not of the origin")
		})
	}

	t.Run("the same one", func(t *testing.T) {
		b := bedtest.New(t)
		own := sendertest.NewEndpoint(t, sendertest.Status(204))
		sub, _ := b.Subscribe("sub_a", own.URL())
		_, err := b.Publisher.Publish(t.Context(), sender.Event{
			Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}, Subscriber: "sub_a", Subscription: sub.ID, URL: strings.Replace(own.URL(), "http:", "HTTP:", 1) + "/else?a=b",
		})
		require.NoError(t, err)
		_, err = b.Dispatcher(dispatch.Config{}).RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
	})
}
