package bedtest

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

// Private is a network in which endpoints on loopback may be called.
var Private = sender.Network{AllowPrivateNetworks: true}

// Bed is a sending service on the memory store, for tests of what does not depend on the
// store. Its network is Private. Its methods fail the test if they fail.
type Bed struct {
	T         *testing.T
	Store     *memory.Store
	Keys      *sender.Keys
	Registry  *sender.Registry[*memory.Tx]
	Publisher *sender.Publisher[*memory.Tx]
	History   *history.History

	objects atomic.Int64 // how many were published about
}

// New returns a Bed on a store of its own.
func New(t *testing.T) *Bed {
	t.Helper()
	store, err := memory.New(nil)
	require.NoError(t, err)
	return NewOn(t, store)
}

// NewOn returns a Bed on a store.
func NewOn(t *testing.T, store *memory.Store) *Bed {
	t.Helper()
	b := &Bed{T: t, Store: store, Keys: NewKeys(t, "1")}
	var err error
	b.Registry, err = sender.NewRegistry(store, b.Keys, &sender.RegistryConfig{Network: Private})
	require.NoError(t, err)
	b.Publisher, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	b.History, err = history.New(store, nil)
	require.NoError(t, err)
	return b
}

// Subscribe makes a subscription to all that Publish publishes, and its subscriber if there
// is none of that id. The secret is that of a subscriber that was made.
func (b *Bed) Subscribe(subscriber, url string) (sender.Subscription, signing.Secret) {
	b.T.Helper()
	_, secret, err := b.Registry.CreateSubscriber(b.T.Context(), sender.NewSubscriber{ID: subscriber})
	if err != nil {
		require.ErrorIs(b.T, err, sender.ErrExists)
	}
	s, err := b.Registry.Subscribe(b.T.Context(), sender.NewSubscription{
		Subscriber: subscriber, URL: url, EventTypes: []string{"thing.*"}, // no notices
	})
	require.NoError(b.T, err)
	return s, secret
}

// Publish publishes an event about an object of its own.
func (b *Bed) Publish(subscriber string) sender.Ref {
	b.T.Helper()
	return b.PublishOn(sender.Object{Type: "thing", ID: strconv.FormatInt(b.objects.Add(1), 10)}, subscriber)
}

// PublishOn publishes an event about an object.
func (b *Bed) PublishOn(object sender.Object, subscriber string) sender.Ref {
	b.T.Helper()
	ref, err := b.Publisher.Publish(b.T.Context(), sender.Event{Type: "thing.changed", Object: object, Subscriber: subscriber})
	require.NoError(b.T, err)
	return ref
}

// Dispatcher returns a dispatcher on the Bed's store. Without a Logger it is quiet.
func (b *Bed) Dispatcher(cfg dispatch.Config) *dispatch.Dispatcher {
	b.T.Helper()
	return b.DispatcherOn(b.Store, cfg)
}

// DispatcherOn is Dispatcher on another store, which wraps that of the Bed.
func (b *Bed) DispatcherOn(store dispatch.Store, cfg dispatch.Config) *dispatch.Dispatcher {
	b.T.Helper()
	cfg.Network = Private
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	d, err := dispatch.New(store, b.Keys, &cfg)
	require.NoError(b.T, err)
	return d
}

// Start runs a dispatcher until the test ends, or stop is called, which returns what Run
// did.
func (b *Bed) Start(d *dispatch.Dispatcher) (stop func() error) {
	ctx, cancel := context.WithCancel(b.T.Context())
	ran := make(chan error, 1)
	go func() { ran <- d.Run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ran
	}
	b.T.Cleanup(func() { _ = stop() })
	return stop
}

// Delivery returns the one delivery that there is.
func (b *Bed) Delivery() sender.Delivery {
	b.T.Helper()
	list, next, err := b.History.Deliveries(b.T.Context(), history.DeliveryQuery{})
	require.NoError(b.T, err)
	require.Empty(b.T, next)
	require.Len(b.T, list, 1)
	d, err := b.History.Delivery(b.T.Context(), list[0].ID)
	require.NoError(b.T, err)
	return d
}
