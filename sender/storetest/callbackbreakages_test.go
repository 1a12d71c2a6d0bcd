package storetest_test

import (
	"context"

	"github.com/surehook/surehook/sender"
)

var callbackBreakages = map[string]breakage{
	"several implicit ones": {[]string{"callback/found", "callback/made once"}, func(b *broken, _ *harness) {
		b.createTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			s.Implicit = false
			return b.Store.CreateSubscriptionTx(ctx, tx, s)
		}
		b.implicitTx = func(ctx context.Context, tx tx, subscriber, url string) (sender.Subscription, error) {
			list, err := b.Store.SubscriptionsTx(ctx, tx, subscriber, "", 200)
			for _, s := range list {
				if s.URL == url {
					s.Implicit = true
					return s, nil
				}
			}
			return sender.Subscription{}, err
		}
	}},
	"implicit ones of anybody": {[]string{"callback/found"}, func(b *broken, _ *harness) {
		b.implicitTx = func(ctx context.Context, tx tx, subscriber, url string) (sender.Subscription, error) {
			list, err := b.Store.SubscriptionsTx(ctx, tx, "", "", 200)
			for _, s := range list {
				if s.Implicit && s.URL == url {
					return s, nil
				}
			}
			if err == nil {
				err = sender.ErrNotFound
			}
			return sender.Subscription{}, err
		}
	}},
	"implicit ones that ask": {[]string{"callback/gets what is addressed to it"}, func(b *broken, _ *harness) {
		b.createTx = func(ctx context.Context, tx tx, s sender.Subscription) error {
			if s.Implicit {
				s.EventTypes = []string{"*"}
			}
			return b.Store.CreateSubscriptionTx(ctx, tx, s)
		}
	}},
	"implicit ones listed": {[]string{"callback/in lists"}, onAnswers(func(a *answers) {
		a.subscriptions = func(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
			q.Implicit = true
			return a.Store.Subscriptions(ctx, q)
		}
	})},
	"url forgotten": {[]string{"callback/url"}, onDrafts(func(d *sender.Draft) { d.URL = "" })},
}
