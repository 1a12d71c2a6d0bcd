package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// orderProcessRules are about several processes that claim from the same subscriptions.
func orderProcessRules() []rule {
	return []rule{
		{"one process", "While a process holds deliveries of a subscription it alone claims of it, also what has just arrived; what others hold keeps nobody from other subscriptions, of the same subscriber or not.", orderOneProcess},
		{"passed on", "A subscription is free once all that a process held of it is recorded or released. What waits is claimed by whoever comes, in order.", orderPassedOn},
		{"passed on by failures", "No process holds a delivery that waits for a retry.", orderPassedOnByFailures},
		{"passed on from one that is gone", "A subscription is free once all leases of it have ended, by themselves or because their process is taken over; not while one has not.", orderPassedOnFromGone},
		{"nobody's", "A claim that is made by no process keeps nobody away, and is kept away as another process is.", orderNobodys},
		{"held by others, and in nobody's way", "However many subscriptions others hold, a claim with one slot finds the one that they do not. To a process that knows of theirs nothing of them is due.", orderNotInTheWay},
		{"asked for, and held by others", "A delivery that is redelivered while a process holds its subscription is due at once to that process, and to others once the subscription is free.", orderAskedFor},
		{"dispatched by two processes", "Two Dispatchers, each in a process of its own, make no first attempt for a subscription while one of a lower version of the object is under way, nor after one of a higher version.", orderDispatchedByTwo},
	}
}

// as is a claim of all due deliveries by a process.
func as(process int64) dispatch.ClaimParams {
	return dispatch.ClaimParams{Lease: lease, By: dispatch.Presence{Process: process, Beat: 1}, Lanes: lanes(plenty)}
}

// some is a claim by a process of up to n deliveries of each lane.
func some(process int64, n int) dispatch.ClaimParams {
	p := as(process)
	p.Lanes = lanes(n)
	return p
}

// heldFrom ends the test if a process can claim a delivery.
func (w *world) heldFrom(process int64, when string) {
	w.Helper()
	w.equal(len(w.claimBy(as(process)).Claimed), 0, "deliveries claimed by process %d %s", process, when)
}

func (w *world) giveBack(claimed ...dispatch.Claimed) {
	w.Helper()
	var back []dispatch.Release
	for _, c := range claimed {
		back = append(back, dispatch.Release{Key: c.Key, Token: c.Token})
	}
	w.noError(w.Store.Release(w.ctx, back), "releasing")
}

// queue is a subscription with deliveries that are due, about one object.
func (w *world) queue(n int) (owner, sub string, drafts []sender.Draft) {
	w.Helper()
	owner = w.subscriber()
	sub = w.subscribe(owner, "only.addressed")
	return owner, sub, w.series(owner, sub, n, 1)
}

func orderOneProcess(w *world) {
	owner, sub, drafts := w.queue(6)
	held := w.claimBy(some(7, 2)).Claimed
	w.equal(indexes(drafts, held), []int{0, 1}, "events claimed by the first process")
	w.heldFrom(8, "while another one holds two of them")
	last := w.draftOn("a.b", sender.Object{Type: "thing", ID: "one"})
	last.Subscriber, last.Subscription = owner, sub
	w.publish(last)
	other := as(8)
	other.Token = w.token()
	_, taken, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{Decide: w.decide, Claim: other})
	w.noError(err, "a step that expands and claims")
	w.equal(len(taken.Claimed), 0, "deliveries claimed by the other process in the step that finds a new one")
	drafts = append(drafts, last)
	w.record(result(held[0], sender.ClassNone))
	w.heldFrom(8, "while another one holds one of them")

	sibling := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sibling, 2)
	w.one()
	w.equal(given(w.claimBy(as(8)).Claimed)[sub], 0, "deliveries claimed of the subscription that another process holds")
	all := w.claimBy(as(7)).Claimed
	w.equal(indexes(drafts, all), []int{2, 3, 4, 5, 6}, "events claimed by the process that holds the subscription")
	w.equal(w.delivery(drafts[0].ID, sub).Status, sender.StatusDelivered, "status of what was recorded")
}

func orderPassedOn(w *world) {
	owner, sub, drafts := w.queue(5)
	held := w.claimBy(some(7, 4)).Claimed
	w.record(result(held[0], sender.ClassNone))
	w.giveBack(held[2], held[3])
	w.heldFrom(8, "while another one holds one of them")
	w.giveBack(held[1])
	w.Advance(time.Millisecond)
	got := w.claimBy(some(8, 2)).Claimed
	w.equal(indexes(drafts, got), []int{1, 2}, "events claimed by another process, of which four were held and three released")
	w.heldFrom(7, "once another one holds what it has released")
	w.record(result(got[0], sender.ClassNone), result(got[1], sender.ClassNone))
	w.equal(indexes(drafts, w.claimBy(as(7)).Claimed), []int{3, 4}, "events claimed when nobody holds any")

	more := w.series(owner, sub, 1, 1)
	w.heldFrom(8, "of what has arrived while another one holds others")
	w.equal(indexes(more, w.claimBy(as(7)).Claimed), []int{0}, "events claimed that have arrived")
}

func orderPassedOnByFailures(w *world) {
	_, _, drafts := w.queue(3)
	held := w.claimBy(some(7, 1)).Claimed
	w.record(result(held[0], sender.ClassTimeout))
	w.Advance(retryDelay(1) - time.Second)
	got := w.claimBy(some(8, 1)).Claimed
	w.equal(indexes(drafts, got), []int{1}, "events claimed by another process once the first has failed")
	w.Advance(time.Second)
	w.heldFrom(7, "when the retry is due of what it attempted, and another one holds the subscription")
	w.record(result(got[0], sender.ClassNone))
	w.equal(len(w.claimBy(as(7)).Claimed), 2, "deliveries claimed when nobody holds any")
}

func orderPassedOnFromGone(w *world) {
	_, sub, _ := w.queue(4)
	w.equal(len(w.claimBy(some(7, 2)).Claimed), 2, "deliveries claimed")
	w.heldFrom(8, "before the one that holds some is taken over")
	w.equal(w.takeOver(7, 1), 2, "leases that were ended")
	w.equal(given(w.claimBy(as(8)).Claimed)[sub], 4, "deliveries claimed from one that was taken over")

	_, sub, _ = w.queue(6)
	w.equal(len(w.claimBy(some(7, 2)).Claimed), 2, "deliveries claimed")
	w.Advance(lease - time.Second)
	w.equal(len(w.claimBy(some(7, 1)).Claimed), 1, "deliveries claimed a little later")
	w.Advance(time.Second)
	w.equal(given(w.claimBy(as(9)).Claimed)[sub], 0, "deliveries claimed when two of three leases have ended")
	w.Advance(lease - time.Second)
	w.equal(given(w.claimBy(as(9)).Claimed)[sub], 6, "deliveries claimed when all leases have ended")
	w.heldFrom(7, "when others hold all")
}

func orderNobodys(w *world) {
	_, _, drafts := w.queue(4)
	nobody := some(0, 1)
	nobody.By = dispatch.Presence{}
	w.equal(indexes(drafts, w.claimBy(nobody).Claimed), []int{0}, "events claimed by no process")
	w.equal(indexes(drafts, w.claimBy(some(7, 1)).Claimed), []int{1}, "events claimed by a process while what is nobody's is leased")
	w.equal(len(w.claimBy(nobody).Claimed), 0, "deliveries claimed by no process while one holds the subscription")
	w.equal(indexes(drafts, w.claimBy(as(7)).Claimed), []int{2, 3}, "events claimed by the process that holds the subscription")
}

func orderNotInTheWay(w *world) {
	const held = 60
	w.crowd(held, 4)
	one := as(7)
	for lane := range one.Lanes {
		one.Lanes[lane].PerSubscription = 1
	}
	w.equal(len(w.claimBy(one).Claimed), held, "deliveries claimed, one of each subscription")
	w.Advance(time.Second)
	owner := w.subscriber()
	for range held {
		w.backlog(owner, w.subscribe(owner, "only.addressed"), 2)
	}
	w.equal(len(w.claimBy(one).Claimed), 2*held, "deliveries claimed, another one of each, and one of each subscription of one subscriber")
	w.Advance(time.Second)
	known, err := w.Store.Beat(w.ctx, dispatch.Presence{Process: 8, Beat: 1})
	w.noError(err, "saying that it lives")
	w.equal(len(known), 1, "processes that are known")

	claims := w.claimBy(some(8, 1))
	w.equal(len(claims.Claimed), 0, "deliveries claimed of what another process holds")
	w.check(claims.NextDue.IsZero() || claims.NextDue.After(claims.Now), "next due is %v, which is not after %v: what another process holds is not due", claims.NextDue, claims.Now)
	w.Advance(time.Second)
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 1)
	other, _ := w.one()
	for range 2 {
		claims := w.claimBy(some(8, 1))
		w.equal(len(claims.Claimed), 1, "deliveries claimed of the subscriptions that nobody holds")
		c := claims.Claimed[0]
		w.check(c.Target.Subscription == sub || c.Event.ID == other.ID, "subscription %s was claimed of, which another process holds", c.Target.Subscription)
	}
}

func orderAskedFor(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	drafts := w.series(owner, sub, 2, 1)
	held := w.claimBy(as(7)).Claimed
	w.record(result(held[0], sender.ClassTimeout))
	w.noError(w.Store.Redeliver(w.ctx, w.delivery(drafts[0].ID, sub).ID, time.Time{}), "redelivering")
	w.heldFrom(8, "while another one holds the subscription")
	again := w.claimBy(as(7)).Claimed
	w.equal(indexes(drafts, again), []int{0}, "events claimed that are redelivered")
	w.record(result(again[0], sender.ClassTimeout))
	w.noError(w.Store.Redeliver(w.ctx, w.delivery(drafts[0].ID, sub).ID, time.Time{}), "redelivering")
	w.heldFrom(8, "while another one holds the subscription still")
	w.record(result(held[1], sender.ClassNone))
	w.equal(indexes(drafts, w.claimBy(as(8)).Claimed), []int{0}, "events claimed that are redelivered, when nobody holds the subscription")
}

func orderDispatchedByTwo(w *world) {
	w.dispatched(orderRun{subscriptions: 3, events: 300, objects: 3}, w.Store, w.other().Store)
}
