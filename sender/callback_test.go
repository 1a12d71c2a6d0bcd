package sender_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

func TestCallback(t *testing.T) {
	b := bedtest.New(t)
	for _, id := range []string{"sub_a", "sub_b"} {
		_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: id})
		require.NoError(t, err)
	}
	callback := func(subscriber, url string) sender.Callback {
		c, err := b.Registry.Callback(t.Context(), subscriber, url)
		require.NoError(t, err)
		return c
	}
	one := callback("sub_a", "https://Example.com/one?token=1")
	require.Equal(t, sender.Callback{Subscriber: "sub_a", Subscription: one.Subscription, URL: "https://example.com/one?token=1"}, one)
	require.Equal(t, one.Subscription, callback("sub_a", "https://example.com/two").Subscription, "one origin, one subscription")
	seen := []string{one.Subscription}
	for _, c := range []sender.Callback{
		callback("sub_b", "https://example.com/one"), callback("sub_a", "http://example.com/"), callback("sub_a", "https://example.com:8443/"), callback("sub_a", "https://example.org/"),
	} {
		require.NotContains(t, seen, c.Subscription, c.URL)
		seen = append(seen, c.Subscription)
	}

	for _, c := range []struct {
		subscriber, url string
		is              error
	}{{"sub_a", "ftp://example.com/", sender.ErrInvalid}, {"sub_a", "https://u:p@example.com/", sender.ErrInvalid}, {"sub_x", "https://example.com/", sender.ErrNotFound}} {
		_, err := b.Registry.Callback(t.Context(), c.subscriber, c.url)
		require.ErrorIs(t, err, c.is, c.url)
	}

	s, err := b.Registry.Subscription(t.Context(), one.Subscription)
	require.NoError(t, err)
	require.True(t, s.Implicit)
	require.Equal(t, "https://example.com/", s.URL)
	other, description := "https://example.org/", "callbacks"
	for _, c := range []sender.SubscriptionChange{{URL: &other}, {EventTypes: []string{"*"}}} {
		_, err = b.Registry.Update(t.Context(), s.ID, c)
		require.ErrorIs(t, err, sender.ErrInvalid)
		require.ErrorContains(t, err, "is implicit")
	}
	s, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Description: &description})
	require.NoError(t, err)
	require.Empty(t, s.EventTypes, "it still asks for nothing")

	explicit, _ := b.Subscribe("sub_a", "https://example.com/")
	for _, limit := range []int{1, 2, 50} {
		list, err := b.Registry.Subscriptions(t.Context(), "sub_a", "", limit)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, explicit.ID, list[0].ID)
	}

	require.NoError(t, b.Registry.Unsubscribe(t.Context(), one.Subscription))
	require.NotEqual(t, one.Subscription, callback("sub_a", one.URL).Subscription, "a new one in the place of the deleted")
}

// Two URLs of one origin are both posted to, by one subscription.
func TestCallbackIsPostedToItsURL(t *testing.T) {
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	want := []string{"https://example.com/one?job=1", "https://example.com/two"}
	require.NoError(t, b.Store.InTx(t.Context(), func(tx *memory.Tx) error {
		for _, url := range want {
			c, err := b.Registry.CallbackTx(t.Context(), tx, "sub_a", url)
			require.NoError(t, err)
			_, err = b.Publisher.PublishTx(t.Context(), tx, c.Event(event()))
			require.NoError(t, err)
		}
		return nil
	}))
	var posted bedtest.Noted[string]
	d := b.Dispatcher(dispatch.Config{UnguardedTransport: bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
		posted.Add(r.URL.String())
		return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody}, nil
	})})
	for range 3 {
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
	}
	got := posted.List()
	slices.Sort(got)
	require.Equal(t, want, got)

	list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{})
	require.NoError(t, err)
	var urls []string
	for _, d := range list {
		require.Equal(t, sender.StatusDelivered, d.Status)
		urls = append(urls, d.URL)
	}
	slices.Sort(urls)
	require.Equal(t, want, urls)
}

func TestPublishRefusesURLs(t *testing.T) {
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_a", "https://example.com/")
	for _, url := range []string{"example.com", "ftp://example.com/", "https:///path", "https://u@example.com/", "https://example.com/#f", "https://example.com/a b"} {
		e := sender.Callback{Subscriber: "sub_a", Subscription: s.ID, URL: url}.Event(event())
		_, err := b.Publisher.Publish(t.Context(), e)
		require.ErrorIs(t, err, sender.ErrInvalidEvent, url)
		require.ErrorContains(t, err, "url is not one that can be posted to")
	}
	_, err := b.Publisher.Publish(t.Context(), sender.Callback{Subscriber: "sub_a", URL: "https://example.com/"}.Event(event()))
	require.ErrorContains(t, err, "without a subscription")

	e := sender.Callback{Subscriber: "sub_a", Subscription: s.ID, URL: "https://example.com/1"}.Event(event())
	e.IdempotencyKey = "k"
	_, err = b.Publisher.Publish(t.Context(), e)
	require.NoError(t, err)
	e.URL = "https://example.com/2"
	_, err = b.Publisher.Publish(t.Context(), e)
	require.ErrorIs(t, err, sender.ErrIdempotencyKey)
}
