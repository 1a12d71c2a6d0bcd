//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// registryBreakages break how a store keeps subscribers, and deletes subscriptions.
var registryBreakages = []breakage{
	{"a NUL reaches the database", func(s store) store { return nulRefused{s} }, checks{"registry/no text"}},
	{"deletion ignored", func(s store) store { return undeleted{s} }, checks{"cancel/live ones are cancelled", "registry/subscription"}},
	{"deletion ends attempts in flight", func(s store) store { return deletedInFlight{newInFlightLost(s)} }, checks{"cancel/in flight and succeeds"}},
	{"subscriber replaced", func(s store) store { return subscriberReplaced{s} }, checks{"registry/subscriber"}},
	{"subscription replaced", func(s store) store { return subscriptionReplaced{s} }, checks{"registry/subscription", "registry/id in use"}},
	{"changed as it was read at first", func(s store) store { return &changedStale{store: s} }, checks{"registry/changed by several at a time"}},
	{"a caller's secrets are kept", func(s store) store { return &secretsShared{store: s} }, checks{"history/own copies"}},
	{"deletion cancels what had ended", func(s store) store { return &endedCancelled{store: s, deleted: map[string]bool{}} }, checks{"cancel/ended ones stay"}},
}

type nulRefused struct{ store }

func (b nulRefused) Replay(ctx context.Context, id string) (replay.Replay, error) {
	if strings.ContainsRune(id, 0) {
		return replay.Replay{}, errors.New("invalid byte sequence for encoding \"UTF8\": 0x00 (SQLSTATE 22021)")
	}
	return b.store.Replay(ctx, id)
}

type undeleted struct{ store }

func (undeleted) DeleteSubscriptionTx(context.Context, tx, string) error { return nil }

type deletedInFlight struct{ inFlightLost }

func (b deletedInFlight) DeleteSubscriptionTx(ctx context.Context, tx tx, id string) error {
	b.ended[id] = true
	return b.store.DeleteSubscriptionTx(ctx, tx, id)
}

type subscriberReplaced struct{ store }

func (b subscriberReplaced) CreateSubscriberTx(ctx context.Context, tx tx, s sender.Subscriber, secrets []sender.SealedSecret) error {
	if err := b.store.CreateSubscriberTx(ctx, tx, s, secrets); !errors.Is(err, sender.ErrExists) {
		return err
	}
	return nil
}

type subscriptionReplaced struct{ store }

func (b subscriptionReplaced) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if err := b.store.CreateSubscriptionTx(ctx, tx, s); !errors.Is(err, sender.ErrExists) {
		return err
	}
	return b.UpdateSubscriptionTx(ctx, tx, s)
}

// changedStale gives all who change a subscription what the first one of them has read.
type changedStale struct {
	store
	mu   sync.Mutex
	read *sender.Subscription
}

func (b *changedStale) SubscriptionTx(ctx context.Context, tx tx, key sender.SubscriptionKey) (sender.Subscription, error) {
	s, err := b.store.SubscriptionTx(ctx, tx, key)
	if err != nil || !key.ToChange {
		return s, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read == nil {
		b.read = &s
	}
	s = *b.read
	s.EventTypes = slices.Clone(s.EventTypes)
	return s, nil
}

type endedCancelled struct {
	store
	deleted map[string]bool
}

func (b *endedCancelled) DeleteSubscriptionTx(ctx context.Context, tx tx, id string) error {
	b.deleted[id] = true
	return b.store.DeleteSubscriptionTx(ctx, tx, id)
}

func (b *endedCancelled) Deliveries(ctx context.Context, q history.DeliveryQuery) ([]sender.Delivery, string, error) {
	page, next, err := b.store.Deliveries(ctx, q)
	for i := range page {
		if b.deleted[page[i].Subscription] {
			page[i].Status = sender.StatusCancelled
		}
	}
	return page, next, err
}

// secretsShared keeps the secrets that it is given, and not copies of them.
type secretsShared struct {
	store
	given []sender.SealedSecret
}

func (b *secretsShared) CreateSubscriberTx(ctx context.Context, tx tx, s sender.Subscriber, secrets []sender.SealedSecret) error {
	b.given = secrets
	return b.store.CreateSubscriberTx(ctx, tx, s, secrets)
}

func (b *secretsShared) SubscriberKeyringTx(ctx context.Context, tx tx, id string) (sender.SealedKeyring, error) {
	k, err := b.store.SubscriberKeyringTx(ctx, tx, id)
	k.Secrets = b.given
	return k, err
}
