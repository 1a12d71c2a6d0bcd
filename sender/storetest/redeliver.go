package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func redeliverRules() []rule {
	return []rule{
		{"pending", "A pending delivery that was put off is due at once.", redeliverPending},
		{"awaiting retry", "A delivery that awaits its retry is due at once, and starts its schedule anew, while the attempt numbers go on.", redeliverAwaiting},
		{"in flight", "While an attempt is in flight no second one is started; it becomes the first of the new schedule.", redeliverInFlight},
		{"in flight and lost", "An attempt that was in flight at the redelivery and is lost is followed by another.", redeliverLost},
		{"dead-lettered", "A dead-lettered delivery is live again and starts its schedule anew, while the attempt numbers go on.", redeliverDead},
		{"delivered, again", "A delivered one gets a single attempt, with the same bytes.", redeliverDelivered},
		{"delivered, whose single attempt fails", "A delivered one whose single attempt fails stays delivered and is not tried again.", redeliverSingle},
		{"delivered, whose subscription goes meanwhile", "A delivered one whose subscription is deleted during its single attempt stays delivered. If that attempt is lost, a sweep records it.", redeliverSingleGone},
		{"delivered, whose single attempt is lost", "A delivered one whose single attempt is lost gets another one, which is a single one too.", redeliverSingleLost},
		{"delivered, twice", "Redelivering a delivered one again before its single attempt was made makes no second one.", redeliverTwice},
		{"cancelled", "A cancelled delivery is refused with ErrCancelled, whether it was swept or not, and stays cancelled.", redeliverCancelled},
		{"of a deleted subscription", "A delivery that was delivered or dead-lettered before its subscription was deleted cannot be redelivered, and keeps its status.", redeliverDeleted},
		{"unknown", "An id that is no delivery's is ErrNotFound.", redeliverUnknown},
	}
}

// redeliver redelivers a delivery, which must succeed.
func (w *world) redeliver(id string) {
	w.Helper()
	w.noError(w.Store.Redeliver(w.ctx, id, time.Time{}), "redelivering %s", id)
}

// watch keeps the last Live that Decide was given.
func (w *world) watch() *dispatch.Live {
	live := new(dispatch.Live)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		*live = l
		return decide(l, h, r, now)
	}
	return live
}

func redeliverPending(w *world) {
	d, sub := w.one()
	c := w.claimOne()
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token, Due: c.At.Add(time.Hour)}}), "releasing")
	w.claimNothing("before the released delivery is due")
	w.redeliver(w.delivery(d.ID, sub).ID)
	w.equal(w.claimOne().Number, 1, "number of the attempt")
}

func redeliverAwaiting(w *world) {
	d, sub := w.one()
	live := w.watch()
	for n := 1; n <= 3; n++ {
		w.record(result(w.claimOne(), sender.ClassTimeout))
		w.Advance(retryDelay(n) - time.Minute)
		w.claimNothing("before retry %d is due", n)
		if n < 3 {
			w.Advance(time.Minute + time.Second)
		}
	}
	w.redeliver(w.delivery(d.ID, sub).ID)
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusAwaitingRetry, "status")
	c := w.claimOne()
	w.equal(c.Number, 4, "number of the attempt")
	w.claimNothing("while the redelivery is in flight")
	w.record(result(c, sender.ClassTimeout))
	w.equal([]int{live.Number, live.Tries}, []int{4, 1}, "number and tries at the first decision of the new schedule")
	w.equal(live.Single, false, "Single")
	w.sameTime(live.First, c.At, "First of the new schedule")
	w.Advance(retryDelay(1))
	w.deadLetterFrom(5, maxTries-1)
}

// deadLetterFrom expects a number of attempts until the delivery is a dead letter,
// numbered from a number on.
func (w *world) deadLetterFrom(number, attempts int) {
	w.Helper()
	for n := range attempts {
		c := w.claimOne()
		w.equal(c.Number, number+n, "number of the attempt")
		dec := w.record(result(c, sender.ClassStatus))[0].Decision
		w.equal(dec.Status == sender.StatusDeadLettered, n+1 == attempts, "whether attempt %d of %d dead-letters the delivery", n+1, attempts)
		w.Advance(retryDelay(maxTries))
	}
}

func redeliverInFlight(w *world) {
	d, sub := w.one()
	live := w.watch()
	w.record(result(w.claimOne(), sender.ClassTimeout))
	w.Advance(retryDelay(1))
	c := w.claimOne()
	w.redeliver(w.delivery(d.ID, sub).ID)
	w.check(w.delivery(d.ID, sub).InFlight, "the attempt that was in flight at the redelivery does not read so")
	w.claimNothing("while the attempt that was in flight at the redelivery still is")
	w.record(result(c, sender.ClassTimeout))
	w.equal([]int{live.Number, live.Tries}, []int{2, 1}, "number and tries at its decision")
	w.sameTime(live.First, c.At, "First of the new schedule")
	w.claimNothing("before the retry is due")
	w.Advance(retryDelay(1))
	again := w.claimOne()
	w.equal(again.Number, 3, "number of the next attempt")

	w.redeliver(w.delivery(d.ID, sub).ID)
	w.record(result(again, sender.ClassNone))
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusDelivered, "status after the attempt in flight succeeded")
	w.Advance(time.Hour)
	w.claimNothing("after the attempt in flight succeeded")
}

func redeliverLost(w *world) {
	d, sub := w.one()
	w.claimOne()
	w.redeliver(w.delivery(d.ID, sub).ID)
	w.Advance(lease + time.Second)
	c := w.claimOne()
	w.equal(c.Number, 2, "number of the attempt after the lost one")
	w.equal(w.delivery(d.ID, sub).AttemptCount, 1, "attempts that are over")
}

func redeliverDead(w *world) {
	d, sub := w.one()
	w.deadLetter()
	id := w.delivery(d.ID, sub).ID
	for round := 1; round <= 2; round++ {
		w.Advance(100 * time.Hour)
		w.redeliver(id)
		read := w.get(id)
		w.equal([]any{read.Status, read.AttemptCount}, []any{sender.StatusAwaitingRetry, round * maxTries}, "status and attempts")
		w.equal(len(w.list(history.DeliveryQuery{Status: sender.StatusDeadLettered})), 0, "dead letters listed")
		live := w.watch()
		c := w.claimOne()
		w.sameBody(c.Body, d, 1)
		w.record(result(c, sender.ClassStatus))
		w.equal([]int{live.Number, live.Tries}, []int{round*maxTries + 1, 1}, "number and tries at the first decision of the new schedule")
		w.equal(live.Single, false, "Single")
		w.sameTime(live.First, c.At, "First of the new schedule")
		w.Advance(retryDelay(1))
		w.deadLetterFrom(round*maxTries+2, maxTries-1)
		w.equal(w.get(id).Status, sender.StatusDeadLettered, "status")
		w.equal(len(w.list(history.DeliveryQuery{Status: sender.StatusDeadLettered})), 1, "dead letters listed")
	}
	w.redeliver(id)
	w.record(result(w.claimOne(), sender.ClassNone))
	w.equal(w.get(id).Status, sender.StatusDelivered, "status after a redelivery that succeeded")
}

func redeliverDelivered(w *world) {
	d, sub := w.one()
	first := result(w.claimOne(), sender.ClassNone)
	w.record(first)
	w.Advance(time.Hour)
	id := w.delivery(d.ID, sub).ID
	w.redeliver(id)
	live := w.watch()
	c := w.claimOne()
	w.sameBody(c.Body, d, 1)
	w.equal(c.Number, 2, "number of the attempt")
	second := result(c, sender.ClassNone)
	w.check(w.record(second)[0].Single, "an attempt at what was delivered reads as another one")
	w.check(live.Single, "Decide was not told that it is a single attempt")
	w.equal(live.Tries, 1, "tries")
	w.sameTime(live.First, c.At, "First")
	w.equal(w.get(id).Status, sender.StatusDelivered, "status")
	w.sameAttempts(w.get(id), attempt(first, time.Time{}), attempt(second, time.Time{}))
	w.equal(len(w.list(history.DeliveryQuery{Status: sender.StatusDelivered})), 1, "delivered ones listed")
}

func redeliverSingle(w *world) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(d.ID, sub).ID

	w.redeliver(id)
	w.record(result(w.claimOne(), sender.ClassStatus))
	read := w.get(id)
	w.equal([]any{read.Status, read.InFlight, read.AttemptCount, read.LastErrorClass}, []any{sender.StatusDelivered, false, 2, sender.ClassStatus}, "status, in flight, attempts and last class after the single attempt failed")
	w.check(read.Attempts[1].NextAttemptAt.IsZero() && read.NextAttemptAt.IsZero(), "another attempt is planned after a single one")
	w.Advance(1000 * time.Hour)
	w.claimNothing("after a single attempt that failed")

	w.redeliver(id)
	w.equal(w.claimOne().Number, 3, "number of the attempt of the next redelivery")
}

func redeliverSingleLost(w *world) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(d.ID, sub).ID
	w.redeliver(id)
	w.claimOne()
	w.Advance(lease + time.Second)
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{1, 1}, "deliveries claimed, and attempts interrupted, after a single attempt was lost")
	again := claims.Claimed[0]
	w.equal([]any{again.Number, w.get(id).Status}, []any{3, sender.StatusAwaitingRetry}, "number and status of the attempt in its place")

	live := w.watch()
	w.record(result(again, sender.ClassStatus))
	w.equal([]any{live.Single, live.Number, live.Tries}, []any{true, 3, 2}, "Single, number and tries at the decision")
	read := w.get(id)
	w.equal([]any{read.Status, read.AttemptCount, read.LastErrorClass}, []any{sender.StatusDelivered, 3, sender.ClassStatus}, "status, attempts and last class after the attempt in its place failed")
	w.Advance(1000 * time.Hour)
	w.claimNothing("after the attempt in its place failed")
}

func redeliverSingleGone(w *world) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(d.ID, sub).ID
	w.redeliver(id)
	w.claimOne()
	w.unsubscribe(sub)
	reads := func(when string, inFlight bool, attempts int) {
		w.Helper()
		read := w.get(id)
		w.equal([]any{read.Status, read.InFlight, read.AttemptCount}, []any{sender.StatusDelivered, inFlight, attempts}, "status, whether it is in flight, and attempts %s", when)
	}
	reads("during the single attempt", true, 1)
	w.Advance(lease + time.Second)
	reads("once the single attempt is lost", false, 1)
	w.sweep(plenty)
	reads("after a sweep", false, 2)
	w.equal(w.get(id).LastErrorClass, sender.ClassInterrupted, "class of the lost attempt")
	w.Advance(1000 * time.Hour)
	w.claimNothing("of a deleted subscription")
}

func redeliverTwice(w *world) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(d.ID, sub).ID
	w.redeliver(id)
	w.redeliver(id)
	live := w.watch()
	c := w.claimOne()
	w.redeliver(id)
	w.claimNothing("while the single attempt is in flight")
	w.record(result(c, sender.ClassStatus))
	w.check(live.Single, "Decide was not told that it is a single attempt")
	w.equal([]any{w.get(id).Status, w.get(id).AttemptCount}, []any{sender.StatusDelivered, 2}, "status and attempts")
	w.Advance(time.Hour)
	w.claimNothing("after the single attempt")
}

func redeliverCancelled(w *world) {
	d, sub := w.one()
	id := w.delivery(d.ID, sub).ID
	w.unsubscribe(sub)
	for _, when := range []string{"before it was swept", "after it was swept"} {
		w.errorIs(w.Store.Redeliver(w.ctx, id, time.Time{}), sender.ErrCancelled, "redelivering a cancelled delivery %s", when)
		w.equal(w.get(id).Status, sender.StatusCancelled, "status %s", when)
		w.claimNothing("of a cancelled delivery %s", when)
		w.sweep(10)
	}
}

func redeliverDeleted(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	w.backlog(owner, sub, 2)
	claimed := w.claim(plenty)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		if r.Class == sender.ClassNone {
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		}
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	w.record(result(claimed[0], sender.ClassNone), result(claimed[1], sender.ClassStatus))
	before := w.list(history.DeliveryQuery{})
	w.unsubscribe(sub)
	for _, d := range before {
		w.check(w.Store.Redeliver(w.ctx, d.ID, time.Time{}) != nil, "a %s delivery of a deleted subscription was redelivered", d.Status)
	}
	w.equal(w.list(history.DeliveryQuery{}), before, "deliveries after their redelivery was refused")
	w.claimNothing("of a deleted subscription")
}

func redeliverUnknown(w *world) {
	d, sub := w.one()
	for _, id := range w.oddIDs(w.delivery(d.ID, sub).ID) {
		w.errorIs(w.Store.Redeliver(w.ctx, id, time.Time{}), sender.ErrNotFound, "redelivering %q", id)
	}
}

// oddIDs are ids of no delivery; real is the id of one.
func (w *world) oddIDs(real string) []string {
	return []string{
		"", "dlv_", "dlv_x", "dlv_1_1", "dlv__", "dlv_unknown_1", real + "x", real + "_1", real + " ", " " + real, real[:len(real)-1], real[1:],
		"evt" + real[3:], "DLV" + real[3:], "dlv_" + real, "dlv_9223372036854775808_zzzzzzzzzzzzzzzzz", "'", "%", "dlv_%", "🔑", "\x00", "dlv_\xff",
	}
}
