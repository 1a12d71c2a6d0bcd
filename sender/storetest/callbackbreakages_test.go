//go:build !race

package storetest_test

import (
	"context"

	"github.com/surehook/surehook/sender"
)

// callbackBreakages break implicit subscriptions.
var callbackBreakages = []breakage{
	{"several implicit ones", func(s store) store { return severalImplicit{s} }, checks{"callback/found", "callback/made once"}},
	{"implicit ones of anybody", func(s store) store { return implicitOfAnybody{s} }, checks{"callback/found"}},
	{"implicit ones that ask", func(s store) store { return implicitAsks{s} }, checks{"callback/gets what is addressed to it"}},
	{"implicit ones listed", onSubscriptions(func(q *sender.SubscriptionQuery) { q.Implicit = true }), checks{"callback/in lists"}},
	{"url forgotten", onDrafts(func(d *sender.Draft) { d.URL = "" }), checks{"callback/url"}},
}

type severalImplicit struct{ store }

func (b severalImplicit) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	s.Implicit = false
	return b.store.CreateSubscriptionTx(ctx, tx, s)
}

func (b severalImplicit) SubscriptionTx(ctx context.Context, tx tx, key sender.SubscriptionKey) (sender.Subscription, error) {
	if key.Origin == "" {
		return b.store.SubscriptionTx(ctx, tx, key)
	}
	list, err := b.store.SubscriptionsTx(ctx, tx, key.Subscriber, "", 200)
	for _, s := range list {
		if s.URL == key.Origin {
			s.Implicit = true
			return s, nil
		}
	}
	return sender.Subscription{}, err
}

type implicitOfAnybody struct{ store }

func (b implicitOfAnybody) SubscriptionTx(ctx context.Context, tx tx, key sender.SubscriptionKey) (sender.Subscription, error) {
	if key.Origin == "" {
		return b.store.SubscriptionTx(ctx, tx, key)
	}
	list, err := b.store.SubscriptionsTx(ctx, tx, "", "", 200)
	for _, s := range list {
		if s.Implicit && s.URL == key.Origin {
			return s, nil
		}
	}
	if err == nil {
		err = sender.ErrNotFound
	}
	return sender.Subscription{}, err
}

type implicitAsks struct{ store }

func (b implicitAsks) CreateSubscriptionTx(ctx context.Context, tx tx, s sender.Subscription) error {
	if s.Implicit {
		s.EventTypes = []string{"*"}
	}
	return b.store.CreateSubscriptionTx(ctx, tx, s)
}
