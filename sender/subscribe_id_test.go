package sender_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

// countedChallenger counts its calls, and refuses with its error if it has one.
type countedChallenger struct {
	calls int
	err   error
}

func (c *countedChallenger) Challenge(context.Context, sender.Challenge) error {
	c.calls++
	return c.err
}

// A caller that gives the id can ask again, and gets what it has registered, as that is now.
// The id of anything else is refused, and nothing of it is changed or shown.
func TestSubscribeWithID(t *testing.T) {
	t.Parallel()
	b := bedtest.New(t)
	for _, id := range []string{"sub_a", "sub_b"} {
		_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: id})
		require.NoError(t, err)
	}
	challenger := &countedChallenger{}
	reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, Challenger: challenger})
	require.NoError(t, err)
	n := sender.NewSubscription{ID: "wsub_orders-1", Subscriber: "sub_a", URL: "http://first/", EventTypes: []string{"a"}}
	first, err := reg.Subscribe(t.Context(), n)
	require.NoError(t, err)
	require.Equal(t, n.ID, first.ID)

	description := "changed since"
	changed, err := reg.Update(t.Context(), first.ID, sender.SubscriptionChange{Description: &description})
	require.NoError(t, err)
	challenger.err = errors.New("it answers once")
	n.URL = "http://second/"
	again := func(n sender.NewSubscription) (s sender.Subscription, err error) {
		var inTx error
		txErr := b.Store.InTx(t.Context(), func(tx *memory.Tx) error {
			s, inTx = b.Registry.SubscribeTx(t.Context(), tx, n)
			_, err := b.Store.SubscriberTx(t.Context(), tx, "sub_b")
			return err // the caller's transaction goes on
		})
		require.NoError(t, txErr)
		challenger.err = nil
		same, err := reg.Subscribe(t.Context(), n)
		require.Equal(t, same, s)
		require.Equal(t, err == nil, inTx == nil)
		return s, err
	}
	got, err := reg.Subscribe(t.Context(), n)
	require.NoError(t, err)
	require.Equal(t, changed, got)
	require.Equal(t, 1, challenger.calls, "what is registered is challenged no more")
	got, err = again(n)
	require.NoError(t, err)
	require.Equal(t, changed, got)

	refused := func(n sender.NewSubscription, is error) {
		t.Helper()
		s, err := again(n)
		require.ErrorIs(t, err, is)
		require.Zero(t, s)
	}
	anothers := n
	anothers.Subscriber = "sub_b"
	refused(anothers, sender.ErrExists)
	kept, err := reg.Subscription(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, changed, kept)

	implicit, err := reg.Callback(t.Context(), "sub_a", "http://callback/x")
	require.NoError(t, err)
	own := n
	own.ID = implicit.Subscription
	refused(own, sender.ErrExists)
	for _, id := range []string{"wsub_", "new", "sub_1", "wsub_a.b", "wsub_a/b", "wsub_\x00", "wsub_" + string(make([]byte, 124))} {
		own.ID = id
		refused(own, sender.ErrInvalid)
		_, err := reg.Subscribe(t.Context(), own)
		require.Equal(t, "id", sender.FieldErrors(err)[0].Field, id)
	}

	require.NoError(t, reg.Unsubscribe(t.Context(), first.ID))
	refused(n, sender.ErrExists)
	closing := n
	closing.ID = "wsub_2"
	_, err = reg.Subscribe(t.Context(), closing)
	require.NoError(t, err)
	require.NoError(t, reg.Close(t.Context(), closing.ID))
	refused(closing, sender.ErrExists)
	require.NoError(t, reg.DeleteSubscriber(t.Context(), "sub_a"))
	refused(closing, sender.ErrNotFound)
}

// A subscription whose subscriber's secret cannot be opened has proved nothing, and is not
// registered.
func TestSubscribeWithoutASealingKey(t *testing.T) {
	t.Parallel()
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	challenger := &countedChallenger{}
	reg, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2"), &sender.RegistryConfig{Network: bedtest.Private, Challenger: challenger})
	require.NoError(t, err)
	_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/"})
	require.Error(t, err)
	require.Zero(t, challenger.calls)
	list, err := reg.Subscriptions(t.Context(), "", "", 0)
	require.NoError(t, err)
	require.Empty(t, list)
}

// unreadable is a store that does not read subscriptions.
type unreadable struct {
	sender.Store[*memory.Tx]
	err error
}

func (s unreadable) SubscriptionTx(context.Context, *memory.Tx, sender.SubscriptionKey) (sender.Subscription, error) {
	return sender.Subscription{}, s.err
}

func TestSubscribeAgainWithADatabaseThatFails(t *testing.T) {
	t.Parallel()
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_a", "http://endpoint/")
	away := errors.New("the database is away")
	reg, err := sender.NewRegistry(unreadable{b.Store, away}, b.Keys, &sender.RegistryConfig{Network: bedtest.Private})
	require.NoError(t, err)
	_, err = reg.Subscribe(t.Context(), sender.NewSubscription{ID: s.ID, Subscriber: "sub_a", URL: "http://endpoint/"})
	require.ErrorIs(t, err, away)
}
