package storetest

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func holdRules() []rule {
	return []rule{
		{"hold", "From a hold's commit on the live deliveries read as held, without a next attempt, and none is claimed; what has ended stays; other subscriptions go on.", holdLive},
		{"hold, NextDue", "A held delivery is not due: NextDue leaves it out.", holdNextDue},
		{"hold, status", "A paused subscription reads so; a disabled one with when and why. Holding it again in the same way changes nothing.", holdStatus},
		{"hold, refused", "A disabled subscription cannot be paused, nor a closing one held; an unknown or deleted one is ErrNotFound. Nothing is changed.", holdRefused},
		{"hold, rolled back", "A hold that rolled back changes nothing.", holdRolledBack},
		{"hold, what arrives", "A delivery that is made while its subscription is held is held.", holdArriving},
		{"hold, in flight", "An attempt that is in flight at a hold is left to end: its delivery reads as held and in flight, and a success makes it delivered.", holdInFlight},
		{"hold, in flight and fails", "An attempt that is in flight at a hold and fails is recorded as always; a retry is held, a dead letter is one.", holdFails},
		{"hold, in flight and lost", "An attempt that is lost while its subscription is held is found once it is resumed.", holdLost},
		{"hold, released", "A delivery that is released while its subscription is held is held.", holdReleased},
		{"hold, redelivered", "A delivery that is redelivered while its subscription is held is held, and starts its schedule anew once the subscription is resumed.", holdRedelivered},
		{"hold, a delivered one is redelivered", "A delivered one that is redelivered while its subscription is held is sent a single time once that is resumed with it, and stays delivered if it is resumed without.", holdSingle},
	}
}

// holds are the ways to hold a subscription.
func (w *world) holds() map[string]func(id string) {
	return map[string]func(id string){
		"paused": w.pause, "disabled": w.disable,
		"paused, then disabled": func(id string) { w.pause(id); w.disable(id) },
	}
}

func holdLive(w *world) {
	for name, hold := range w.holds() {
		owner := w.subscriber()
		sub, sibling := w.subscribe(owner, "only.addressed"), w.subscribe(owner, "only.addressed")
		stranger := w.subscribe(w.subscriber(), "only.addressed")
		w.backlog(owner, sub, 6)
		var claimed []dispatch.Claimed
		for range 4 {
			claimed = append(claimed, w.claim(1)...)
		}
		w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			dec := decide(l, h, r, now)
			if r.Class == sender.ClassStatus {
				dec.Status = sender.StatusDeadLettered
			}
			return dec
		}
		w.record(result(claimed[0], sender.ClassTimeout), result(claimed[1], sender.ClassTimeout), result(claimed[2], sender.ClassNone), result(claimed[3], sender.ClassStatus))
		w.decide = decide
		w.backlog(owner, sibling, 2)
		w.backlog(w.read(stranger).Subscriber, stranger, 2)
		hold(sub)
		want := map[sender.Status]int{sender.StatusHeld: 4, sender.StatusDelivered: 1, sender.StatusDeadLettered: 1}
		w.equal(w.statuses(sub), want, "statuses, %s", name)
		for _, d := range w.list(history.DeliveryQuery{Subscription: sub}) {
			w.check(d.NextAttemptAt.IsZero() && !d.InFlight, "%s: delivery %s has a next attempt, or one in flight", name, d.ID)
		}
		w.equal([]int64{w.read(sub).Backlog, w.read(sub).DeadLettered}, []int64{4, 1}, "Backlog and DeadLettered, %s", name)
		w.Advance(retryDelay(1) + time.Second)
		w.record(resultsOf(w.claimsOf(map[string]int{sibling: 2, stranger: 2}, name), sender.ClassNone)...)
		w.Advance(1000 * time.Hour)
		w.claimNothing("%s", name)
		w.equal(w.sweep(100), 0, "deliveries ended by a sweep, %s", name)
		w.equal(w.statuses(sub), want, "statuses later on, %s", name)
	}
}

// resultsOf are results of one class.
func resultsOf(claimed []dispatch.Claimed, class sender.Class) (results []dispatch.Result) {
	for _, c := range claimed {
		results = append(results, result(c, class))
	}
	return results
}

func holdNextDue(w *world) {
	_, subs := w.crowd(2, 2)
	full := dispatch.ClaimParams{Lease: lease, Lanes: lanes(plenty)}
	w.pause(subs[0])
	w.record(resultsOf(w.claimsOf(map[string]int{subs[1]: 2}, "while another is paused"), sender.ClassTimeout)...)
	due := w.now().Add(retryDelay(1))
	next := w.claimBy(full).NextDue // a store may look once more at a subscription that has no deliveries any more
	for range 3 {
		if next.After(w.now()) {
			break
		}
		w.Advance(time.Millisecond)
		next = w.claimBy(full).NextDue
	}
	w.check(next.After(w.now()) && !next.After(due), "NextDue is %v at %v, and what is not held is due at %v", next, w.now(), due)
	w.disable(subs[1])
	w.Advance(time.Hour)
	w.claimBy(full)
	w.check(w.claimBy(full).NextDue.IsZero(), "NextDue is set although all that is live is held")
}

func holdStatus(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	before := w.read(sub)
	w.pause(sub)
	paused := before
	paused.Status = sender.SubscriptionPaused
	w.equal(w.read(sub), paused, "paused subscription")
	w.Advance(time.Hour)
	w.pause(sub)
	w.equal(w.read(sub), paused, "subscription that was paused twice")

	at := w.now()
	w.disable(sub)
	got := w.read(sub)
	w.sameTime(got.DisabledAt, at, "DisabledAt")
	w.equal([]any{got.Status, got.DisabledReason}, []any{sender.SubscriptionDisabled, "because of disabled"}, "status and reason")
	w.Advance(time.Hour)
	w.inTx(func(tx any) error {
		return w.Store.HoldSubscriptionTx(w.ctx, tx, sub, sender.SubscriptionDisabled, "another reason")
	})
	w.equal(w.read(sub), got, "subscription that was disabled twice")
	w.resume(sub, sender.Resume{})
	w.equal(w.read(sub), before, "subscription after it was resumed")
}

func holdRefused(w *world) {
	owner := w.subscriber()
	disabled, closing, deleted := w.subscribe(owner, "*"), w.subscribe(owner, "*"), w.subscribe(owner, "*")
	w.disable(disabled)
	w.publish(w.addressed(owner, closing))
	w.expand()
	w.close(closing)
	w.unsubscribe(deleted)
	before := []sender.Subscription{w.read(disabled), w.read(closing)}
	w.errorIs(w.tryHold(disabled, sender.SubscriptionPaused), sender.ErrStatus, "pausing a disabled subscription")
	for _, status := range []sender.SubscriptionStatus{sender.SubscriptionPaused, sender.SubscriptionDisabled} {
		w.errorIs(w.tryHold(closing, status), sender.ErrStatus, "holding a closing subscription as %s", status)
		w.errorIs(w.tryHold(deleted, status), sender.ErrNotFound, "holding a deleted subscription as %s", status)
		w.errorIs(w.tryHold("wsub_unknown", status), sender.ErrNotFound, "holding an unknown subscription as %s", status)
	}
	w.equal([]sender.Subscription{w.read(disabled), w.read(closing)}, before, "subscriptions after holds that were refused")
	w.equal(w.claimOne().Target.Subscription, closing, "subscription of what is claimed")
}

func holdRolledBack(w *world) {
	_, subs := w.crowd(2, 2)
	before := w.read(subs[0])
	for _, status := range []sender.SubscriptionStatus{sender.SubscriptionPaused, sender.SubscriptionDisabled} {
		w.undone(func(tx any) error { return w.Store.HoldSubscriptionTx(w.ctx, tx, subs[0], status, "reason") })
		w.equal(w.read(subs[0]), before, "subscription after a hold that rolled back")
		w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusPending: 2}, "statuses after a hold that rolled back")
	}
	w.claimsOf(map[string]int{subs[0]: 2, subs[1]: 2}, "after holds that rolled back")
}

func holdArriving(w *world) {
	owner := w.subscriber()
	held, other := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	waiting, later := w.draft("a.b"), w.draft("a.b")
	w.publish(waiting)
	w.pause(held)
	w.publish(later)
	w.equal(w.expand(), 4, "deliveries made")
	w.equal(w.events(held), sorted(waiting, later), "events of the held subscription")
	w.equal(w.statuses(held), map[sender.Status]int{sender.StatusHeld: 2}, "statuses of the held subscription")
	w.equal(w.read(held).Backlog, int64(2), "Backlog of the held subscription")
	w.claimsOf(map[string]int{other: 2}, "after the expansion")
	w.resume(held, sender.Resume{})
	w.claimsOf(map[string]int{held: 2}, "after the resume")
}

func holdInFlight(w *world) {
	for name, hold := range w.holds() {
		d, sub := w.one()
		c := w.claimOne()
		hold(sub)
		read := w.delivery(d.ID, sub)
		w.equal([]any{read.Status, read.InFlight, read.NextAttemptAt.IsZero()}, []any{sender.StatusHeld, true, true}, "status, in flight, and no next attempt, %s", name)
		r := result(c, sender.ClassNone)
		w.record(r)
		read = w.delivery(d.ID, sub)
		w.equal([]any{read.Status, read.InFlight}, []any{sender.StatusDelivered, false}, "status and in flight after the success, %s", name)
		w.sameAttempts(read, attempt(r, time.Time{}))
		w.equal(w.read(sub).Backlog, int64(0), "Backlog, %s", name)
		w.check(!w.read(sub).Health.LastSuccess.IsZero(), "%s: the success did not reach the subscription's Health", name)
		w.resume(sub, sender.Resume{})
		w.claimNothing("of what was delivered while it was held, %s", name)
	}
}

func holdFails(w *world) {
	for name, hold := range w.holds() {
		d, sub := w.one()
		live := w.watch()
		r := result(w.claimOne(), sender.ClassTimeout)
		hold(sub)
		w.equal(w.record(r)[0].Decision.Status, sender.StatusAwaitingRetry, "decision, %s", name)
		read := w.delivery(d.ID, sub)
		w.equal([]any{read.Status, read.InFlight, read.AttemptCount, read.LastErrorClass}, []any{sender.StatusHeld, false, 1, sender.ClassTimeout}, "status, in flight, attempts and last class, %s", name)
		w.equal(w.read(sub).Health.Streak, 1, "Streak, %s", name)
		w.Advance(10 * retryDelay(1))
		w.claimNothing("of what failed while it was held, %s", name)
		w.resume(sub, sender.Resume{})
		c := w.claimOne()
		w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			*live = l
			return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		hold(sub)
		w.record(result(c, sender.ClassTimeout))
		w.equal([]int{live.Number, live.Tries}, []int{2, 1}, "number and tries after the resume, %s", name)
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDeadLettered: 1}, "statuses, %s", name)
		w.resume(sub, sender.Resume{})
		w.claimNothing("of what was dead-lettered while it was held, %s", name)
		w.decide = decide
	}
}

func holdLost(w *world) {
	d, sub := w.one()
	c := w.claimOne()
	w.pause(sub)
	w.Advance(lease + time.Second)
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{0, 0}, "deliveries claimed, and attempts interrupted, while it is held")
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.AttemptCount}, []any{sender.StatusHeld, false, 0}, "status, in flight and attempts after the lease's end")
	w.resume(sub, sender.Resume{})
	live := w.watch()
	again := w.claimOne()
	w.equal([]int{again.Number, live.Number, live.Tries}, []int{2, 1, 1}, "number of the next attempt, and number and tries at the decision about the lost one")
	w.lost(result(c, sender.ClassNone), d.ID, sub, "claimed again")
	w.record(result(again, sender.ClassNone))
	w.equal(w.delivery(d.ID, sub).AttemptCount, 2, "attempts")
}

func holdReleased(w *world) {
	_, sub := w.one()
	c := w.claimOne()
	w.pause(sub)
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 1}, "statuses")
	w.claimNothing("of what was released while it was held")
	w.resume(sub, sender.Resume{})
	w.equal(w.claimOne().Number, 1, "number of the attempt")
}

func holdRedelivered(w *world) {
	pending, sub := w.one()
	owner := w.read(sub).Subscriber
	w.disable(sub)
	id := w.delivery(pending.ID, sub).ID
	w.redeliver(id)
	w.equal(w.get(id).Status, sender.StatusHeld, "status of a held one that was redelivered")
	w.claimNothing("of a held one that was redelivered")
	w.resume(sub, sender.Resume{})
	w.deadLetter()

	w.pause(sub)
	w.redeliver(id)
	read := w.get(id)
	w.equal([]any{read.Status, read.NextAttemptAt.IsZero()}, []any{sender.StatusHeld, true}, "status, and no next attempt, of a dead letter that was redelivered")
	w.equal([]int64{w.read(sub).Backlog, w.read(sub).DeadLettered}, []int64{1, 0}, "Backlog and DeadLettered")
	w.publish(w.addressed(owner, sub))
	w.expand()
	w.Advance(time.Hour)
	w.claimNothing("of a dead letter that was redelivered while it was held")
	w.resume(sub, sender.Resume{})
	live := w.watch()
	for _, c := range w.claimsOf(map[string]int{sub: 2}, "after the resume") {
		if c.Event.ID == pending.ID {
			w.record(result(c, sender.ClassTimeout))
			w.equal([]int{live.Number, live.Tries}, []int{maxTries + 1, 1}, "number and tries")
			w.sameTime(live.First, c.At, "First")
		}
	}
}

func holdSingle(w *world) {
	for _, none := range []bool{false, true} {
		for _, when := range []string{"before", "while"} {
			what := fmt.Sprintf("redelivered %s it was held, resumed without it: %t", when, none)
			d, sub := w.one()
			w.record(result(w.claimOne(), sender.ClassNone))
			id := w.delivery(d.ID, sub).ID
			if when == "before" {
				w.redeliver(id)
			}
			w.pause(sub)
			w.redeliver(id)
			w.equal(w.get(id).Status, sender.StatusHeld, "status, %s", what)
			w.claimNothing("%s", what)
			w.resume(sub, sender.Resume{None: none})
			if none {
				w.claimNothing("%s", what)
				w.equal(w.get(id).Status, sender.StatusDelivered, "status, %s", what)
				w.endsSwept()
				w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses after a sweep, %s", what)
				w.equal(w.read(sub).Backlog, int64(0), "Backlog, %s", what)
				w.redeliver(id)
			}
			live := w.watch()
			w.record(result(w.claimOne(), sender.ClassTimeout))
			w.check(live.Single, "%s: Decide was not told that it is a single attempt", what)
			w.equal([]any{w.get(id).Status, w.get(id).AttemptCount}, []any{sender.StatusDelivered, 2}, "status and attempts in the end, %s", what)
			w.Advance(time.Hour)
			w.claimNothing("after the single attempt, %s", what)
		}
	}
}
