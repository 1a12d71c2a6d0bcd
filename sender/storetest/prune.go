package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

func pruneRules[Tx any]() []rule[Tx] {
	rules := []rule[Tx]{
		{"delivered", "The record of a delivered delivery goes once its last attempt is older than its time, with its attempts; other deliveries of the event stay.", pruneDelivered[Tx]},
		{"cancelled", "The record of a cancelled delivery goes once it ended longer ago than its time.", pruneCancelled[Tx]},
		{"dead letters", "A dead letter goes by its own time, counted from its end, and until then is kept whole.", pruneDead[Tx]},
		{"live ones stay", "What is pending, held, waiting or in flight stays whatever its age, with its attempts and its event, and goes its way.", pruneLive[Tx]},
		{"sent again", "A record whose delivery was sent again counts from its last attempt.", pruneSentAgain[Tx]},
		{"events", "An event goes once it is older than its time and nothing of it is left, with its idempotency key; versions stay.", pruneEvents[Tx]},
		{"not expanded", "An event that is not expanded stays, and is delivered.", pruneUnexpanded[Tx]},
		{"held backlogs", "A held backlog stays, and does not keep the events of others.", pruneBesideHeld[Tx]},
		{"subscriptions", "A deleted subscription goes once it was swept longer ago than events are kept, and nothing of it is live or on record; its subscriber's id is not used again.", pruneSubscriptions[Tx]},
		{"objects", "An object's last version is forgotten once its event was removed longer ago than its time, if nothing was published about it since; what is published about it then gets a version above all that it had.", pruneObjects[Tx]},
		{"objects for ever", "Without a time for objects, and of those with high versions, the last version is remembered when the event is removed.", pruneNoObjects[Tx]},
		{"notices", "Acknowledged notices go once that is older than their time; others stay.", pruneNotices[Tx]},
		{"times apart", "Each time removes only what it is of; a zero one removes nothing.", pruneTimes[Tx]},
		{"bounded", "A batch removes up to Limit, and passes over a few times Limit; a pass goes on where the last batch ended.", pruneBounded[Tx]},
		{"malformed", "A malformed cursor and a limit below 1 are ErrInvalid.", pruneMalformed[Tx]},
		{"numbers", "What was pruned leaves no number behind: who subscribes then gets what is committed later, and who is closed then gets nothing later.", pruneNumbers[Tx]},
		{"beside redeliveries", "A delivery that is redelivered while records are pruned is either ErrNotFound or sent, with its body and all its attempts.", pruneBesideRedeliveries[Tx]},
	}
	rules = append(rules, prunedRules[Tx]()...)
	for seed := range uint64(3) {
		rules = append(rules, rule[Tx]{
			name: fmt.Sprintf("random, seed %d", seed+1),
			rule: "Whenever it is pruned, nothing that is live, held or dead-lettered is lost, and everything goes in the end.",
			run:  func(w *world[Tx]) { pruneRandomly(w, seed+1) },
		})
	}
	return rules
}

// ages are the times of PruneParams, as ages.
type ages struct{ delivered, dead, events, notices, objects time.Duration }

// never prunes nothing of a kind.
const never = time.Duration(0)

func (w *world[Tx]) pruneParams(a ages, limit int) sender.PruneParams {
	w.Helper()
	now := w.now()
	before := func(age time.Duration) time.Time {
		if age == never {
			return time.Time{}
		}
		return now.Add(-age)
	}
	return sender.PruneParams{
		Delivered: before(a.delivered), DeadLetters: before(a.dead), Events: before(a.events), Notices: before(a.notices), Objects: before(a.objects), Limit: limit,
	}
}

// prune does a pass and counts what it has removed.
func (w *world[Tx]) prune(a ages) sender.Pruned {
	w.Helper()
	sum, _ := w.pruneBy(w.pruneParams(a, 7))
	return sum
}

func (w *world[Tx]) pruneBy(p sender.PruneParams) (sum sender.Pruned, batches int) {
	w.Helper()
	for batches = 1; batches < plenty; batches++ {
		got, err := w.Store.Prune(w.ctx, p)
		w.noError(err, "pruning")
		n := got.Deliveries + got.DeadLetters + got.Events + got.Notices + got.Rollups + got.Subscriptions + got.Objects
		w.check(n <= p.Limit, "a batch of up to %d has removed %d", p.Limit, n)
		sum.Deliveries += got.Deliveries
		sum.DeadLetters += got.DeadLetters
		sum.Events += got.Events
		sum.Notices += got.Notices
		sum.Rollups += got.Rollups
		sum.Subscriptions += got.Subscriptions
		sum.Objects += got.Objects
		if got.Cursor == "" {
			return sum, batches
		}
		p.Cursor = got.Cursor
	}
	w.Fatal("a pass of pruning does not come to an end")
	return sum, batches
}

// all is one age of all but objects.
func all(age time.Duration) ages { return ages{delivered: age, dead: age, events: age, notices: age} }

// pruned ends the test unless a delivery is not found, nor listed.
func (w *world[Tx]) pruned(id string) {
	w.Helper()
	_, err := w.Store.Delivery(w.ctx, id)
	w.errorIs(err, sender.ErrNotFound, "reading a delivery that was pruned")
	w.errorIs(w.Store.Redeliver(w.ctx, id, time.Time{}), sender.ErrNotFound, "redelivering a delivery that was pruned")
	for _, d := range w.list(sender.DeliveryQuery{}) {
		w.check(d.ID != id, "delivery %s is listed, and was pruned", id)
	}
}

func pruneDelivered[Tx any](w *world[Tx]) {
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
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{}, "pruned 9 h after it was delivered")
	w.equal(len(w.get(id).Attempts), 2, "attempts then")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{Deliveries: 1}, "pruned 11 h after it was delivered")
	w.pruned(id)
	w.equal(w.get(held.ID), held, "the other delivery of the event")
	w.sameBody(held.Body, d, 1)
	w.equal(len(w.list(sender.DeliveryQuery{Event: d.ID})), 1, "deliveries of the event")
}

func pruneCancelled[Tx any](w *world[Tx]) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassTimeout))
	id := w.delivery(d.ID, sub).ID
	w.Advance(50 * time.Hour)
	w.unsubscribe(sub)
	w.sweep(10)
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{}, "pruned 9 h after it was cancelled")
	w.equal(len(w.get(id).Attempts), 1, "attempts then")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{Deliveries: 1, Events: 1, Subscriptions: 1}, "pruned 11 h after it was cancelled")
	w.pruned(id)
}

func pruneSubscriptions[Tx any](w *world[Tx]) {
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
	w.equal(w.prune(ages{dead: time.Hour, events: time.Hour, notices: time.Hour}), sender.Pruned{Subscriptions: 1}, "pruned when one has nothing")
	after := func(id string) error {
		return w.try(func(tx Tx) error {
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
	w.equal(w.prune(all(time.Hour)), sender.Pruned{Deliveries: 2, Events: 2, Subscriptions: 2}, "pruned when nothing is left of the others")
	w.check(w.tryRecord(result(claimed, sender.ClassNone))[0].Lost, "a result of a subscription that was pruned does not read as lost")
	w.pruned(id)
	w.read(active)
	w.equal(w.prune(all(time.Hour)), sender.Pruned{}, "pruned after that")
	w.deleteSubscriber(owner)
	w.sweep(10)
	w.Advance(2 * time.Hour)
	w.sweep(10)
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(time.Hour)), sender.Pruned{Subscriptions: 1}, "pruned after the subscriber was deleted")
	w.errorIs(w.try(func(tx Tx) error { return w.Store.CreateSubscriberTx(w.ctx, tx, sender.Subscriber{ID: owner}, nil) }), sender.ErrExists, "using a subscriber's id again")
}

func pruneDead[Tx any](w *world[Tx]) {
	d, sub := w.one()
	w.Advance(50 * time.Hour)
	w.deadLetter()
	id := w.delivery(d.ID, sub).ID
	w.Advance(40 * time.Hour)
	before := w.get(id)
	w.equal(w.prune(ages{delivered: time.Hour, dead: 50 * time.Hour, events: time.Hour, notices: time.Hour}), sender.Pruned{}, "pruned before the dead letter's time")
	w.equal(w.get(id), before, "the dead letter")
	w.equal(w.prune(ages{delivered: time.Hour, dead: never, events: time.Hour, notices: time.Hour}), sender.Pruned{}, "pruned without a time for dead letters")
	w.Advance(20 * time.Hour)
	w.equal(w.prune(ages{delivered: 1000 * time.Hour, dead: 50 * time.Hour, events: 1000 * time.Hour, notices: never}), sender.Pruned{DeadLetters: 1}, "pruned after the dead letter's time")
	w.pruned(id)
	w.equal(w.read(sub).DeadLettered, int64(0), "dead letters that the subscription counts")
	w.equal(w.prune(all(time.Hour)), sender.Pruned{Events: 1}, "pruned after the event's time")
}

func pruneLive[Tx any](w *world[Tx]) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 4)
	claimed := w.claim(plenty)
	w.record(result(claimed[0], sender.ClassTimeout), result(claimed[1], sender.ClassNone))
	w.noError(w.Store.Release(w.ctx, []sender.Release{{Key: claimed[2].Key, Token: claimed[2].Token}}), "releasing")
	w.redeliver(w.delivery(claimed[1].Event.ID, sub).ID)
	held := w.subscribe(owner, "only.addressed")
	w.backlog(owner, held, 1)
	w.pause(held)
	w.Advance(1000 * time.Hour)
	w.backlog(owner, sub, 1) // is pruned at its own age, and not before
	var before []sender.Delivery
	for _, d := range w.list(sender.DeliveryQuery{}) {
		before = append(before, w.get(d.ID))
	}
	w.equal(len(before), 6, "deliveries")
	w.equal(w.prune(all(time.Hour)), sender.Pruned{}, "pruned of what is live")
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
	w.equal(w.prune(all(time.Hour)), sender.Pruned{Deliveries: 6, Events: 6}, "pruned once all has ended")
	w.equal(w.read(sub).Backlog, int64(0), "backlog")
}

func pruneSentAgain[Tx any](w *world[Tx]) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(d.ID, sub).ID
	w.Advance(50 * time.Hour)
	w.redeliver(id)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{}, "pruned while it is to be sent again")
	w.record(result(w.claimOne(), sender.ClassStatus))
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{}, "pruned 9 h after it was sent again")
	w.equal(len(w.get(id).Attempts), 2, "attempts")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{Deliveries: 1, Events: 1}, "pruned 11 h after it was sent again")
	w.pruned(id)
}

func pruneEvents[Tx any](w *world[Tx]) {
	sub := w.subscribe(w.subscriber(), "a.b")
	d := w.draftOn("c", sender.Object{Type: "thing", ID: "1"}) // nobody gets it
	d.Key, d.KeyHash = "key", [32]byte{1}
	w.publish(d)
	w.publish(w.draftOn("c", d.Object))
	w.expand()
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{}, "pruned before the events' time")
	again := w.draftOn("c", d.Object)
	again.Key, again.KeyHash = d.Key, d.KeyHash
	w.equal(w.publish(again)[0], sender.Ref{ID: d.ID, Version: 1, Duplicate: true}, "Ref of a publish under the same key")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{Events: 2}, "pruned after the events' time")

	again.Type, again.KeyHash = "a.b", [32]byte{2}
	w.equal(w.publish(again)[0], sender.Ref{ID: again.ID, Version: 3}, "Ref of a publish under the same key, once its event is pruned")
	w.expand()
	w.equal(w.events(sub), sorted(again), "events delivered")
}

func pruneUnexpanded[Tx any](w *world[Tx]) {
	subs := []string{w.subscribe(w.subscriber(), "*"), w.subscribe(w.subscriber(), "*")}
	d, e := w.draft("a.b"), w.draft("a.b")
	w.publish(d, e)
	_, err := w.Store.Expand(w.ctx, sender.ExpandParams{Events: 1, Deliveries: 1})
	w.noError(err, "expanding half of an event")
	w.record(result(w.claimOne(), sender.ClassNone))
	w.Advance(1000 * time.Hour)
	w.equal(w.prune(all(time.Hour)).Events, 0, "events pruned")
	w.expand()
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	w.check(slices.Contains(w.events(subs[0]), e.ID) && len(w.events(subs[1])) == 2, "an event that was not expanded has lost deliveries")
}

func pruneBesideHeld[Tx any](w *world[Tx]) {
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
	w.equal(w.prune(all(time.Hour)), sender.Pruned{Deliveries: 20, Events: 20}, "pruned beside a held backlog")
	w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusHeld: 20}, "statuses of the held ones")
	w.resume(subs[0], sender.Resume{})
	for _, c := range w.claim(plenty) {
		w.check(len(c.Body) > 0, "event %s has no body", c.Event.ID)
		w.record(result(c, sender.ClassNone))
	}
	w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusDelivered: 20}, "statuses once they are resumed")
}

func pruneNotices[Tx any](w *world[Tx]) {
	var noted []sender.Notice
	for range 3 {
		noted = append(noted, w.note(sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})...)
	}
	w.Advance(50 * time.Hour)
	_, err := w.Store.AcknowledgeNotice(w.ctx, noted[0].ID, "")
	w.noError(err, "acknowledging")
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{}, "pruned 9 h after a notice was acknowledged")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), sender.Pruned{Notices: 1}, "pruned 11 h after a notice was acknowledged")
	w.equal(w.listNotices(sender.NoticeQuery{}), []string{noted[2].ID, noted[1].ID}, "notices")
	page, next, err := w.Store.Notices(w.ctx, sender.NoticeQuery{Limit: 1})
	w.noError(err, "listing notices")
	w.equal(page[0].ID, noted[2].ID, "first notice")
	page, _, err = w.Store.Notices(w.ctx, sender.NoticeQuery{Limit: 1, Cursor: next})
	w.noError(err, "listing notices")
	w.equal(page[0].ID, noted[1].ID, "second notice")
}

func pruneTimes[Tx any](w *world[Tx]) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 2)
	claimed := w.claim(plenty)
	w.record(result(claimed[0], sender.ClassNone))
	for n := range maxTries {
		w.record(result(claimed[1], sender.ClassStatus))
		w.Advance(retryDelay(maxTries))
		if n+1 < maxTries {
			claimed[1] = w.claimOne()
		}
	}
	w.publish(w.draft("nobody.asks"))
	w.expand()
	n := w.note(sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})
	_, err := w.Store.AcknowledgeNotice(w.ctx, n[0].ID, "")
	w.noError(err, "acknowledging")
	w.Advance(100 * time.Hour)
	for _, c := range []struct {
		ages ages
		want sender.Pruned
	}{
		{ages{}, sender.Pruned{}},
		{ages{events: time.Hour}, sender.Pruned{Events: 1}},
		{ages{delivered: time.Hour}, sender.Pruned{Deliveries: 1}},
		{ages{notices: time.Hour}, sender.Pruned{Notices: 1}},
		{ages{dead: time.Hour}, sender.Pruned{DeadLetters: 1}},
		{ages{events: time.Hour}, sender.Pruned{Events: 2}},
	} {
		w.equal(w.prune(c.ages), c.want, "pruned by %+v", c.ages)
	}
}

func pruneBounded[Tx any](w *world[Tx]) {
	const limit, each = 5, 30
	owner := w.subscriber()
	goes, stays := w.subscribe(owner, "only.addressed"), w.subscribe(owner, "only.addressed")
	w.backlog(owner, stays, each)
	w.backlog(owner, goes, each)
	w.pause(stays)
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	w.Advance(100 * time.Hour)
	first, err := w.Store.Prune(w.ctx, w.pruneParams(all(time.Hour), limit))
	w.noError(err, "pruning")
	w.check(first.Cursor != "", "a pass over more than a batch ends with the first")
	sum, _ := w.pruneBy(w.pruneParams(all(time.Hour), limit))
	w.equal([]int{first.Deliveries + sum.Deliveries, first.Events + sum.Events}, []int{each, each}, "records and events that went")
	sum, batches := w.pruneBy(w.pruneParams(all(time.Hour), limit))
	w.equal(sum, sender.Pruned{}, "pruned by another pass")
	w.check(batches <= each/limit+5, "a pass over %d events that stay, with a limit of %d, takes %d batches", each, limit, batches)
}

func pruneMalformed[Tx any](w *world[Tx]) {
	w.one()
	for _, p := range []sender.PruneParams{{Limit: 0}, {Limit: -1}, {Limit: 1, Cursor: "x"}, {Limit: 1, Cursor: "-1"}, {Limit: 1, Cursor: "9999.9999.9999.9999"}} {
		_, err := w.Store.Prune(w.ctx, p)
		w.errorIs(err, sender.ErrInvalid, "pruning with %+v", p)
	}
}

func pruneNumbers[Tx any](w *world[Tx]) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	w.publish(w.draft("a.b"), w.draft("a.b"))
	w.expand()
	keys := map[sender.DeliveryKey]bool{}
	for _, c := range w.claim(plenty) {
		keys[c.Key] = true
		w.record(result(c, sender.ClassNone))
	}
	w.Advance(100 * time.Hour)
	w.equal(w.prune(all(time.Hour)), sender.Pruned{Deliveries: 2, Events: 2}, "pruned")

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

func pruneBesideRedeliveries[Tx any](w *world[Tx]) {
	const n = 60
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, n)
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	list := w.list(sender.DeliveryQuery{Limit: 200})
	w.Advance(100 * time.Hour)
	p := w.pruneParams(all(time.Hour), 3)
	var redelivered []string
	var group sync.WaitGroup
	group.Go(func() {
		for _, d := range slices.Backward(list) { // as the pass goes
			switch err := w.Store.Redeliver(w.ctx, d.ID, time.Time{}); {
			case err == nil:
				redelivered = append(redelivered, d.ID)
			case !errors.Is(err, sender.ErrNotFound):
				w.Errorf("redelivering while it is pruned: %v", err)
			}
		}
	})
	for range 2 {
		group.Go(func() {
			for p := p; ; {
				got, err := w.Store.Prune(w.ctx, p)
				if err != nil {
					w.Errorf("pruning while there are redeliveries: %v", err)
				}
				if err != nil || got.Cursor == "" {
					return
				}
				p.Cursor = got.Cursor
			}
		})
	}
	group.Wait()
	if w.Failed() {
		return
	}
	w.prune(all(time.Hour))
	w.equal(len(w.list(sender.DeliveryQuery{Limit: 200})), len(redelivered), "deliveries left, against those that were redelivered")
	claimed := w.claim(plenty)
	w.equal(len(claimed), len(redelivered), "deliveries claimed, against those that were redelivered")
	for _, c := range claimed {
		w.equal(c.Number, 2, "number of the attempt")
		w.check(len(c.Body) > 0, "event %s has no body", c.Event.ID)
		w.record(result(c, sender.ClassNone))
	}
	for _, id := range redelivered {
		w.equal([]any{w.get(id).Status, len(w.get(id).Attempts)}, []any{sender.StatusDelivered, 2}, "status and attempts of one that was redelivered")
	}
	w.Advance(100 * time.Hour)
	w.prune(all(time.Hour))
	w.equal(len(w.list(sender.DeliveryQuery{})), 0, "deliveries left in the end")
}

// pruneRandomly does this and that, and prunes at any time.
func pruneRandomly[Tx any](w *world[Tx], seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	w.decide = func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
		l.Tries += maxTries - 2 // so that there are dead letters soon
		return decide(l, h, r, now)
	}
	owner := w.subscriber()
	subs := []string{w.subscribe(owner, "*"), w.subscribe(owner, "a.*"), w.subscribe(owner, "a.b")}
	paused := map[string]bool{}
	var claimed []sender.Claimed
	stays := func(d sender.Delivery) bool {
		return d.Status != sender.StatusDelivered && d.Status != sender.StatusCancelled
	}
	kept := func(list []sender.Delivery) (ids []string) {
		for _, d := range list {
			if stays(d) {
				ids = append(ids, d.ID)
			}
		}
		return ids
	}
	finish := func() {
		for _, c := range claimed {
			w.tryRecord(result(c, []sender.Class{sender.ClassNone, sender.ClassStatus, sender.ClassTimeout, sender.ClassReset}[random.IntN(4)]))
		}
		claimed = nil
	}
	for range 150 {
		switch random.IntN(9) {
		case 0, 1:
			w.publish(w.draft([]string{"a.b", "a.c", "d"}[random.IntN(3)]))
		case 2:
			_, err := w.Store.Expand(w.ctx, sender.ExpandParams{Events: 1 + random.IntN(3), Deliveries: 1 + random.IntN(4)})
			w.noError(err, "expanding")
		case 3:
			claimed = append(claimed, w.claim(1+random.IntN(3))...)
		case 4:
			finish()
		case 5:
			if list := w.list(sender.DeliveryQuery{Limit: 200}); len(list) > 0 {
				w.redeliver(list[random.IntN(len(list))].ID)
			}
		case 6:
			w.Advance([]time.Duration{time.Second, 2 * lease, 20 * time.Minute, 3 * time.Hour}[random.IntN(4)])
		case 7:
			if sub := subs[random.IntN(len(subs))]; paused[sub] {
				w.resume(sub, sender.Resume{})
				paused[sub] = false
			} else {
				w.pause(sub)
				paused[sub] = true
			}
		case 8:
			before := kept(w.list(sender.DeliveryQuery{Limit: 200}))
			w.pruneBy(w.pruneParams(ages{delivered: time.Hour, events: time.Hour}, 1+random.IntN(5)))
			w.equal(kept(w.list(sender.DeliveryQuery{Limit: 200})), before, "what is live, held or dead-lettered after pruning")
			c, err := w.Store.Counts(w.ctx)
			w.noError(err, "counting")
			w.equal(c.Live+c.Held+c.DeadLettered, int64(len(before)), "what Counts says is live, held or dead-lettered after pruning")
			for _, id := range before {
				d := w.get(id)
				w.check(len(d.Body) > 0 && len(d.Attempts) == d.AttemptCount, "%s, which is %s, has lost its body or attempts", id, d.Status)
			}
		}
	}
	for _, sub := range subs {
		w.resume(sub, sender.Resume{})
	}
	w.expand()
	for rounds := 0; ; rounds++ {
		w.check(rounds < 50, "it does not come to an end")
		finish()
		w.Advance(24 * time.Hour)
		if claimed = w.claim(plenty); len(claimed) == 0 {
			break
		}
	}
	w.Advance(24 * time.Hour)
	w.prune(all(time.Hour))
	w.equal(len(w.list(sender.DeliveryQuery{})), 0, "deliveries left in the end")
	w.equal(w.prune(all(time.Hour)), sender.Pruned{}, "pruned by another pass")
	for _, sub := range subs {
		s := w.read(sub)
		w.equal([]int64{s.Backlog, s.DeadLettered}, []int64{0, 0}, "backlog and dead letters that a subscription counts in the end")
	}
}
