package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func closeRules() []rule {
	return []rule{
		{"close", "A closing subscription gets what was committed before, and what the transaction published before it closed it, and nothing later, whenever that is expanded.", closeGets},
		{"close, ends", "A closing subscription is read and listed as closing, and its deliveries go on, until all of them have ended; then a sweep deletes it.", closeEnds},
		{"close, waits for the expansion", "A closing subscription is not deleted before what it still gets is expanded, also in the middle of an event.", closeWaits},
		{"close, held", "A paused or disabled subscription that is closed is deleted at once, and its live deliveries read as cancelled.", closeHeld},
		{"close, again", "Closing a closing subscription changes nothing; an unknown or deleted one is ErrNotFound.", closeAgain},
		{"close, then delete", "A closing subscription can be deleted at once.", closeDelete},
		{"close, redelivered", "A redelivered delivery of a closing subscription is sent before the subscription ends.", closeRedelivered},
		{"close, rolled back", "A closing that rolled back changes nothing.", closeRolledBack},
	}
}

func closeGets(w *world) {
	owner := w.subscriber()
	sub, sibling := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	expanded, waiting := w.draft("a.b"), w.draft("a.b")
	own, tooLate, later := w.addressed(owner, sub), w.draft("a.b"), w.draft("a.b")
	w.publish(expanded)
	w.expand()
	w.publish(waiting)
	w.inTx(func(tx any) error {
		_, err := w.Store.PublishTx(w.ctx, tx, []sender.Draft{own})
		w.noError(err, "publishing")
		w.noError(w.Store.CloseSubscriptionTx(w.ctx, tx, sub), "closing")
		_, err = w.Store.PublishTx(w.ctx, tx, []sender.Draft{tooLate})
		return err
	})
	w.publish(later)
	w.expand()
	w.equal(w.events(sub), sorted(expanded, waiting, own), "events of the closing subscription")
	w.equal(w.events(sibling), sorted(expanded, waiting, tooLate, later), "events of another subscription")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusPending: 3}, "statuses of the closing subscription")
	w.claimsOf(map[string]int{sub: 3, sibling: 4}, "while it is closing")
}

func closeEnds(w *world) {
	owner := w.subscriber()
	sub, sibling := w.subscribe(owner, "only.addressed"), w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 3)
	claimed := w.claim(plenty)
	w.record(result(claimed[0], sender.ClassNone))
	before := w.read(sub)
	w.close(sub)
	still := func(backlog int64, when string) {
		w.Helper()
		w.equal(w.sweep(100), 0, "deliveries ended by a sweep %s", when)
		want := before
		want.Status, want.Backlog = sender.SubscriptionClosing, backlog
		got := w.read(sub)
		got.Health = want.Health
		w.equal(got, want, "closing subscription %s", when)
		w.inTx(func(tx any) error {
			list, err := w.Store.SubscriptionsTx(w.ctx, tx, owner, "", 10)
			w.noError(err, "listing subscriptions")
			w.equal([]int{len(list), slices.IndexFunc(list, func(s sender.Subscription) bool { return s.Status == sender.SubscriptionClosing })}, []int{2, 0}, "subscriptions listed, and index of the closing one, %s", when)
			return nil
		})
	}
	still(2, "while two attempts are in flight")
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		if r.Class == sender.ClassStatus {
			dec.Status = sender.StatusDeadLettered
		}
		return dec
	}
	w.record(result(claimed[1], sender.ClassTimeout), result(claimed[2], sender.ClassStatus))
	before.DeadLettered = 1
	still(1, "while one awaits its retry")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1, sender.StatusDeadLettered: 1, sender.StatusAwaitingRetry: 1}, "statuses")
	w.Advance(retryDelay(1))
	w.claimOne()
	w.Advance(lease + time.Second)
	c := w.claimOne() // the attempt before was lost
	w.equal(c.Number, 3, "number of the attempt")
	w.record(result(c, sender.ClassNone))
	w.equal(w.sweep(100), 0, "deliveries ended by the sweep that deletes it")
	w.gone(sub, "that was closed and has nothing left")
	w.equal(w.read(sibling).Status, sender.SubscriptionActive, "status of another subscription")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 2, sender.StatusDeadLettered: 1}, "statuses after the end")
	w.errorIs(w.try(func(tx any) error {
		s := w.subscription(owner, "*")
		s.ID = sub
		return w.Store.CreateSubscriptionTx(w.ctx, tx, s)
	}), sender.ErrExists, "creating a subscription with the id of one that was closed")

	w.close(sibling)
	w.sweep(100)
	w.gone(sibling, "that was closed and never had anything")
}

func closeWaits(w *world) {
	owner := w.subscriber()
	w.subscribe(owner, "*")
	first, last := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	d := w.draft("a.b")
	w.publish(d)
	w.close(first)
	w.close(last)
	w.publish(w.draft("a.b"))
	for range 10 {
		w.sweep(100)
		for _, sub := range []string{first, last} {
			w.equal(w.read(sub).Status, sender.SubscriptionClosing, "status of a closing subscription before everything is expanded and sent")
		}
		x, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 1, Deliveries: 1}, dispatch.Batch{})
		w.noError(err, "expanding")
		if !x.More {
			break
		}
	}
	w.expand()
	for _, sub := range []string{first, last} {
		w.equal(w.events(sub), sorted(d), "events of a closing subscription")
	}
	w.record(resultsOf(w.claim(plenty), sender.ClassNone)...)
	w.sweep(100)
	w.gone(first, "that was closed, and has got all")
	w.gone(last, "that was closed, and has got all")
}

func closeHeld(w *world) {
	for name, hold := range w.holds() {
		owner := w.subscriber()
		sub := w.subscribe(owner, "x")
		w.publish(w.draft("x"))
		w.expand()
		r := result(w.claimOne(), sender.ClassNone)
		w.publish(w.draft("x"), w.draft("x"))
		w.expand()
		w.publish(w.draft("x")) // is not expanded before
		hold(sub)
		w.close(sub)
		w.gone(sub, "that was closed while it was "+name)
		w.equal(w.expand(), 0, "deliveries made after it was closed while it was %s", name)
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 3}, "statuses, %s", name)
		w.claimNothing("of what was closed while it was %s", name)
		w.record(r)
		w.endsSwept()
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 2, sender.StatusDelivered: 1}, "statuses after the attempt in flight succeeded, %s", name)
	}
}

func closeAgain(w *world) {
	d, sub := w.one()
	w.close(sub)
	before := w.read(sub)
	late := w.draft("only.addressed") // it asks for these
	w.publish(late)
	w.close(sub)
	w.equal(w.read(sub), before, "subscription that was closed twice")
	w.expand()
	w.equal(w.events(sub), sorted(d), "events of a subscription that was closed twice")
	w.errorIs(w.tryClose("wsub_unknown"), sender.ErrNotFound, "closing an unknown subscription")
	w.record(result(w.claimOne(), sender.ClassNone))
	w.sweep(100)
	w.errorIs(w.tryClose(sub), sender.ErrNotFound, "closing a subscription whose closing has come to its end")
	_, other := w.one()
	w.unsubscribe(other)
	w.errorIs(w.tryClose(other), sender.ErrNotFound, "closing a deleted subscription")
}

func closeDelete(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "x")
	w.publish(w.draft("x"))
	w.expand()
	w.publish(w.draft("x"))
	w.close(sub)
	w.unsubscribe(sub)
	w.gone(sub, "that was deleted while it was closing")
	w.equal(w.expand(), 0, "deliveries made after it was deleted")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses")
	w.claimNothing("of what was deleted while it was closing")
	w.endsSwept()
}

func closeRedelivered(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 2)
	claimed := w.claim(plenty)
	w.record(result(claimed[0], sender.ClassNone))
	w.close(sub)
	w.redeliver(w.list(history.DeliveryQuery{Subscription: sub, Status: sender.StatusDelivered})[0].ID)
	w.record(result(claimed[1], sender.ClassNone))
	w.sweep(100)
	w.equal(w.read(sub).Status, sender.SubscriptionClosing, "status while a redelivery is due")
	w.record(result(w.claimOne(), sender.ClassNone))
	w.sweep(100)
	w.gone(sub, "that was closed and has nothing left")
}

func closeRolledBack(w *world) {
	owner := w.subscriber()
	sub, held := w.subscribe(owner, "x"), w.subscribe(owner, "x")
	w.pause(held)
	waiting, later := w.draft("x"), w.draft("x")
	w.publish(waiting)
	before := []sender.Subscription{w.read(sub), w.read(held)}
	for _, id := range []string{sub, held} {
		w.undone(func(tx any) error { return w.Store.CloseSubscriptionTx(w.ctx, tx, id) })
	}
	w.sweep(100)
	w.equal([]sender.Subscription{w.read(sub), w.read(held)}, before, "subscriptions after closings that rolled back")
	w.publish(later)
	w.expand()
	for _, id := range []string{sub, held} {
		w.equal(w.events(id), sorted(waiting, later), "events after a closing that rolled back")
	}
}
