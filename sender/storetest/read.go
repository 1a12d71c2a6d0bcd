package storetest

import (
	"bytes"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// txReads reads on another store, so that a store with one connection can keep it for the
// transaction.
func txReads(w *world) {
	other := w.other().Store
	if _, reads := other.(sender.Reader[any]); !reads && !w.ConcurrentWriters {
		w.Log("NOT TESTED: on this store those who read wait for the one who writes")
		return
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	w.noError(err, "making keys")
	reg, err := sender.NewRegistry(other, keys, nil)
	w.noError(err, "making a registry")
	owner := w.name("sub_")
	_, _, err = reg.CreateSubscriber(w.ctx, sender.NewSubscriber{ID: owner})
	w.noError(err, "creating a subscriber")
	sub, err := reg.Subscribe(w.ctx, sender.NewSubscription{Subscriber: owner, URL: "https://example.com/", EventTypes: []string{"*"}, Description: "before"})
	w.noError(err, "subscribing")
	d := w.draft("a.b")
	w.publish(d)
	w.expand()
	delivery := w.delivery(d.ID, sub.ID).ID

	tx, _, rollback := w.Begin(w.T)
	changed := sub
	changed.Description = "after"
	w.noError(w.Store.UpdateSubscriptionTx(w.ctx, tx, changed), "changing a subscription")
	k, err := w.Store.SubscriberKeyringTx(w.ctx, tx, owner)
	w.noError(err, "reading a keyring to change it")
	w.noError(w.Store.SetSecretsTx(w.ctx, tx, owner, k.Version, k.Secrets), "changing secrets")
	got, err := reg.Subscription(w.ctx, sub.ID)
	w.noError(err, "reading a subscription beside a transaction that changes it")
	w.equal(got.Description, "before", "description that a transaction is changing")
	failed := func(values ...any) error { // of a call
		err, _ := values[len(values)-1].(error)
		return err
	}
	for name, read := range map[string]func() error{
		"Subscriber":            func() error { return failed(reg.Subscriber(w.ctx, owner)) },
		"Subscriptions":         func() error { return failed(reg.Subscriptions(w.ctx, owner, "", 10)) },
		"Keyring":               func() error { return failed(reg.Keyring(w.ctx, owner)) },
		"Secrets":               func() error { return failed(reg.Secrets(w.ctx, owner)) },
		"SigningSecret":         func() error { return failed(reg.SigningSecret(w.ctx, owner)) },
		"CheckKeys":             func() error { return reg.CheckKeys(w.ctx) },
		"Rewrap":                func() error { return failed(reg.Rewrap(w.ctx)) }, // there is nothing to be sealed anew
		"Delivery":              func() error { return failed(other.Delivery(w.ctx, delivery, history.AttemptQuery{})) },
		"Deliveries":            func() error { return failed(other.Deliveries(w.ctx, history.DeliveryQuery{Limit: 10})) },
		"Facts":                 func() error { return failed(other.Facts(w.ctx, delivery)) },
		"Event":                 func() error { return failed(other.Event(w.ctx, d.ID)) },
		"Events":                func() error { return failed(other.Events(w.ctx, history.EventQuery{Limit: 10})) },
		"history.Subscriptions": func() error { return failed(other.Subscriptions(w.ctx, sender.SubscriptionQuery{Limit: 10})) },
		"Notices":               func() error { return failed(other.Notices(w.ctx, history.NoticeQuery{Limit: 10})) },
		"Counts":                func() error { return failed(other.Counts(w.ctx)) },
		"Rollups":               func() error { return failed(other.Rollups(w.ctx, createdAt, createdAt.Add(time.Hour))) },
		"Replays":               func() error { return failed(other.Replays(w.ctx, replay.Query{Limit: 10})) },
		"PreviewReplay": func() error {
			return failed(other.PreviewReplay(w.ctx, replay.Filter{Status: sender.StatusDelivered}, 0))
		},
		"Feed":    func() error { return failed(other.Feed(w.ctx, feed.StoreQuery{Viewer: owner, Limit: 10})) },
		"Present": func() error { return failed(other.Present(w.ctx)) },
	} {
		w.noError(read(), "%s, beside a transaction that has changed what it reads", name)
	}
	w.noError(rollback(), "rolling back")
}
