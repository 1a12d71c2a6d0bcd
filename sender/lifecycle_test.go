package sender_test

import (
	"bytes"
	"crypto/elliptic"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

func TestUpdate(t *testing.T) {
	b := bedtest.New(t)
	endpoint := sendertest.NewRoundTripper()
	d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
	s, _ := b.Subscribe("sub_a", "http://before/")
	b.Publish("sub_a") // its URL is the one that holds when it is sent

	url, description := "http://AFTER/hooks", "new"
	got, err := b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{
		URL: &url, Description: &description, Settings: &sender.Settings{Headers: map[string]string{"authorization": "Bearer x"}},
	})
	require.NoError(t, err)
	require.Equal(t, "http://after/hooks", got.URL)
	require.Equal(t, "new", got.Description)
	require.Equal(t, s.EventTypes, got.EventTypes, "what is not given stays")
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	posts := endpoint.Requests()
	require.Len(t, posts, 1)
	require.Equal(t, "Bearer x", posts[0].Header.Get("Authorization"))

	got, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{EventTypes: []string{"other.*"}})
	require.NoError(t, err)
	require.Contains(t, got.Settings.Headers, "Authorization")
	b.Publish("sub_a")
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Len(t, endpoint.Requests(), 1, "it asks for others now")

	_, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{EventTypes: []string{}})
	require.ErrorIs(t, err, sender.ErrInvalid, "who takes the last one out does not ask for all")
	require.ErrorContains(t, err, `event types: the list is empty: name one or more, or "*" for all`)
	kept, err := b.Registry.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"other.*"}, kept.EventTypes)
	got, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{EventTypes: []string{"*"}})
	require.NoError(t, err)
	require.Equal(t, []string{"*"}, got.EventTypes)

	got, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{EditSettings: func(s *sender.Settings) {
		s.Rate, s.Headers["x-more"] = 5, "y"
	}})
	require.NoError(t, err)
	require.InDelta(t, 5.0, got.Settings.Rate, 0)
	require.Contains(t, got.Settings.Headers, "Authorization", "what is not changed stays")
	b.Publish("sub_a")
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	posts = endpoint.Requests()
	require.Equal(t, []string{"Bearer x", "y"}, []string{posts[1].Header.Get("Authorization"), posts[1].Header.Get("X-More")})
	_, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &sender.Settings{}, EditSettings: func(*sender.Settings) {}})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.ErrorContains(t, err, "given and edited: do one of them")

	bad := "ftp://after/"
	_, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{URL: &bad, Settings: &sender.Settings{Rate: -1}})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.ErrorContains(t, err, "url")
	require.ErrorContains(t, err, "rate", "all that is wrong is said at once")
	kept, err = b.Registry.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, got.URL, kept.URL)
	_, err = b.Registry.Update(t.Context(), "wsub_none", sender.SubscriptionChange{})
	require.ErrorIs(t, err, sender.ErrNotFound)
}

func TestUpdateClientCertificate(t *testing.T) {
	b := bedtest.New(t)
	ca := bedtest.NewAuthority(t)
	s, _ := b.Subscribe("sub_a", "https://endpoint/")
	first, second := ca.Issue("a", bedtest.NewECDSAKey(t, elliptic.P256()), time.Hour), ca.Issue("b", bedtest.NewECDSAKey(t, elliptic.P256()), time.Hour)
	sealed := func(c sender.SubscriptionChange) []byte {
		got, err := b.Registry.Update(t.Context(), s.ID, c)
		require.NoError(t, err)
		return got.Settings.SealedCertificate
	}
	one := sealed(sender.SubscriptionChange{ClientCertificate: first})
	require.NotEmpty(t, one)
	require.Equal(t, one, sealed(sender.SubscriptionChange{Settings: &sender.Settings{Timeout: 2 * time.Second}}), "other settings leave it")
	asIs, err := b.Registry.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	asIs.Settings.Rate = 5
	require.Equal(t, one, sealed(sender.SubscriptionChange{Settings: &asIs.Settings}), "its own settings, of which one was changed")
	require.Equal(t, one, sealed(sender.SubscriptionChange{Settings: &asIs.Settings}), "again")
	require.NotEqual(t, one, sealed(sender.SubscriptionChange{ClientCertificate: second}))

	plain := "http://endpoint/"
	_, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{URL: &plain})
	require.ErrorIs(t, err, sender.ErrInvalid, "it would not be used")
	_, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &asIs.Settings})
	require.ErrorContains(t, err, "give ClientCertificate", "the certificate was replaced meanwhile")
	_, err = b.Registry.Update(t.Context(), s.ID, sender.SubscriptionChange{ClientCertificate: first, RemoveClientCertificate: true})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.Empty(t, sealed(sender.SubscriptionChange{RemoveClientCertificate: true}))

	// The certificate is sealed anew with everything else.
	two := sealed(sender.SubscriptionChange{ClientCertificate: first})
	keys, err := sender.NewKeys(sender.SealingKey{ID: "2", Key: bytes.Repeat([]byte("2"), 32)}, sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(b.Store, keys, &sender.RegistryConfig{Network: bedtest.Private})
	require.NoError(t, err)
	n, err := reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, n, "a secret and a certificate")
	got, err := reg.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	require.NotEqual(t, two, got.Settings.SealedCertificate)
	n, err = reg.Rewrap(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestTestEvent(t *testing.T) {
	b := bedtest.New(t)
	endpoint := sendertest.NewRoundTripper()
	d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
	s, secret := b.Subscribe("sub_a", "http://one/")
	b.Subscribe("sub_a", "http://other/")
	ref, err := b.Registry.SendTest(t.Context(), s.ID)
	require.NoError(t, err)
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	posts := endpoint.Requests()
	require.Len(t, posts, 1, "to it alone, whatever it asks for")
	require.NoError(t, posts[0].Verify(secret))
	require.Contains(t, string(posts[0].Body), `"type":"webhook.test"`)
	got, err := b.History.Delivery(t.Context(), ref.Delivery)
	require.NoError(t, err)
	require.Equal(t, []any{ref.ID, s.ID, sender.StatusDelivered}, []any{got.Event.ID, got.Subscription, got.Status})

	require.NoError(t, b.Registry.Pause(t.Context(), s.ID))
	_, err = b.Registry.SendTest(t.Context(), s.ID)
	require.ErrorIs(t, err, sender.ErrStatus)
	require.ErrorContains(t, err, "paused")
	_, err = b.Registry.SendTest(t.Context(), "wsub_none")
	require.ErrorIs(t, err, sender.ErrNotFound)
}

func TestHoldAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		stop := b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}))
		s, _ := b.Subscribe("sub_a", "http://one/")
		require.NoError(t, b.Registry.Disable(t.Context(), s.ID, "it is being moved"))
		got, err := b.Registry.Subscription(t.Context(), s.ID)
		require.NoError(t, err)
		require.Equal(t, []any{sender.SubscriptionDisabled, "it is being moved"}, []any{got.Status, got.DisabledReason})
		require.ErrorIs(t, b.Registry.Pause(t.Context(), s.ID), sender.ErrStatus)
		require.ErrorIs(t, b.Registry.Disable(t.Context(), s.ID, ""), sender.ErrInvalid)

		b.Publish("sub_a")
		time.Sleep(time.Hour)
		require.Equal(t, sender.StatusHeld, b.Delivery().Status)
		require.Empty(t, endpoint.Requests())
		err = b.Registry.Resume(t.Context(), s.ID, sender.Resume{None: true, Since: time.Now()})
		require.ErrorIs(t, err, sender.ErrInvalid)
		require.NoError(t, b.Registry.Resume(t.Context(), s.ID, sender.Resume{}))
		time.Sleep(time.Second)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
		require.NoError(t, stop())
	})
}

// A call that has found nothing says so, and does not pass for one that has done something.
func TestNoSuchSubscription(t *testing.T) {
	b := bedtest.New(t)
	for name, call := range map[string]func(id string) error{
		"Subscription": func(id string) error { _, err := b.Registry.Subscription(t.Context(), id); return err },
		"Pause":        func(id string) error { return b.Registry.Pause(t.Context(), id) },
		"Disable":      func(id string) error { return b.Registry.Disable(t.Context(), id, "spam") },
		"Resume":       func(id string) error { return b.Registry.Resume(t.Context(), id, sender.Resume{}) },
		"Close":        func(id string) error { return b.Registry.Close(t.Context(), id) },
		"Unsubscribe":  func(id string) error { return b.Registry.Unsubscribe(t.Context(), id) },
		"SendTest":     func(id string) error { _, err := b.Registry.SendTest(t.Context(), id); return err },
		"SendSecretTest": func(id string) error {
			_, err := b.Registry.SendSecretTest(t.Context(), id)
			return err
		},
		"DeleteSubscriber": func(id string) error { return b.Registry.DeleteSubscriber(t.Context(), id) },
	} {
		require.ErrorIs(t, call("wsub_none"), sender.ErrNotFound, name)
	}
}

// A customer leaves: the last event that it gets says so.
func TestDeleteSubscriber(t *testing.T) {
	b := bedtest.New(t)
	endpoint := sendertest.NewRoundTripper()
	d := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
	s, secret := b.Subscribe("sub_a", "http://one/")
	b.Publish("sub_a")
	require.NoError(t, b.Registry.DeleteSubscriber(t.Context(), "sub_a"))
	_, err := b.Publisher.Publish(t.Context(), sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}, Subscriber: "sub_a"})
	require.ErrorIs(t, err, sender.ErrNotFound)
	_, err = b.Publisher.Publish(t.Context(), sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: "1"}})
	require.NoError(t, err)
	_, err = d.RunOnce(t.Context())
	require.NoError(t, err)
	posts := endpoint.Requests()
	require.Len(t, posts, 1, "what was published before, and nothing after")
	require.NoError(t, posts[0].Verify(secret))
	_, err = d.RunOnce(t.Context()) // sweeps
	require.NoError(t, err)
	_, err = b.Registry.Subscription(t.Context(), s.ID)
	require.ErrorIs(t, err, sender.ErrNotFound)
	_, err = b.Registry.Keyring(t.Context(), "sub_a")
	require.True(t, errors.Is(err, sender.ErrNotFound), "its secrets are gone: %v", err)
}

// A dispatcher that always has something to do still gets round to sweeping.
func TestSweptWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		stop := b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper()}))
		s, _ := b.Subscribe("sub_a", "http://leaves/")
		b.Subscribe("sub_b", "http://stays/")
		require.NoError(t, b.Registry.Pause(t.Context(), s.ID))
		b.Publish("sub_a")
		time.Sleep(time.Second)
		require.NoError(t, b.Registry.Unsubscribe(t.Context(), s.ID))
		b.Store.Wake()
		for range 2500 { // it is never idle for longer than the dispatcher rests
			b.Publish("sub_b")
			time.Sleep(time.Millisecond)
		}
		counts, err := b.History.Counts(t.Context())
		require.NoError(t, err)
		require.Zero(t, counts.Held)
		left, err := b.Store.Sweep(t.Context(), dispatch.SweepParams{Limit: 100})
		require.NoError(t, err)
		require.Zero(t, left.Ended, "it was swept")
		require.NoError(t, stop())
	})
}
