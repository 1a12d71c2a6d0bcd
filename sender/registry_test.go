package sender_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

func TestSubscribe(t *testing.T) {
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	strict, err := sender.NewRegistry(b.Store, b.Keys, nil)
	require.NoError(t, err)

	s, err := strict.Subscribe(t.Context(), sender.NewSubscription{
		Subscriber: "sub_a", URL: "HTTPS://Example.COM/hooks?a=b", EventTypes: []string{"b.*", "a", "a"}, Description: "d",
	})
	require.NoError(t, err)
	require.Equal(t, "https://example.com/hooks?a=b", s.URL)
	require.Equal(t, []string{"a", "b.*"}, s.EventTypes)
	require.Equal(t, sender.SubscriptionActive, s.Status)
	got, err := strict.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, s, got)

	for _, c := range []struct {
		name string
		n    sender.NewSubscription
		is   error
		says string
	}{
		{"http", sender.NewSubscription{Subscriber: "sub_a", URL: "http://example.com/"}, sender.ErrInvalid, "https"},
		{"loopback", sender.NewSubscription{Subscriber: "sub_a", URL: "https://127.0.0.1/"}, sender.ErrInvalid, "url"},
		{"no url", sender.NewSubscription{Subscriber: "sub_a"}, sender.ErrInvalid, "url"},
		{"a type that is none", sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", EventTypes: []string{"a.*.b"}}, sender.ErrInvalid, `event type "a.*.b"`},
		{"an empty type", sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", EventTypes: []string{""}}, sender.ErrInvalid, `event type ""`},
		{"a list of no types", sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", EventTypes: []string{}}, sender.ErrInvalid, `event types: the list is empty: name one or more, or "*" for all`},
		{"too many types", sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", EventTypes: make([]string, 101)}, sender.ErrInvalid, "at most 100"},
		{"a long description", sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", Description: strings.Repeat("d", 1025)}, sender.ErrInvalid, "description"},
		{"an unknown subscriber", sender.NewSubscription{Subscriber: "sub_x", URL: "https://example.com/"}, sender.ErrNotFound, "sub_x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := strict.Subscribe(t.Context(), c.n)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
		})
	}
	list, err := strict.Subscriptions(t.Context(), "", "", 0)
	require.NoError(t, err)
	require.Equal(t, []sender.Subscription{s}, list, "what was refused left nothing")
	_, err = strict.Subscriptions(t.Context(), "", "", 201)
	require.ErrorIs(t, err, sender.ErrInvalid)

	require.NoError(t, strict.Unsubscribe(t.Context(), s.ID))
	_, err = strict.Subscription(t.Context(), s.ID)
	require.ErrorIs(t, err, sender.ErrNotFound)
}

// countedLists counts how often subscriptions are listed.
type countedLists struct {
	sender.Store[*memory.Tx]
	calls int
}

func (s *countedLists) SubscriptionsTx(ctx context.Context, tx *memory.Tx, subscriber, after string, limit int) ([]sender.Subscription, error) {
	s.calls++
	return s.Store.SubscriptionsTx(ctx, tx, subscriber, after, limit)
}

// A small page costs no statement for each implicit subscription.
func TestSubscriptionsPassOverImplicitOnes(t *testing.T) {
	b := bedtest.New(t)
	first, _ := b.Subscribe("sub_a", "http://first/")
	for i := range 100 {
		_, err := b.Registry.Callback(t.Context(), "sub_a", fmt.Sprintf("http://origin-%d/", i))
		require.NoError(t, err)
	}
	second, _ := b.Subscribe("sub_a", "http://second/")
	store := &countedLists{Store: b.Store}
	reg, err := sender.NewRegistry(store, b.Keys, nil)
	require.NoError(t, err)
	list, err := reg.Subscriptions(t.Context(), "sub_a", first.ID, 1)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, second.ID, list[0].ID)
	require.Equal(t, 7, store.calls, "1, 2, 4 and so on")
}

// The services that hand out credentials stay closed even where subscribers are inside our
// own network.
func TestSubscribeToMetadataService(t *testing.T) {
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	n := sender.NewSubscription{Subscriber: "sub_a", URL: "http://169.254.169.254/latest/meta-data/"}
	_, err = b.Registry.Subscribe(t.Context(), n)
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.ErrorContains(t, err, "no metadata service")
	named := bedtest.Private
	named.Allow = []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32")}
	reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: named})
	require.NoError(t, err)
	_, err = reg.Subscribe(t.Context(), n)
	require.NoError(t, err)
}

func TestCreateSubscriber(t *testing.T) {
	b := bedtest.New(t)
	own := signing.GenerateSecret()
	s, secret, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: sender.Operator, Secret: own})
	require.NoError(t, err)
	require.Equal(t, own, secret)
	got, err := b.Registry.Subscriber(t.Context(), sender.Operator)
	require.NoError(t, err)
	require.Equal(t, s, got)
	_, _, err = b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: sender.Operator})
	require.ErrorIs(t, err, sender.ErrExists)
	_, _, err = b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "a b"})
	require.ErrorIs(t, err, sender.ErrInvalid)
	refused, _ := errors.AsType[*sender.FieldError](err)
	require.NotNil(t, refused)
	require.Equal(t, "id", refused.Field)
	require.ErrorContains(t, err, "sender: invalid subscriber: id has the character ' ' at offset 1")
	public, err := signing.ParseSecret("whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
	require.NoError(t, err)
	_, _, err = b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{Secret: public})
	require.ErrorIs(t, err, sender.ErrInvalid, "a public key signs nothing")
	for _, text := range []string{"sixteen-bytes-ok", "a secret with spaces inside of it", "whsec_which is not base64 at all"} {
		own, err := signing.ParseTextSecret(text)
		require.NoError(t, err)
		_, _, created := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_text", Secret: own})
		_, _, rotated := b.Registry.RotateSecret(t.Context(), sender.Operator, &sender.Rotation{Secret: own})
		_, revoked := b.Registry.RevokeSecret(t.Context(), sender.Operator, own)
		for _, err := range []error{created, rotated, revoked} {
			require.ErrorIs(t, err, sender.ErrInvalid, "it could be sealed, and never be opened")
			require.ErrorContains(t, err, "it must be one that signing.ParseSecret reads")
			require.NotContains(t, err.Error(), text)
		}
	}
	made, generated, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)
	require.Regexp(t, "^sub_[0-9a-v]{26}$", made.ID)
	require.NotEqual(t, own, generated)

	keyring, err := b.Registry.Keyring(t.Context(), sender.Operator)
	require.NoError(t, err)
	require.NotNil(t, keyring)
	other, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2"), nil)
	require.NoError(t, err)
	_, err = other.Keyring(t.Context(), sender.Operator)
	require.ErrorIs(t, err, sender.ErrSealed)
	require.ErrorContains(t, err, `the key "1" (fingerprint 6819fe1d), which is not among those given`)
}

func TestNewPublisherAndOthersRefuse(t *testing.T) {
	b := bedtest.New(t)
	_, err := sender.NewPublisher(b.Store, &sender.PublisherConfig{MaxBodyBytes: -1})
	require.ErrorContains(t, err, "MaxBodyBytes is -1")
	_, err = sender.NewRegistry(b.Store, nil, nil)
	require.ErrorContains(t, err, "needs keys")
	_, err = history.New(nil, nil)
	require.ErrorContains(t, err, "needs a store")
	for _, q := range []history.DeliveryQuery{{Status: "lost"}, {Limit: 201}, {Limit: -1}, {Cursor: "?"}} {
		_, _, err = b.History.Deliveries(t.Context(), q)
		require.ErrorIs(t, err, sender.ErrInvalid, "%+v", q)
	}
	_, err = b.History.Delivery(t.Context(), "dlv_nothing")
	require.ErrorIs(t, err, sender.ErrNotFound)
	require.ErrorIs(t, b.History.Redeliver(t.Context(), "dlv_nothing"), sender.ErrNotFound)
}
