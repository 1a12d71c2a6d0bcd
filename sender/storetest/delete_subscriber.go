package storetest

import (
	"github.com/surehook/surehook/sender"
)

func deleteSubscriberRules() []rule {
	return []rule{
		{"delete subscriber", "A deleted subscriber is not found any more, and nothing can be made or published for it; its id is never in use again; others stay.", deleteSubscriberGone},
		{"delete subscriber, what is still to be sent", "A deleted subscriber's subscriptions are closed; its secrets are there, by number, until the last of them is deleted, and then destroyed.", deleteSubscriberSends},
		{"delete subscriber, sealed anew", "The secrets of a deleted subscriber that are still there are listed by their sealing key, and sealed anew; a list goes on after it.", deleteSubscriberRewraps},
		{"delete subscriber, the operator", "A deleted operator's subscriptions still get the events for every subscriber that were committed before.", deleteSubscriberOperator},
		{"delete subscriber, held subscriptions", "A deleted subscriber's paused and disabled subscriptions are deleted at once.", deleteSubscriberHeld},
		{"delete subscriber, without subscriptions", "The secrets of a subscriber that has no subscriptions left are destroyed when it is deleted.", deleteSubscriberAlone},
		{"delete subscriber, while it gets a subscription", "The deletion of a subscriber misses no subscription that another transaction is making; after it none is made.", deleteSubscriberMeanwhile},
		{"delete subscriber, rolled back", "A deletion that rolled back changes nothing.", deleteSubscriberRolledBack},
	}
}

func (w *world) tryDeleteSubscriber(id string) error {
	return w.try(func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, id) })
}

func (w *world) deleteSubscriber(id string) {
	w.Helper()
	w.noError(w.tryDeleteSubscriber(id), "deleting a subscriber")
}

func deleteSubscriberGone(w *world) {
	owner, other := w.subscriber(), w.subscriber()
	sub := w.subscribe(owner, "*")
	kept := w.subscribe(other, "*")
	w.publish(w.draft("a.b"))
	w.expand()
	w.deleteSubscriber(owner)
	for name, call := range map[string]func(tx any) error{
		"SubscriberTx":         func(tx any) error { _, err := w.Store.SubscriberTx(w.ctx, tx, owner); return err },
		"SubscriberKeyringTx":  func(tx any) error { _, err := w.Store.SubscriberKeyringTx(w.ctx, tx, owner); return err },
		"CreateSubscriptionTx": func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, w.subscription(owner, "*")) },
		"DeleteSubscriberTx":   func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, owner) },
		"PublishTx to it": func(tx any) error {
			d := w.draft("a.b")
			d.Subscriber = owner
			_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{d})
			return err
		},
	} {
		w.errorIs(w.try(call), sender.ErrNotFound, "%s of a deleted subscriber", name)
	}
	w.errorIs(w.tryDeleteSubscriber("sub_unknown"), sender.ErrNotFound, "deleting an unknown subscriber")
	for _, when := range []string{"while a subscription is closing", "after the last one is deleted"} {
		err := w.try(func(tx any) error {
			return w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: owner}, nil)
		})
		w.errorIs(err, sender.ErrExists, "creating a subscriber with a deleted one's id %s", when)
		w.record(resultsOf(w.claim(plenty), sender.ClassNone)...)
		w.sweep(100)
	}
	w.gone(sub, "of a deleted subscriber")
	w.equal(w.read(kept).Status, sender.SubscriptionActive, "status of another subscriber's subscription")
	w.inTx(func(tx any) error {
		_, err := w.Store.SubscriberTx(w.ctx, tx, other)
		return err
	})
}

func deleteSubscriberSends(w *world) {
	owner := w.subscriber()
	first, second := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	d := w.draft("a.b")
	w.publish(d)
	w.deleteSubscriber(owner)
	w.publish(w.draft("a.b"))
	w.expand()
	w.inTx(func(tx any) error {
		list, err := w.Store.SubscriptionsTx(w.ctx, tx, owner, "", 10)
		w.noError(err, "listing the subscriptions of a deleted subscriber")
		w.equal(len(list), 2, "subscriptions listed of a deleted subscriber")
		for _, s := range list {
			w.equal(s.Status, sender.SubscriptionClosing, "status of a deleted subscriber's subscription")
		}
		return nil
	})
	claimed := w.claimsOf(map[string]int{first: 1, second: 1}, "of a deleted subscriber")
	number := claimed[0].Target.SubscriberNumber
	for i, c := range claimed {
		w.equal(c.Event.ID, d.ID, "event of what is still to be sent")
		w.equal(c.Target.Subscriber, owner, "subscriber in the Target")
		w.sweep(100)
		k, err := w.keyringOf(number)
		w.noError(err, "reading the keyring of a deleted subscriber while %d attempts are in flight", 2-i)
		w.equal([]any{k.Subscriber, k.Version, len(k.Secrets), string(k.Secrets[0].Sealed)}, []any{owner, c.Target.KeyringVersion, 1, "sealed " + owner}, "keyring: subscriber, version, number of secrets, and secret")
		w.record(result(c, sender.ClassNone))
	}
	w.sweep(100)
	w.gone(first, "of a deleted subscriber that has nothing left")
	w.gone(second, "of a deleted subscriber that has nothing left")
	_, err := w.keyringOf(number)
	w.errorIs(err, sender.ErrNotFound, "reading the keyring of a deleted subscriber that has nothing left")
	w.equal(w.statuses(first), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses in the end")
	w.equal(w.delivery(d.ID, first).Subscriber, owner, "Subscriber of a delivery in the end")
}

func deleteSubscriberRewraps(w *world) {
	owner := w.subscriberWith(sealed("sec_1", "old", "k1"))
	w.subscribe(owner, "*")
	w.publish(w.draft("a.b"))
	w.expand()
	w.deleteSubscriber(owner)
	later := w.subscriberWith(sealed("sec_1", "other", "k1"))
	under := func(key, after string) (ids []string) {
		w.inTx(func(tx any) error {
			page, err := w.Store.KeyringsTx(w.ctx, tx, key, after, 10)
			ids = nil
			for _, k := range page {
				ids = append(ids, k.Subscriber)
			}
			return err
		})
		return ids
	}
	w.equal(under("k1", ""), []string{owner, later}, "subscribers under a key, of which one is deleted")
	w.equal(under("k1", owner), []string{later}, "page after a deleted subscriber")
	w.check(w.rewrap(owner, "old", sealed("sec_1", "new", "k2")), "a deleted subscriber's secret was not sealed anew")
	w.equal(under("k1", ""), []string{later}, "subscribers under a key, after one was sealed anew")

	c := w.claimOne()
	k, err := w.keyringOf(c.Target.SubscriberNumber)
	w.noError(err, "reading the keyring of a deleted subscriber")
	w.equal(k.Version, c.Target.KeyringVersion, "version of a deleted subscriber's keyring that was sealed anew")
	w.sameSecrets(k, sealed("sec_1", "new", "k2"))
	w.record(result(c, sender.ClassNone))
	w.sweep(100)
	w.equal(under("k2", ""), []string(nil), "subscribers under the key of secrets that were destroyed")
	w.equal(under("k1", owner), []string{later}, "page after a subscriber whose secrets were destroyed")
	w.check(!w.rewrap(owner, "new", sealed("sec_1", "late", "k3")), "a secret that was destroyed was sealed anew")
}

func deleteSubscriberOperator(w *world) {
	other := w.subscriber()
	w.createSubscriber(sender.Operator)
	sub := w.subscribe(sender.Operator, "a.*")
	var drafts []sender.Draft
	for range 3 {
		d := w.draft("a.b")
		d.Subscriber = other
		drafts = append(drafts, d)
	}
	w.publish(drafts[0])
	w.expand()
	w.record(result(w.claimOne(), sender.ClassNone))
	w.publish(drafts[1])
	w.deleteSubscriber(sender.Operator)
	w.publish(drafts[2])
	w.expand()
	w.equal(w.events(sub), sorted(drafts[:2]...), "events of a deleted operator's subscription")
	w.record(result(w.claimOne(), sender.ClassNone))
	w.sweep(100)
	w.gone(sub, "of a deleted operator that has nothing left")
}

func deleteSubscriberHeld(w *world) {
	owner := w.subscriber()
	active, paused, disabled := w.subscribe(owner, "*"), w.subscribe(owner, "*"), w.subscribe(owner, "*")
	w.publish(w.draft("a.b"))
	w.expand()
	w.pause(paused)
	w.disable(disabled)
	w.deleteSubscriber(owner)
	for _, id := range []string{paused, disabled} {
		w.gone(id, "that was held when its subscriber was deleted")
		w.equal(w.statuses(id), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses of a held subscription of a deleted subscriber")
	}
	w.equal(w.read(active).Status, sender.SubscriptionClosing, "status of an active subscription of a deleted subscriber")
	c := w.claimOne()
	w.equal(c.Target.Subscription, active, "subscription of what is claimed")
	w.unsubscribe(active)
	w.endsSwept()
	w.record(result(c, sender.ClassNone))
	w.endsSwept()
	_, err := w.keyringOf(c.Target.SubscriberNumber)
	w.errorIs(err, sender.ErrNotFound, "reading the keyring after the last subscription was deleted")
}

func deleteSubscriberAlone(w *world) {
	_, sub := w.one()
	c := w.claimOne()
	w.record(result(c, sender.ClassNone))
	w.unsubscribe(sub)
	w.sweep(100)
	_, err := w.keyringOf(c.Target.SubscriberNumber)
	w.noError(err, "reading the keyring of a subscriber whose subscriptions were deleted")
	w.deleteSubscriber(c.Target.Subscriber)
	_, err = w.keyringOf(c.Target.SubscriberNumber)
	w.errorIs(err, sender.ErrNotFound, "reading the keyring of a subscriber that was deleted after its subscriptions")
}

func deleteSubscriberRolledBack(w *world) {
	owner, empty := w.subscriber(), w.subscriber()
	sub := w.subscribe(owner, "*")
	w.undone(func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, owner) })
	w.undone(func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, empty) })
	w.sweep(100)
	w.equal(w.read(sub).Status, sender.SubscriptionActive, "status after a deletion that rolled back")
	d := w.draft("a.b")
	d.Subscriber = owner
	w.publish(d)
	w.expand()
	c := w.claimOne()
	k, err := w.keyringOf(c.Target.SubscriberNumber)
	w.noError(err, "reading a keyring after a deletion that rolled back")
	w.equal(k.Secrets[0].ID, "sec_"+owner, "id of the secret")
	w.inTx(func(tx any) error {
		k, err := w.Store.SubscriberKeyringTx(w.ctx, tx, empty)
		w.noError(err, "reading the keyring of a subscriber whose deletion rolled back")
		w.equal(len(k.Secrets), 1, "secrets")
		return nil
	})
}
