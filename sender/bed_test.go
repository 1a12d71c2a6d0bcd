package sender_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

// bed is a sending service on the memory store, for tests of what does not
// depend on the store.
type bed struct {
	t       *testing.T
	store   *memory.Store
	keys    *sender.Keys
	reg     *sender.Registry[*memory.Tx]
	pub     *sender.Publisher[*memory.Tx]
	history *sender.History
	objects atomic.Int64
}

var private = sender.Network{AllowPrivateNetworks: true}

func newBed(t *testing.T) *bed {
	t.Helper()
	store, err := memory.New(nil)
	require.NoError(t, err)
	return newBedOn(t, store)
}

func newBedOn(t *testing.T, store *memory.Store) *bed {
	t.Helper()
	b := &bed{t: t, store: store, keys: newKeys(t, "1")}
	var err error
	b.reg, err = sender.NewRegistry(store, b.keys, &sender.RegistryConfig{Network: private})
	require.NoError(t, err)
	b.pub, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	b.history, err = sender.NewHistory(store, nil)
	require.NoError(t, err)
	return b
}

func newKeys(t *testing.T, id string) *sender.Keys {
	t.Helper()
	keys, err := sender.NewKeys(sender.SealingKey{ID: id, Key: bytes.Repeat([]byte(id), 32)})
	require.NoError(t, err)
	return keys
}

// subscribe makes a subscriber of that id, if there is none, and a subscription.
func (b *bed) subscribe(subscriber, url string) (sender.Subscription, signing.Secret) {
	b.t.Helper()
	_, secret, err := b.reg.CreateSubscriber(b.t.Context(), sender.NewSubscriber{ID: subscriber})
	if err != nil {
		require.ErrorIs(b.t, err, sender.ErrExists)
	}
	s, err := b.reg.Subscribe(b.t.Context(), sender.NewSubscription{
		Subscriber: subscriber, URL: url, EventTypes: []string{"thing.*"}, // no notices
	})
	require.NoError(b.t, err)
	return s, secret
}

// publish publishes an event about an object of its own.
func (b *bed) publish(subscriber string) sender.Ref {
	b.t.Helper()
	return b.publishOn(sender.Object{Type: "thing", ID: strconv.FormatInt(b.objects.Add(1), 10)}, subscriber)
}

func (b *bed) publishOn(object sender.Object, subscriber string) sender.Ref {
	b.t.Helper()
	ref, err := b.pub.Publish(b.t.Context(), sender.Event{Type: "thing.changed", Object: object, Subscriber: subscriber})
	require.NoError(b.t, err)
	return ref
}

func (b *bed) dispatcher(cfg sender.DispatcherConfig) *sender.Dispatcher {
	b.t.Helper()
	return b.dispatcherOn(b.store, cfg)
}

func (b *bed) dispatcherOn(store sender.DispatchStore, cfg sender.DispatcherConfig) *sender.Dispatcher {
	b.t.Helper()
	cfg.Network = private
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	d, err := sender.NewDispatcher(store, b.keys, &cfg)
	require.NoError(b.t, err)
	return d
}

// start runs a dispatcher and returns what stops it, and waits until it has.
func (b *bed) start(d *sender.Dispatcher) (stop func() error) {
	ctx, cancel := context.WithCancel(b.t.Context())
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
	b.t.Cleanup(func() { _ = stop() })
	return stop
}

// delivery returns the one delivery that there is.
func (b *bed) delivery() sender.Delivery {
	b.t.Helper()
	list, next, err := b.history.Deliveries(b.t.Context(), sender.DeliveryQuery{})
	require.NoError(b.t, err)
	require.Empty(b.t, next)
	require.Len(b.t, list, 1)
	d, err := b.history.Delivery(b.t.Context(), list[0].ID)
	require.NoError(b.t, err)
	return d
}

// lockedLog is what was logged, to be read while others write.
type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// noted keeps what a hook is given, to be read while others add to it.
type noted[T any] struct {
	mu  sync.Mutex
	all []T
}

func (n *noted[T]) add(x T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x)
}

func (n *noted[T]) list() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// transportFunc is an http.RoundTripper.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// settled is a store whose claims carry the given settings, or else what the
// registry has stored.
type settled struct {
	*memory.Store
	t     *testing.T
	given *sender.Settings
}

func (s settled) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	claims, err := s.Store.RecordAndClaim(ctx, b)
	for _, c := range claims.Claimed {
		if s.given != nil {
			c.Target.Settings = s.given
			continue
		}
		var sub sender.Subscription
		require.NoError(s.t, s.InTx(ctx, func(tx *memory.Tx) (err error) {
			sub, err = s.SubscriptionTx(ctx, tx, c.Target.Subscription)
			return err
		}))
		c.Target.Settings = &sub.Settings
	}
	return claims, err
}

// challengeOf is what a registry hands to its challenger.
func (b *bed) challengeOf(subscriber, rawURL string, s sender.Settings) sender.Challenge {
	b.t.Helper()
	keyring, err := b.reg.Keyring(b.t.Context(), subscriber)
	require.NoError(b.t, err)
	return sender.Challenge{Subscriber: subscriber, Subscription: "wsub_1", URL: rawURL, Settings: s, Keyring: keyring}
}

// settledDispatcher returns a dispatcher whose claims carry settings, given ones or
// those that are stored.
func (b *bed) settledDispatcher(given *sender.Settings, cfg sender.DispatcherConfig) *sender.Dispatcher {
	b.t.Helper()
	return b.dispatcherOn(settled{b.store, b.t, given}, cfg)
}

func (b *bed) subscribeWith(subscriber, url string, c *sender.ClientCertificate) sender.Subscription {
	b.t.Helper()
	_, _, err := b.reg.CreateSubscriber(b.t.Context(), sender.NewSubscriber{ID: subscriber})
	require.NoError(b.t, err)
	s, err := b.reg.Subscribe(b.t.Context(), sender.NewSubscription{Subscriber: subscriber, URL: url, ClientCertificate: c})
	require.NoError(b.t, err)
	return s
}

// keysOf seal with the first id and open what the others have sealed.
func keysOf(t *testing.T, current string, older ...string) *sender.Keys {
	t.Helper()
	key := func(id string) sender.SealingKey {
		return sender.SealingKey{ID: id, Key: bytes.Repeat([]byte(id), 32)}
	}
	var keys []sender.SealingKey
	for _, id := range older {
		keys = append(keys, key(id))
	}
	k, err := sender.NewKeys(key(current), keys...)
	require.NoError(t, err)
	return k
}

var errAway = errors.New("the database is away")
