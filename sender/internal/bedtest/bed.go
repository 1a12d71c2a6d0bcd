package bedtest

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
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/signing"
)

// bed is a sending service on the memory store, for tests of what does not
// depend on the store.
type Bed struct {
	T       *testing.T
	Store   *memory.Store
	Keys    *sender.Keys
	Reg     *sender.Registry[*memory.Tx]
	Pub     *sender.Publisher[*memory.Tx]
	History *history.History
	Objects atomic.Int64
}

var Private = sender.Network{AllowPrivateNetworks: true}

func New(t *testing.T) *Bed {
	t.Helper()
	store, err := memory.New(nil)
	require.NoError(t, err)
	return NewOn(t, store)
}

func NewOn(t *testing.T, store *memory.Store) *Bed {
	t.Helper()
	b := &Bed{T: t, Store: store, Keys: NewKeys(t, "1")}
	var err error
	b.Reg, err = sender.NewRegistry(store, b.Keys, &sender.RegistryConfig{Network: Private})
	require.NoError(t, err)
	b.Pub, err = sender.NewPublisher(store, nil)
	require.NoError(t, err)
	b.History, err = history.New(store, nil)
	require.NoError(t, err)
	return b
}

func NewKeys(t *testing.T, id string) *sender.Keys {
	t.Helper()
	keys, err := sender.NewKeys(sender.SealingKey{ID: id, Key: bytes.Repeat([]byte(id), 32)})
	require.NoError(t, err)
	return keys
}

// subscribe makes a subscriber of that id, if there is none, and a subscription.
func (b *Bed) Subscribe(subscriber, url string) (sender.Subscription, signing.Secret) {
	b.T.Helper()
	_, secret, err := b.Reg.CreateSubscriber(b.T.Context(), sender.NewSubscriber{ID: subscriber})
	if err != nil {
		require.ErrorIs(b.T, err, sender.ErrExists)
	}
	s, err := b.Reg.Subscribe(b.T.Context(), sender.NewSubscription{
		Subscriber: subscriber, URL: url, EventTypes: []string{"thing.*"}, // no notices
	})
	require.NoError(b.T, err)
	return s, secret
}

// publish publishes an event about an object of its own.
func (b *Bed) Publish(subscriber string) sender.Ref {
	b.T.Helper()
	return b.PublishOn(sender.Object{Type: "thing", ID: strconv.FormatInt(b.Objects.Add(1), 10)}, subscriber)
}

func (b *Bed) PublishOn(object sender.Object, subscriber string) sender.Ref {
	b.T.Helper()
	ref, err := b.Pub.Publish(b.T.Context(), sender.Event{Type: "thing.changed", Object: object, Subscriber: subscriber})
	require.NoError(b.T, err)
	return ref
}

func (b *Bed) Dispatcher(cfg dispatch.Config) *dispatch.Dispatcher {
	b.T.Helper()
	return b.DispatcherOn(b.Store, cfg)
}

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

// start runs a dispatcher and returns what stops it, and waits until it has.
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

// delivery returns the one delivery that there is.
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

// lockedLog is what was logged, to be read while others write.
type LockedLog struct {
	Mu  sync.Mutex
	Buf bytes.Buffer
}

func (l *LockedLog) Write(p []byte) (int, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Buf.Write(p)
}

func (l *LockedLog) String() string {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Buf.String()
}

// noted keeps what a hook is given, to be read while others add to it.
type Noted[T any] struct {
	Mu  sync.Mutex
	All []T
}

func (n *Noted[T]) Add(x T) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	n.All = append(n.All, x)
}

func (n *Noted[T]) List() []T {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return slices.Clone(n.All)
}

// transportFunc is an http.RoundTripper.
type TransportFunc func(*http.Request) (*http.Response, error)

func (f TransportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// settled is a store whose claims carry the given settings, or else what the
// registry has stored.
type Settled struct {
	*memory.Store
	T     *testing.T
	Given *sender.Settings
}

func (s Settled) RecordAndClaim(ctx context.Context, b dispatch.Batch) (dispatch.Claims, error) {
	claims, err := s.Store.RecordAndClaim(ctx, b)
	for _, c := range claims.Claimed {
		if s.Given != nil {
			c.Target.Settings = s.Given
			continue
		}
		var sub sender.Subscription
		require.NoError(s.T, s.InTx(ctx, func(tx *memory.Tx) (err error) {
			sub, err = s.SubscriptionTx(ctx, tx, c.Target.Subscription)
			return err
		}))
		c.Target.Settings = &sub.Settings
	}
	return claims, err
}

// challengeOf is what a registry hands to its challenger.
func (b *Bed) ChallengeOf(subscriber, rawURL string, s sender.Settings) sender.Challenge {
	b.T.Helper()
	keyring, err := b.Reg.Keyring(b.T.Context(), subscriber)
	require.NoError(b.T, err)
	return sender.Challenge{Subscriber: subscriber, Subscription: "wsub_1", URL: rawURL, Settings: s, Keyring: keyring}
}

// settledDispatcher returns a dispatcher whose claims carry settings, given ones or
// those that are stored.
func (b *Bed) SettledDispatcher(given *sender.Settings, cfg dispatch.Config) *dispatch.Dispatcher {
	b.T.Helper()
	return b.DispatcherOn(Settled{b.Store, b.T, given}, cfg)
}

func (b *Bed) SubscribeWith(subscriber, url string, c *sender.ClientCertificate) sender.Subscription {
	b.T.Helper()
	_, _, err := b.Reg.CreateSubscriber(b.T.Context(), sender.NewSubscriber{ID: subscriber})
	require.NoError(b.T, err)
	s, err := b.Reg.Subscribe(b.T.Context(), sender.NewSubscription{Subscriber: subscriber, URL: url, ClientCertificate: c})
	require.NoError(b.T, err)
	return s
}

// keysOf seal with the first id and open what the others have sealed.
func KeysOf(t *testing.T, current string, older ...string) *sender.Keys {
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

var ErrAway = errors.New("the database is away")
