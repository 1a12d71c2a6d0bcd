package storetest

import (
	"context"
	"testing"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// erased gives the suite stores whose transactions have no type. Then the suite is compiled
// once, with this package. If it had Tx for a parameter, each driver's tests would compile all
// of it anew.
func erased[Tx any](open func(t *testing.T) Harness[Tx]) func(t *testing.T) Harness[any] {
	return func(t *testing.T) Harness[any] { return erasedHarness(open(t)) }
}

func erasedHarness[Tx any](h Harness[Tx]) Harness[any] {
	e := Harness[any]{
		Store:             erasedStore(h.Store),
		Advance:           h.Advance,
		Begin:             func(t *testing.T) (any, func() error, func() error) { return h.Begin(t) },
		Settled:           h.Settled,
		Consistent:        h.Consistent,
		SettingsOf:        h.SettingsOf,
		ConcurrentWriters: h.ConcurrentWriters,
		BoundedWork:       h.BoundedWork,
	}
	if h.Other != nil {
		e.Other = func(t *testing.T) Store[any] { return erasedStore(h.Other(t)) }
	}
	return e
}

// untyped is what a store has that knows no type of transactions.
type untyped interface {
	Wake()
	sender.SealingStore
	dispatch.Store
	history.Store
	replay.Store
	feed.Store
}

type anyTx[Tx any] struct {
	untyped
	store Store[Tx]
}

// anyReader is for a store that is a sender.Reader, too.
type anyReader[Tx any] struct {
	anyTx[Tx]
	reader sender.Reader[Tx]
}

func erasedStore[Tx any](s Store[Tx]) Store[any] {
	e := anyTx[Tx]{s, s}
	if reader, ok := s.(sender.Reader[Tx]); ok {
		return anyReader[Tx]{e, reader}
	}
	return e
}

// forDispatcher returns the store itself, since a Dispatcher asks it for its optional parts.
func forDispatcher(s Store[any]) dispatch.Store {
	return s.(interface{ forDispatcher() dispatch.Store }).forDispatcher()
}

func (e anyTx[Tx]) forDispatcher() dispatch.Store { return e.store }

func (e anyReader[Tx]) InReadTx(ctx context.Context, fn func(tx any) error) error {
	return e.reader.InReadTx(ctx, func(tx Tx) error { return fn(tx) })
}

func (e anyTx[Tx]) InTx(ctx context.Context, fn func(tx any) error) error {
	return e.store.InTx(ctx, func(tx Tx) error { return fn(tx) })
}

func (e anyTx[Tx]) PublishTx(ctx context.Context, tx any, drafts []sender.Draft) ([]sender.Ref, error) {
	return e.store.PublishTx(ctx, tx.(Tx), drafts)
}

func (e anyTx[Tx]) CreateSubscriberTx(ctx context.Context, tx any, s sender.Subscriber, secrets []sender.SealedSecret) error {
	return e.store.CreateSubscriberTx(ctx, tx.(Tx), s, secrets)
}

func (e anyTx[Tx]) SubscriberTx(ctx context.Context, tx any, id string) (sender.Subscriber, error) {
	return e.store.SubscriberTx(ctx, tx.(Tx), id)
}

func (e anyTx[Tx]) SubscriberKeyringTx(ctx context.Context, tx any, id string) (sender.SealedKeyring, error) {
	return e.store.SubscriberKeyringTx(ctx, tx.(Tx), id)
}

func (e anyTx[Tx]) CreateSubscriptionTx(ctx context.Context, tx any, s sender.Subscription) error {
	return e.store.CreateSubscriptionTx(ctx, tx.(Tx), s)
}

func (e anyTx[Tx]) SubscriptionTx(ctx context.Context, tx any, key sender.SubscriptionKey) (sender.Subscription, error) {
	return e.store.SubscriptionTx(ctx, tx.(Tx), key)
}

func (e anyTx[Tx]) SubscriptionsTx(ctx context.Context, tx any, subscriber, after string, limit int) ([]sender.Subscription, error) {
	return e.store.SubscriptionsTx(ctx, tx.(Tx), subscriber, after, limit)
}

func (e anyTx[Tx]) UpdateSubscriptionTx(ctx context.Context, tx any, s sender.Subscription) error {
	return e.store.UpdateSubscriptionTx(ctx, tx.(Tx), s)
}

func (e anyTx[Tx]) HoldSubscriptionTx(ctx context.Context, tx any, id string, status sender.SubscriptionStatus, reason string) error {
	return e.store.HoldSubscriptionTx(ctx, tx.(Tx), id, status, reason)
}

func (e anyTx[Tx]) ResumeSubscriptionTx(ctx context.Context, tx any, id string, r sender.Resume) error {
	return e.store.ResumeSubscriptionTx(ctx, tx.(Tx), id, r)
}

func (e anyTx[Tx]) CloseSubscriptionTx(ctx context.Context, tx any, id string) error {
	return e.store.CloseSubscriptionTx(ctx, tx.(Tx), id)
}

func (e anyTx[Tx]) DeleteSubscriptionTx(ctx context.Context, tx any, id string) error {
	return e.store.DeleteSubscriptionTx(ctx, tx.(Tx), id)
}

func (e anyTx[Tx]) DeleteSubscriberTx(ctx context.Context, tx any, id string) error {
	return e.store.DeleteSubscriberTx(ctx, tx.(Tx), id)
}

func (e anyTx[Tx]) SetSecretsTx(ctx context.Context, tx any, subscriber string, version int64, secrets []sender.SealedSecret) error {
	return e.store.SetSecretsTx(ctx, tx.(Tx), subscriber, version, secrets)
}

func (e anyTx[Tx]) KeyringsTx(ctx context.Context, tx any, key, after string, limit int) ([]sender.SealedKeyring, error) {
	return e.store.KeyringsTx(ctx, tx.(Tx), key, after, limit)
}

func (e anyTx[Tx]) RewrapTx(ctx context.Context, tx any, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	return e.store.RewrapTx(ctx, tx.(Tx), subscriber, old, sealed)
}
