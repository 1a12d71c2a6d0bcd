package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func pruneDelivered(w *world) {
	one, other := w.subscribe(w.subscriber(), "*"), w.subscribe(w.subscriber(), "*")
	d := w.draft("a.b")
	w.publish(d)
	w.pause(other)
	w.expand()
	w.Advance(50 * time.Hour)
	w.record(result(w.claimOne(), sender.ClassTimeout))
	w.Advance(retryDelay(1))
	w.record(result(w.claimOne(), sender.ClassNone))
	id, held := w.delivery(d.ID, one).ID, w.delivery(d.ID, other)
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{}, "pruned 9 h after it was delivered")
	w.equal(len(w.get(id).Attempts), 2, "attempts then")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{Deliveries: 1}, "pruned 11 h after it was delivered")
	w.pruned(id)
	w.equal(w.get(held.ID), held, "the other delivery of the event")
	w.sameBody(held.Body, d, 1)
	w.equal(len(w.list(history.DeliveryQuery{Event: d.ID})), 1, "deliveries of the event")
}

func pruneCancelled(w *world) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassTimeout))
	id := w.delivery(d.ID, sub).ID
	w.Advance(50 * time.Hour)
	w.unsubscribe(sub)
	w.sweep(10)
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{}, "pruned 9 h after it was cancelled")
	w.equal(len(w.get(id).Attempts), 1, "attempts then")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{Deliveries: 1, Events: 1, Subscriptions: 1}, "pruned 11 h after it was cancelled")
	w.pruned(id)
}

func pruneDead(w *world) {
	d, sub := w.one()
	w.Advance(50 * time.Hour)
	w.deadLetter()
	id := w.delivery(d.ID, sub).ID
	w.Advance(40 * time.Hour)
	before := w.get(id)
	w.equal(w.prune(ages{delivered: time.Hour, dead: 50 * time.Hour, events: time.Hour, notices: time.Hour}), dispatch.Pruned{}, "pruned before the dead letter's time")
	w.equal(w.get(id), before, "the dead letter")
	w.equal(w.prune(ages{delivered: time.Hour, dead: never, events: time.Hour, notices: time.Hour}), dispatch.Pruned{}, "pruned without a time for dead letters")
	w.Advance(20 * time.Hour)
	w.equal(w.prune(ages{delivered: 1000 * time.Hour, dead: 50 * time.Hour, events: 1000 * time.Hour, notices: never}), dispatch.Pruned{DeadLetters: 1}, "pruned after the dead letter's time")
	w.pruned(id)
	w.equal(w.read(sub).DeadLettered, int64(0), "dead letters that the subscription counts")
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{Events: 1}, "pruned after the event's time")
}

func pruneLive(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 4)
	claimed := w.claim(plenty)
	w.record(result(claimed[0], sender.ClassTimeout), result(claimed[1], sender.ClassNone))
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: claimed[2].Key, Token: claimed[2].Token}}), "releasing")
	w.redeliver(w.delivery(claimed[1].Event.ID, sub).ID)
	held := w.subscribe(owner, "only.addressed")
	w.backlog(owner, held, 1)
	w.pause(held)
	w.Advance(1000 * time.Hour)
	w.backlog(owner, sub, 1) // is pruned at its own age, and not before
	var before []sender.Delivery
	for _, d := range w.list(history.DeliveryQuery{}) {
		before = append(before, w.get(d.ID))
	}
	w.equal(len(before), 6, "deliveries")
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{}, "pruned of what is live")
	for _, d := range before {
		w.equal(w.get(d.ID), d, "a delivery that is live")
	}
	w.record(result(claimed[3], sender.ClassNone)) // nobody else has claimed it
	w.resume(held, sender.Resume{})
	again := w.claim(plenty)
	w.equal(len(again), 5, "deliveries claimed after pruning")
	for _, c := range again {
		w.check(len(c.Body) > 0, "event %s has no body", c.Event.ID)
		w.record(result(c, sender.ClassNone))
	}
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{Deliveries: 6, Events: 6}, "pruned once all has ended")
	w.equal(w.read(sub).Backlog, int64(0), "backlog")
}

func pruneSentAgain(w *world) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(d.ID, sub).ID
	w.Advance(50 * time.Hour)
	w.redeliver(id)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{}, "pruned while it is to be sent again")
	w.record(result(w.claimOne(), sender.ClassStatus))
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{}, "pruned 9 h after it was sent again")
	w.equal(len(w.get(id).Attempts), 2, "attempts")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{Deliveries: 1, Events: 1}, "pruned 11 h after it was sent again")
	w.pruned(id)
}
