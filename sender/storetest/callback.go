package storetest

import (
	"errors"
	"sync"

	"github.com/surehook/surehook/sender"
)

func callbackRules() []rule {
	return []rule{
		{"found", "A subscriber's implicit subscription of a URL is found by it until it is closing or deleted; then there can be another.", callbackFound},
		{"made once", "If several transactions at a time make a subscriber's implicit subscription of a URL, one makes it; the others find it.", callbackMadeOnce},
		{"in lists", "History lists implicit subscriptions if it is asked to; the registry's store always does.", callbackInLists},
		{"gets what is addressed to it", "An implicit subscription gets what is addressed to it, also in the transaction that makes it, and nothing else.", callbackAddressed},
		{"url", "An event's own URL is with its claims, its record and its delivery; without one the subscription's is.", callbackURL},
	}
}

const origin = "https://callback.example.com/"

func (w *world) implicit(owner string) sender.Subscription {
	return sender.Subscription{
		ID: w.name("wsub"), Subscriber: owner, URL: origin, EventTypes: []string{}, Implicit: true, CreatedAt: createdAt, Status: sender.SubscriptionActive,
	}
}

func (w *world) create(s sender.Subscription) error {
	return w.Store.InTx(w.ctx, func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
}

func (w *world) findImplicit(owner, url string) (s sender.Subscription, err error) {
	err = w.Store.InTx(w.ctx, func(tx any) error {
		s, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{Subscriber: owner, Origin: url})
		return err
	})
	return s, err
}

func callbackFound(w *world) {
	a, b := w.subscriber(), w.subscriber()
	explicit := w.implicit(a)
	explicit.Implicit = false
	w.noError(w.create(explicit), "creating a subscription of the same URL that is not implicit")
	_, err := w.findImplicit(a, origin)
	w.errorIs(err, sender.ErrNotFound, "looking for an implicit subscription")

	first := w.implicit(a)
	w.noError(w.create(first), "creating an implicit subscription")
	got, err := w.findImplicit(a, origin)
	w.noError(err, "looking for an implicit subscription")
	w.sameSubscription(got, first)
	for _, c := range []struct{ owner, url string }{{b, origin}, {a, origin + "other"}, {"sub_unknown", origin}} {
		_, err = w.findImplicit(c.owner, c.url)
		w.errorIs(err, sender.ErrNotFound, "looking for an implicit subscription of %s for %s", c.owner, c.url)
	}
	w.errorIs(w.create(w.implicit(a)), sender.ErrExists, "creating a second one")
	w.noError(w.create(w.implicit(b)), "creating another subscriber's")

	w.inTx(func(tx any) error {
		return w.Store.HoldSubscriptionTx(w.ctx, tx, first.ID, sender.SubscriptionPaused, "")
	})
	got, err = w.findImplicit(a, origin)
	w.noError(err, "looking for a paused one")
	w.equal(got.ID, first.ID, "id of the paused one")
	w.inTx(func(tx any) error { return w.Store.ResumeSubscriptionTx(w.ctx, tx, first.ID, sender.Resume{}) })

	w.publish(w.addressed(first.Subscriber, first.ID)) // so that it does not end at once
	w.inTx(func(tx any) error { return w.Store.CloseSubscriptionTx(w.ctx, tx, first.ID) })
	_, err = w.findImplicit(a, origin)
	w.errorIs(err, sender.ErrNotFound, "looking for one that is closing")
	second := w.implicit(a)
	w.noError(w.create(second), "creating one after another is closing")
	w.unsubscribe(second.ID)
	w.noError(w.create(w.implicit(a)), "creating one after another was deleted")
}

func callbackMadeOnce(w *world) {
	owner := w.subscriber()
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	var failed []error
	for range 8 {
		s := w.implicit(owner)
		wg.Go(func() {
			err := w.create(s)
			if errors.Is(err, sender.ErrExists) {
				s, err = w.findImplicit(owner, origin)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[s.ID]++
			if err != nil {
				failed = append(failed, err)
			}
		})
	}
	wg.Wait()
	w.noError(errors.Join(failed...), "making an implicit subscription")
	w.equal(len(ids), 1, "implicit subscriptions")
}

func callbackInLists(w *world) {
	owner := w.subscriber()
	explicit := w.subscribe(owner, "*")
	implicit := w.implicit(owner)
	w.noError(w.create(implicit), "creating an implicit subscription")
	for _, c := range []struct {
		q    sender.SubscriptionQuery
		want []string
	}{
		{sender.SubscriptionQuery{Subscriber: owner}, []string{explicit}},
		{sender.SubscriptionQuery{}, []string{explicit}},
		{sender.SubscriptionQuery{Subscriber: owner, Implicit: true}, []string{explicit, implicit.ID}},
		{sender.SubscriptionQuery{Implicit: true}, []string{explicit, implicit.ID}},
	} {
		c.q.Limit = 10
		page, _, err := w.Store.Subscriptions(w.ctx, c.q)
		w.noError(err, "listing subscriptions")
		w.equal(subscriptionIDs(page), c.want, "subscriptions for %+v", c.q)
	}
	w.inTx(func(tx any) error {
		page, err := w.Store.SubscriptionsTx(w.ctx, tx, owner, "", 10)
		w.noError(err, "listing subscriptions")
		w.equal(subscriptionIDs(page), []string{explicit, implicit.ID}, "subscriptions of the registry")
		return nil
	})
}

func subscriptionIDs(list []sender.Subscription) (ids []string) {
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	return ids
}

func callbackAddressed(w *world) {
	s := w.implicit(w.subscriber())
	d := w.addressed(s.Subscriber, s.ID)
	w.inTx(func(tx any) error {
		w.noError(w.Store.CreateSubscriptionTx(w.ctx, tx, s), "creating an implicit subscription")
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{d})
		w.noError(err, "publishing to it")
		return nil
	})
	other := w.draft("job.completed")
	other.Subscriber = s.Subscriber
	w.publish(other, w.draft("job.completed"))
	w.equal(w.expand(), 1, "deliveries made")
	w.equal(w.claimOne().Event.ID, d.ID, "event")
}

func callbackURL(w *world) {
	s := w.implicit(w.subscriber())
	w.noError(w.create(s), "creating an implicit subscription")
	one, two, none := w.addressed(s.Subscriber, s.ID), w.addressed(s.Subscriber, s.ID), w.addressed(s.Subscriber, s.ID)
	one.URL, two.URL = origin+"one?token=a%20b", origin+"two"
	one.Object.ID = "with spaces in it" // as stores that join texts must expect
	w.publish(one, two, none)
	w.expand()
	claimed := w.claim(3)
	w.equal(len(claimed), 3, "deliveries claimed")
	for _, d := range []sender.Draft{one, two, none} {
		for _, c := range claimed {
			if c.Event.ID == d.ID {
				w.equal(c.Event.URL, d.URL, "URL of the claimed event")
				w.equal(c.Event.Object, d.Object, "object of the claimed event")
				w.equal(c.Target.URL, origin, "URL of the target")
			}
		}
		e, err := w.Store.Event(w.ctx, d.ID)
		w.noError(err, "reading an event")
		w.equal(e.URL, d.URL, "URL of the event")
		got := w.delivery(d.ID, s.ID)
		w.equal(got.Event.URL, d.URL, "URL of the delivery's event")
		want := d.URL
		if want == "" {
			want = origin
		}
		w.equal(got.URL, want, "URL of the delivery")
	}
	// A delivery that was claimed before takes another path in a claim.
	w.Advance(2 * lease)
	again := 0
	for range 3 {
		for _, c := range w.claim(3) {
			again++
			for _, d := range []sender.Draft{one, two, none} {
				if c.Event.ID == d.ID {
					w.equal(c.Event.URL, d.URL, "URL of the event that is claimed again")
				}
			}
		}
		w.Advance(lease / 4)
	}
	w.equal(again, 3, "deliveries claimed again")
}
