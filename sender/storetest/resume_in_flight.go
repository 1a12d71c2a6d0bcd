package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func resumeInFlightRules() []rule {
	return []rule{
		{"resume, in flight and taken", "An attempt that is in flight at a resume that takes its delivery becomes the first of the new schedule.", resumeInFlightTaken},
		{"resume, lost before", "An attempt that was lost while its subscription was held takes nothing of the horizon of the new schedule, which begins when the attempt is found lost.", resumeLostBefore},
		{"resume, in flight and succeeds", "An attempt that is in flight at a resume without its delivery, and succeeds, makes it delivered.", resumeInFlightSucceeds},
		{"resume, in flight and fails", "An attempt that is in flight at a resume without its delivery, and fails, is stored and leaves it cancelled, whatever Decide says.", resumeInFlightFails},
		{"resume, in flight and lost", "An attempt that is in flight at a resume without its delivery, and is lost, is stored as interrupted and leaves it cancelled.", resumeInFlightLost},
		{"resume, single and in flight", "The single attempt of a delivered one that is in flight at a resume without it leaves it delivered, however it ends.", resumeInFlightSingle},
	}
}

func resumeInFlightTaken(w *world) {
	d, sub := w.one()
	live := w.watch()
	w.record(result(w.claimOne(), sender.ClassTimeout))
	w.Advance(retryDelay(1))
	c := w.claimOne()
	w.pause(sub)
	w.Advance(time.Second)
	w.resume(sub, takeAll)
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight}, []any{sender.StatusAwaitingRetry, true}, "status and in flight after the resume")
	w.claimNothing("while the attempt that was in flight at the resume still is")
	w.record(result(c, sender.ClassTimeout))
	w.equal([]int{live.Number, live.Tries}, []int{2, 1}, "number and tries at its decision")
	w.sameTime(live.First, c.At, "First of the new schedule")
	w.Advance(retryDelay(1))
	again := w.claimOne()
	w.equal(again.Number, 3, "number of the next attempt")

	w.disable(sub)
	w.resume(sub, takeAll)
	w.Advance(lease + time.Second)
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{1, 1}, "deliveries claimed, and attempts interrupted, after the attempt in flight was lost")
	w.equal([]int{live.Number, live.Tries}, []int{3, 1}, "number and tries at the decision about the lost one")
	w.record(result(claims.Claimed[0], sender.ClassNone))
	w.equal([]any{w.delivery(d.ID, sub).Status, w.delivery(d.ID, sub).AttemptCount}, []any{sender.StatusDelivered, 4}, "status and attempts")
}

func resumeLostBefore(w *world) {
	d, sub := w.one()
	live := w.watch()
	w.claimOne()
	w.pause(sub)
	w.Advance(100 * time.Hour)
	w.resume(sub, takeAll)
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{1, 1}, "deliveries claimed, and attempts interrupted, after the resume")
	w.equal([]int{live.Number, live.Tries}, []int{1, 1}, "number and tries at the decision about the lost one")
	w.sameTime(live.First, claims.Now, "First at the decision about the lost one")
	w.record(result(claims.Claimed[0], sender.ClassTimeout))
	w.equal([]int{live.Number, live.Tries}, []int{2, 2}, "number and tries at the decision about the next one")
	w.sameTime(live.First, claims.Now, "First at the decision about the next one")
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusAwaitingRetry, "status")

	// A lease that runs on beyond the resume is lost later.
	w.Advance(retryDelay(2))
	w.claimOne()
	w.pause(sub)
	w.resume(sub, takeAll)
	w.Advance(lease + time.Second)
	claims = w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{1, 1}, "deliveries claimed, and attempts interrupted, once the lease has ended")
	w.sameTime(live.First, claims.Now, "First at the decision about the one that was lost after the resume")

	// A delivery that is sent again takes the attempt in flight for its first, lost or not.
	w.redeliver(w.delivery(d.ID, sub).ID)
	again := claims.Claimed[0].At
	w.Advance(lease + time.Second)
	claims = w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{1, 1}, "deliveries claimed, and attempts interrupted, of what was sent again")
	w.sameTime(live.First, again, "First of what was sent again")
}

// skippedInFlight makes a delivery that a resume has skipped while an attempt was in
// flight.
func (w *world) skippedInFlight() (d sender.Draft, sub string, c dispatch.Claimed) {
	w.Helper()
	d, sub = w.one()
	c = w.claimOne()
	w.pause(sub)
	w.resume(sub, takeNone)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses after the resume")
	w.errorIs(w.Store.Redeliver(w.ctx, w.delivery(d.ID, sub).ID, time.Time{}), sender.ErrCancelled, "redelivering what was cancelled while it was in flight")
	w.equal(w.sweep(100), 0, "deliveries ended by a sweep while an attempt is in flight")
	return d, sub, c
}

func resumeInFlightSucceeds(w *world) {
	d, sub, c := w.skippedInFlight()
	r := result(c, sender.ClassNone)
	w.record(r)
	for _, when := range []string{"after the success", "after a sweep"} {
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses %s", when)
		w.sameAttempts(w.delivery(d.ID, sub), attempt(r, time.Time{}))
		w.endsSwept()
	}
	w.equal(w.read(sub).Backlog, int64(0), "Backlog")
	w.redeliver(w.delivery(d.ID, sub).ID)
	w.equal(w.claimOne().Number, 2, "number of the attempt of a redelivery")
}

func resumeInFlightFails(w *world) {
	for _, status := range []sender.Status{sender.StatusAwaitingRetry, sender.StatusDeadLettered} {
		d, sub, c := w.skippedInFlight()
		w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			dec := dispatch.Decision{Status: status, Health: h, Notices: []sender.Notice{{Kind: sender.NoticeDeadLettered}}}
			if status == sender.StatusAwaitingRetry {
				dec.Due, dec.Notices = now, nil
			}
			return dec
		}
		r := result(c, sender.ClassTimeout)
		_, claims, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Results: []dispatch.Result{r}, Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(10)}})
		w.noError(err, "recording and claiming")
		w.equal([]int{len(claims.Claimed), len(claims.Notices)}, []int{0, 0}, "deliveries claimed, and notices stored, when Decide says %s", status)
		for _, when := range []string{"after the failure", "after a sweep"} {
			w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses %s", when)
			w.sameAttempts(w.delivery(d.ID, sub), attempt(r, time.Time{}))
			w.claimNothing("%s", when)
			w.endsSwept()
		}
		w.equal([]int64{w.read(sub).Backlog, w.read(sub).DeadLettered}, []int64{0, 0}, "Backlog and DeadLettered")
		w.decide = decide
	}
}

func resumeInFlightLost(w *world) {
	d, sub, c := w.skippedInFlight()
	w.Advance(lease + time.Second)
	w.claimNothing("of what a resume has skipped, and was lost")
	w.endsSwept()
	w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.AttemptCount, read.LastErrorClass}, []any{sender.StatusCancelled, false, 1, sender.ClassInterrupted}, "status, in flight, attempts and last class")
	w.lost(result(c, sender.ClassNone), d.ID, sub, "ended by a sweep")
	w.check(w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)}).NextDue.IsZero(), "NextDue is set although nothing is live")
}

func resumeInFlightSingle(w *world) {
	for _, class := range []sender.Class{sender.ClassNone, sender.ClassTimeout, sender.ClassInterrupted} {
		d, sub := w.one()
		w.record(result(w.claimOne(), sender.ClassNone))
		id := w.delivery(d.ID, sub).ID
		w.redeliver(id)
		c := w.claimOne()
		w.pause(sub)
		w.resume(sub, takeNone)
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses after the resume")
		if class == sender.ClassInterrupted {
			w.Advance(lease + time.Second)
			w.claimNothing("of a single attempt that was skipped, and was lost")
		} else {
			w.record(result(c, class))
		}
		w.endsSwept()
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses after the single attempt ended with %q", class)
		w.equal([]any{w.get(id).AttemptCount, w.get(id).LastErrorClass}, []any{2, class}, "attempts and last class")
		w.Advance(time.Hour)
		w.claimNothing("after a single attempt that was skipped")
	}
}
