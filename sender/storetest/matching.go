package storetest

import (
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

func matchingRules() []rule {
	return []rule{
		{"as Matches says", "An event's deliveries go to exactly the subscriptions that sender.Matches names, one to each.", matchingRule},
		{"nothing older than the subscription", "A subscription gets the events that are committed after it, and none older, whether they were expanded before it or not.", matchingOlder},
		{"nothing once deleted", "A deleted subscription gets no new deliveries, not even of events that were committed before it was deleted.", matchingDeleted},
		{"same transaction", "An event gets to a subscription that was created before it in the same transaction.", matchingSameTx},
	}
}

func matchingRule(w *world) {
	a, b := w.subscriber(), w.subscriber()
	w.createSubscriber(sender.Operator)
	var subs []sender.Subscription
	for _, owner := range []string{a, b, sender.Operator} {
		for _, types := range [][]string{
			{"*"}, {"a.b"}, {"a.*"}, {"a.b.*"}, {"A.b"}, {"a_b"}, {"a.b", "a.*", "*"}, {"x.y", "a.b.c"}, {"b.*", "c"},
		} {
			s := w.subscription(owner, types...)
			w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
			subs = append(subs, s)
		}
	}
	var drafts []sender.Draft
	for _, eventType := range []string{"a", "a.b", "a.b.c", "a.b.c.d", "a.bc", "ab", "A.b", "a_b", "axb", "b.x", "c", "z"} {
		for _, to := range []string{"", a, b, sender.Operator} {
			d := w.draft(eventType)
			d.Subscriber = to
			drafts = append(drafts, d)
		}
		for _, to := range []sender.Subscription{subs[1], subs[len(subs)-1]} {
			d := w.draft(eventType)
			d.Subscriber, d.Subscription = to.Subscriber, to.ID
			drafts = append(drafts, d)
		}
	}
	w.publish(drafts...)
	w.expand()
	for _, d := range drafts {
		var want, got []string
		for _, s := range subs {
			if sender.Matches(s, d.Type, d.Subscriber, d.Subscription, d.About) {
				want = append(want, s.ID)
			}
		}
		for _, delivery := range w.list(history.DeliveryQuery{Event: d.ID}) {
			got = append(got, delivery.Subscription)
		}
		slices.Sort(got)
		slices.Sort(want)
		w.equal(got, want, "subscriptions that got %s, which is for subscriber %q, subscription %q", d.Type, d.Subscriber, d.Subscription)
	}
}

func matchingOlder(w *world) {
	owner := w.subscriber()
	first := w.subscribe(owner, "*")
	expanded, waiting, younger := w.draft("a.b"), w.draft("a.b"), w.draft("a.b")
	w.publish(expanded)
	w.expand()
	w.publish(waiting)
	second := w.subscribe(owner, "*") // at the same time by the clock, it may be
	w.publish(younger)
	w.expand()
	w.equal(w.events(first), sorted(expanded, waiting, younger), "events of the older subscription")
	w.equal(w.events(second), sorted(younger), "events of the younger subscription")
}

func matchingDeleted(w *world) {
	owner := w.subscriber()
	kept, gone := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	before, after := w.draft("a.b"), w.draft("a.b")
	w.publish(before)
	w.unsubscribe(gone)
	w.publish(after)
	w.equal(w.expand(), 2, "deliveries made")
	w.equal(w.events(kept), sorted(before, after), "events of the other subscription")
	w.equal(w.events(gone), []string{}, "events of the deleted subscription")
}

func matchingSameTx(w *world) {
	s := w.subscription(w.subscriber(), "*")
	toAll, toOne := w.draft("a.b"), w.draft("subscription.created")
	toOne.Subscriber, toOne.Subscription = s.Subscriber, s.ID
	w.inTx(func(tx any) error {
		w.noError(w.Store.CreateSubscriptionTx(w.ctx, tx, s), "creating a subscription")
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{toAll, toOne})
		return err
	})
	w.expand()
	w.equal(w.events(s.ID), sorted(toAll, toOne), "events delivered")
}
