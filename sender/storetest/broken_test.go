package storetest_test

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/storetest"
)

type (
	tx      = *memory.Tx
	harness = storetest.Harness[tx]
)

type announceFunc = func(n sender.Notice) (sender.Draft, bool)

// broken is a store with some methods replaced. A nil field leaves the method sound.
type broken struct {
	sender.Store[tx] // the sound one
	publishTx        func(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error)
	inTx             func(ctx context.Context, fn func(tx) error) error
	newSubscriberTx  func(ctx context.Context, tx tx, s sender.Subscriber, secrets []sender.SealedSecret) error
	setSecretsTx     func(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error
	keyringsTx       func(ctx context.Context, tx tx, key, after string, limit int) ([]sender.SealedKeyring, error)
	rewrapTx         func(ctx context.Context, tx tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error)
	sealingKeys      func(ctx context.Context) ([]string, error)
	createTx         func(ctx context.Context, tx tx, s sender.Subscription) error
	implicitTx       func(ctx context.Context, tx tx, subscriber, url string) (sender.Subscription, error)
	deleteTx         func(ctx context.Context, tx tx, id string) error
	woken            func() <-chan struct{}
	check            func(ctx context.Context) error
	expand           func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error)
	batch            func(ctx context.Context, b sender.Batch) (sender.Claims, error)
	payloads         func(ctx context.Context, events []int64) (map[int64]sender.Payload, error)
	release          func(ctx context.Context, rs []sender.Release) error
	delivery         func(ctx context.Context, id string) (sender.Delivery, error)
	deliveries       func(ctx context.Context, q sender.DeliveryQuery) ([]sender.Delivery, string, error)
	redeliver        func(ctx context.Context, id string, notBefore time.Time) error
	createReplay     func(ctx context.Context, r sender.Replay, notBefore time.Time) (sender.Replay, error)
	replay           func(ctx context.Context, id string) (sender.Replay, error)
	setReplayStatus  func(ctx context.Context, id string, to sender.ReplayStatus) (sender.Replay, error)
	stepReplays      func(ctx context.Context, limit int, announce announceFunc) (sender.ReplayStep, error)
	prune            func(ctx context.Context, p sender.PruneParams) (sender.Pruned, error)
	redact           func(ctx context.Context, p sender.RedactParams) (sender.Redacted, error)
	updateTx         func(ctx context.Context, tx tx, s sender.Subscription) error
	holdTx           func(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error
	resumeTx         func(ctx context.Context, tx tx, id string, r sender.Resume) error
	closeTx          func(ctx context.Context, tx tx, id string) error
	noSubscriberTx   func(ctx context.Context, tx tx, id string) error
	subscriptionTx   func(ctx context.Context, tx tx, id string) (sender.Subscription, error)
	keyrings         func(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error)
	sweep            func(ctx context.Context, limit int) (int, error)
	beat             func(ctx context.Context, p sender.Presence) ([]sender.Presence, error)
	leasedUnder      func(ctx context.Context, tokens []int64, limit int) ([]sender.Release, error)
	takeOver         func(ctx context.Context, p sender.Presence) (int, error)
}

func (b *broken) Beat(ctx context.Context, p sender.Presence) ([]sender.Presence, error) {
	if b.beat != nil {
		return b.beat(ctx, p)
	}
	return b.Store.Beat(ctx, p)
}

func (b *broken) LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]sender.Release, error) {
	if b.leasedUnder != nil {
		return b.leasedUnder(ctx, tokens, limit)
	}
	return b.Store.LeasedUnder(ctx, tokens, limit)
}

func (b *broken) TakeOver(ctx context.Context, p sender.Presence) (int, error) {
	if b.takeOver != nil {
		return b.takeOver(ctx, p)
	}
	return b.Store.TakeOver(ctx, p)
}

func (b *broken) UpdateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if b.updateTx != nil {
		return b.updateTx(ctx, tx, s)
	}
	return b.Store.UpdateSubscriptionTx(ctx, tx, s)
}

func (b *broken) ImplicitSubscriptionTx(ctx context.Context, tx tx, subscriber, url string) (sender.Subscription, error) {
	if b.implicitTx != nil {
		return b.implicitTx(ctx, tx, subscriber, url)
	}
	return b.Store.ImplicitSubscriptionTx(ctx, tx, subscriber, url)
}

func (b *broken) HoldSubscriptionTx(ctx context.Context, tx tx, id string, status sender.SubscriptionStatus, reason string) error {
	if b.holdTx != nil {
		return b.holdTx(ctx, tx, id, status, reason)
	}
	return b.Store.HoldSubscriptionTx(ctx, tx, id, status, reason)
}

func (b *broken) ResumeSubscriptionTx(ctx context.Context, tx tx, id string, r sender.Resume) error {
	if b.resumeTx != nil {
		return b.resumeTx(ctx, tx, id, r)
	}
	return b.Store.ResumeSubscriptionTx(ctx, tx, id, r)
}

func (b *broken) CloseSubscriptionTx(ctx context.Context, tx tx, id string) error {
	if b.closeTx != nil {
		return b.closeTx(ctx, tx, id)
	}
	return b.Store.CloseSubscriptionTx(ctx, tx, id)
}

func (b *broken) DeleteSubscriberTx(ctx context.Context, tx tx, id string) error {
	if b.noSubscriberTx != nil {
		return b.noSubscriberTx(ctx, tx, id)
	}
	return b.Store.DeleteSubscriberTx(ctx, tx, id)
}

func (b *broken) SubscriptionTx(ctx context.Context, tx tx, id string) (sender.Subscription, error) {
	if b.subscriptionTx != nil {
		return b.subscriptionTx(ctx, tx, id)
	}
	return b.Store.SubscriptionTx(ctx, tx, id)
}

func (b *broken) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	if b.keyrings != nil {
		return b.keyrings(ctx, subscribers)
	}
	return b.Store.Keyrings(ctx, subscribers)
}

func (b *broken) Sweep(ctx context.Context, limit int) (int, error) {
	if b.sweep != nil {
		return b.sweep(ctx, limit)
	}
	return b.Store.Sweep(ctx, limit)
}

func (b *broken) PublishTx(ctx context.Context, tx tx, drafts []sender.Draft) ([]sender.Ref, error) {
	if b.publishTx != nil {
		return b.publishTx(ctx, tx, drafts)
	}
	return b.Store.PublishTx(ctx, tx, drafts)
}

func (b *broken) InTx(ctx context.Context, fn func(tx) error) error {
	if b.inTx != nil {
		return b.inTx(ctx, fn)
	}
	return b.Store.InTx(ctx, fn)
}

func (b *broken) CreateSubscriberTx(ctx context.Context, tx tx, s sender.Subscriber, secrets []sender.SealedSecret) error {
	if b.newSubscriberTx != nil {
		return b.newSubscriberTx(ctx, tx, s, secrets)
	}
	return b.Store.CreateSubscriberTx(ctx, tx, s, secrets)
}

func (b *broken) SetSecretsTx(ctx context.Context, tx tx, subscriber string, version int64, secrets []sender.SealedSecret) error {
	if b.setSecretsTx != nil {
		return b.setSecretsTx(ctx, tx, subscriber, version, secrets)
	}
	return b.Store.SetSecretsTx(ctx, tx, subscriber, version, secrets)
}

func (b *broken) KeyringsTx(ctx context.Context, tx tx, key, after string, limit int) ([]sender.SealedKeyring, error) {
	if b.keyringsTx != nil {
		return b.keyringsTx(ctx, tx, key, after, limit)
	}
	return b.Store.KeyringsTx(ctx, tx, key, after, limit)
}

func (b *broken) RewrapTx(ctx context.Context, tx tx, subscriber string, old []byte, sealed sender.SealedSecret) (bool, error) {
	if b.rewrapTx != nil {
		return b.rewrapTx(ctx, tx, subscriber, old, sealed)
	}
	return b.Store.RewrapTx(ctx, tx, subscriber, old, sealed)
}

func (b *broken) SealingKeys(ctx context.Context) ([]string, error) {
	if b.sealingKeys != nil {
		return b.sealingKeys(ctx)
	}
	return b.Store.SealingKeys(ctx)
}

func (b *broken) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if b.createTx != nil {
		return b.createTx(ctx, tx, s)
	}
	return b.Store.CreateSubscriptionTx(ctx, tx, s)
}

func (b *broken) DeleteSubscriptionTx(ctx context.Context, tx tx, id string) error {
	if b.deleteTx != nil {
		return b.deleteTx(ctx, tx, id)
	}
	return b.Store.DeleteSubscriptionTx(ctx, tx, id)
}

func (b *broken) Woken() <-chan struct{} {
	if b.woken != nil {
		return b.woken()
	}
	return b.Store.Woken()
}

func (b *broken) Check(ctx context.Context) error {
	if b.check != nil {
		return b.check(ctx)
	}
	return b.Store.Check(ctx)
}

func (b *broken) Expand(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
	if b.expand != nil {
		return b.expand(ctx, p)
	}
	return b.Store.Expand(ctx, p)
}

func (b *broken) RecordAndClaim(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
	if b.batch != nil {
		return b.batch(ctx, batch)
	}
	return b.Store.RecordAndClaim(ctx, batch)
}

func (b *broken) Payloads(ctx context.Context, events []int64) (map[int64]sender.Payload, error) {
	if b.payloads != nil {
		return b.payloads(ctx, events)
	}
	return b.Store.Payloads(ctx, events)
}

func (b *broken) Release(ctx context.Context, rs []sender.Release) error {
	if b.release != nil {
		return b.release(ctx, rs)
	}
	return b.Store.Release(ctx, rs)
}

func (b *broken) Delivery(ctx context.Context, id string) (sender.Delivery, error) {
	if b.delivery != nil {
		return b.delivery(ctx, id)
	}
	return b.Store.Delivery(ctx, id)
}

func (b *broken) Deliveries(ctx context.Context, q sender.DeliveryQuery) ([]sender.Delivery, string, error) {
	if b.deliveries != nil {
		return b.deliveries(ctx, q)
	}
	return b.Store.Deliveries(ctx, q)
}

func (b *broken) CreateReplay(ctx context.Context, r sender.Replay, notBefore time.Time) (sender.Replay, error) {
	if b.createReplay != nil {
		return b.createReplay(ctx, r, notBefore)
	}
	return b.Store.CreateReplay(ctx, r, notBefore)
}

func (b *broken) Replay(ctx context.Context, id string) (sender.Replay, error) {
	if b.replay != nil {
		return b.replay(ctx, id)
	}
	return b.Store.Replay(ctx, id)
}

func (b *broken) SetReplayStatus(ctx context.Context, id string, to sender.ReplayStatus) (sender.Replay, error) {
	if b.setReplayStatus != nil {
		return b.setReplayStatus(ctx, id, to)
	}
	return b.Store.SetReplayStatus(ctx, id, to)
}

func (b *broken) StepReplays(ctx context.Context, limit int, announce announceFunc) (sender.ReplayStep, error) {
	if b.stepReplays != nil {
		return b.stepReplays(ctx, limit, announce)
	}
	return b.Store.StepReplays(ctx, limit, announce)
}

func (b *broken) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	if b.redeliver != nil {
		return b.redeliver(ctx, id, notBefore)
	}
	return b.Store.Redeliver(ctx, id, notBefore)
}

func (b *broken) Prune(ctx context.Context, p sender.PruneParams) (sender.Pruned, error) {
	if b.prune != nil {
		return b.prune(ctx, p)
	}
	return b.Store.Prune(ctx, p)
}

func (b *broken) Redact(ctx context.Context, p sender.RedactParams) (sender.Redacted, error) {
	if b.redact != nil {
		return b.redact(ctx, p)
	}
	return b.Store.Redact(ctx, p)
}
