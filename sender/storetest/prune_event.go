package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func pruneSubscriptions(w *world) {
	owner := w.subscriber()
	active, none, recorded, flying := w.subscribe(owner, "none.*"), w.subscribe(owner, "none.*"), w.subscribe(owner, "a.b"), w.subscribe(owner, "a.c")
	delivered, inFlight := w.draft("a.b"), w.draft("a.c")
	delivered.Subscriber, inFlight.Subscriber = owner, owner
	w.publish(delivered)
	w.expand()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(delivered.ID, recorded).ID
	w.publish(inFlight)
	w.expand()
	claimed := w.claimOne()
	for _, sub := range []string{none, recorded, flying} {
		w.unsubscribe(sub)
	}
	w.equal(w.prune(ages{events: time.Nanosecond}).Subscriptions, 0, "subscriptions that go and were not swept")
	w.sweep(10)
	w.equal(w.prune(all(time.Hour)).Subscriptions, 0, "subscriptions that go right after they were swept")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(ages{dead: time.Hour, events: time.Hour, notices: time.Hour}), dispatch.Pruned{Subscriptions: 1}, "pruned when one has nothing")
	after := func(id string) error {
		return w.try(func(tx any) error {
			_, err := w.Store.SubscriptionsTx(w.ctx, tx, "", id, 1)
			return err
		})
	}
	w.errorIs(after(none), sender.ErrNotFound, "listing what comes after a subscription that was pruned")
	w.noError(after(recorded), "listing what comes after one that was deleted")
	w.get(id)
	w.equal(w.sweep(10), 1, "swept: the attempt that was lost")
	w.Advance(2 * time.Hour)
	w.lost(result(claimed, sender.ClassNone), inFlight.ID, flying, "swept")
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{Deliveries: 2, Events: 2, Subscriptions: 2}, "pruned when nothing is left of the others")
	w.check(w.tryRecord(result(claimed, sender.ClassNone))[0].Lost, "a result of a subscription that was pruned does not read as lost")
	w.pruned(id)
	w.read(active)
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{}, "pruned after that")
	w.deleteSubscriber(owner)
	w.sweep(10)
	w.Advance(2 * time.Hour)
	w.sweep(10)
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{Subscriptions: 1}, "pruned after the subscriber was deleted")
	w.errorIs(w.try(func(tx any) error { return w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: owner}, nil) }), sender.ErrExists, "using a subscriber's id again")
}

func pruneEvents(w *world) {
	sub := w.subscribe(w.subscriber(), "a.b")
	d := w.draftOn("c", sender.Object{Type: "thing", ID: "1"}) // nobody gets it
	d.Key, d.KeyHash = "key", [32]byte{1}
	w.publish(d)
	w.publish(w.draftOn("c", d.Object))
	w.expand()
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{}, "pruned before the events' time")
	again := w.draftOn("c", d.Object)
	again.Key, again.KeyHash = d.Key, d.KeyHash
	w.equal(w.publish(again)[0], sender.Ref{ID: d.ID, Version: 1, Duplicate: true}, "Ref of a publish under the same key")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{Events: 2}, "pruned after the events' time")

	again.Type, again.KeyHash = "a.b", [32]byte{2}
	w.equal(w.publish(again)[0], sender.Ref{ID: again.ID, Version: 3}, "Ref of a publish under the same key, once its event is pruned")
	w.expand()
	w.equal(w.events(sub), sorted(again), "events delivered")
}

func pruneUnexpanded(w *world) {
	subs := []string{w.subscribe(w.subscriber(), "*"), w.subscribe(w.subscriber(), "*")}
	d, e := w.draft("a.b"), w.draft("a.b")
	w.publish(d, e)
	_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 1, Deliveries: 1}, dispatch.Batch{})
	w.noError(err, "expanding half of an event")
	w.record(result(w.claimOne(), sender.ClassNone))
	for range 2 { // so that the pass has batches behind that of events
		n := w.note(sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})
		_, err := w.Store.AcknowledgeNotice(w.ctx, n[0].ID, "")
		w.noError(err, "acknowledging")
	}
	w.Advance(1000 * time.Hour)
	pruned, _ := w.pruneBy(w.pruneParams(all(time.Hour), 1))
	w.equal([]int{pruned.Events, pruned.Notices}, []int{0, 2}, "events and notices pruned")
	w.expand()
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	w.check(slices.Contains(w.events(subs[0]), e.ID) && len(w.events(subs[1])) == 2, "an event that was not expanded has lost deliveries")
}

func pruneBesideHeld(w *world) {
	owners, subs := w.crowd(2, 0)
	for range 5 {
		w.backlog(owners[0], subs[0], 4)
		w.backlog(owners[1], subs[1], 4)
	}
	w.pause(subs[0])
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	w.Advance(10_000 * time.Hour)
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{Deliveries: 20, Events: 20}, "pruned beside a held backlog")
	w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusHeld: 20}, "statuses of the held ones")
	w.resume(subs[0], sender.Resume{})
	for _, c := range w.claim(plenty) {
		w.check(len(c.Body) > 0, "event %s has no body", c.Event.ID)
		w.record(result(c, sender.ClassNone))
	}
	w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusDelivered: 20}, "statuses once they are resumed")
}

func pruneNumbers(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	w.publish(w.draft("a.b"), w.draft("a.b"))
	w.expand()
	keys := map[dispatch.DeliveryKey]bool{}
	for _, c := range w.claim(plenty) {
		keys[c.Key] = true
		w.record(result(c, sender.ClassNone))
	}
	w.Advance(100 * time.Hour)
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{Deliveries: 2, Events: 2}, "pruned")

	closing := w.subscribe(owner, "*")
	w.publish(w.addressed(owner, closing))
	w.expand()
	c := w.claimOne() // so that it does not end at once
	w.record(result(c, sender.ClassNone))
	w.Advance(100 * time.Hour)
	w.prune(all(time.Hour))
	w.close(closing)
	after := w.draft("a.b")
	w.publish(after)
	later := w.subscribe(owner, "*")
	w.expand()
	w.equal(w.events(closing), []string{}, "events that a subscription gets that was closed before them")
	w.equal(w.events(later), []string{}, "events that a subscription gets that was made after them")
	w.equal(w.events(sub), sorted(after), "events that a subscription gets")
	w.check(!keys[w.claimOne().Key], "a number was used again")
}
