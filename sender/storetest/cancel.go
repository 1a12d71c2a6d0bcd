package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func cancelRules() []rule {
	return []rule{
		{"live ones are cancelled", "From the deletion's commit on, the subscription's live deliveries read as cancelled and are not claimed; those of others go on.", cancelLive},
		{"ended ones stay", "A delivery that was delivered or dead-lettered before the deletion stays so.", cancelEnded},
		{"in flight and succeeds", "An attempt that was in flight at the deletion and succeeds makes its delivery delivered, also if it was swept meanwhile.", cancelInFlightSucceeds},
		{"in flight and fails", "An attempt that was in flight at the deletion and fails leaves its delivery cancelled, whatever Decide says, and is stored.", cancelInFlightFails},
		{"in flight and lost", "An attempt that was in flight at the deletion and is lost is stored as interrupted once the delivery is swept, also if it was delivered before, and a resume has skipped its single attempt.", cancelInFlightLost},
		{"sweep is bounded", "Sweep ends up to limit deliveries and returns how many, until none is left.", cancelSweep},
		{"sweep beside resumes", "Many resumes of which nothing can be swept yet keep no other one from being swept.", cancelSweepBesideResumes},
	}
}

// sweep sweeps until no delivery remains, limit at a time, and returns how many it
// ended.
func (w *world) sweep(limit int) (ended int) {
	w.Helper()
	return w.sweepBy(dispatch.SweepParams{Limit: limit}).Ended
}

func (w *world) sweepBy(p dispatch.SweepParams) (sum dispatch.Swept) {
	w.Helper()
	for range plenty {
		got, err := w.Store.Sweep(w.ctx, p)
		w.noError(err, "sweeping")
		w.check(got.Ended <= p.Limit, "a sweep of up to %d ended %d", p.Limit, got.Ended)
		sum.Ended, sum.Freed, sum.Notices = sum.Ended+got.Ended, sum.Freed+got.Freed, append(sum.Notices, got.Notices...)
		if got.Ended == 0 {
			return sum
		}
	}
	w.Fatal("sweeping does not come to an end")
	return sum
}

// statuses counts a subscription's deliveries.
func (w *world) statuses(sub string) map[sender.Status]int {
	w.Helper()
	n := map[sender.Status]int{}
	for _, d := range w.list(history.DeliveryQuery{Subscription: sub}) {
		n[d.Status]++
		w.equal(w.get(d.ID).Status, d.Status, "status of %s, read alone and in a list", d.ID)
		w.check(slices.ContainsFunc(w.list(history.DeliveryQuery{Subscription: sub, Status: d.Status}), func(l sender.Delivery) bool { return l.ID == d.ID }), "%s, which is %s, is not in the list of those", d.ID, d.Status)
	}
	return n
}

func cancelLive(w *world) {
	owners, subs := w.crowd(2, 3)
	sibling := w.subscribe(owners[0], "only.addressed")
	w.backlog(owners[0], sibling, 3)
	var first dispatch.Claimed
	for _, c := range w.claim(6) { // at least one of each
		if c.Target.Subscription == subs[0] && first.Token == 0 {
			first = c
			continue
		}
		w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	}
	w.record(result(first, sender.ClassTimeout)) // one awaits its retry, two are pending
	w.unsubscribe(subs[0])
	cancelled := map[sender.Status]int{sender.StatusCancelled: 3}
	w.equal(w.statuses(subs[0]), cancelled, "statuses after the deletion")
	for _, d := range w.list(history.DeliveryQuery{Subscription: subs[0]}) {
		w.check(d.NextAttemptAt.IsZero() && !d.InFlight, "a cancelled delivery has a next attempt, or one in flight")
	}
	w.Advance(retryDelay(1) + time.Second)
	for _, c := range w.claim(plenty) {
		w.check(c.Target.Subscription != subs[0], "a delivery of a deleted subscription was claimed")
	}
	w.equal(w.sweep(100), 3, "deliveries that the sweep ended")
	w.equal(w.statuses(subs[0]), cancelled, "statuses after the sweep")
	w.equal(w.statuses(sibling), map[sender.Status]int{sender.StatusPending: 3}, "statuses of another subscription of the subscriber")
	w.equal(w.statuses(subs[1]), map[sender.Status]int{sender.StatusPending: 3}, "statuses of another subscriber's subscription")
}

func cancelEnded(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	w.backlog(owner, sub, 2)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		if r.Class == sender.ClassNone {
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		}
		return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
	}
	claimed := w.claim(plenty)
	w.record(result(claimed[0], sender.ClassNone), result(claimed[1], sender.ClassStatus))
	w.unsubscribe(sub)
	want := map[sender.Status]int{sender.StatusDelivered: 1, sender.StatusDeadLettered: 1}
	w.equal(w.statuses(sub), want, "statuses after the deletion")
	w.equal(w.sweep(100), 0, "deliveries that the sweep ended")
	w.equal(w.statuses(sub), want, "statuses after the sweep")
}

func cancelInFlightSucceeds(w *world) {
	d, sub := w.one()
	r := result(w.claimOne(), sender.ClassNone)
	w.unsubscribe(sub)
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusCancelled, "status after the deletion")
	w.equal(w.sweep(100), 0, "deliveries ended by a sweep while an attempt is in flight")
	w.record(r)
	read := w.delivery(d.ID, sub)
	w.equal(read.Status, sender.StatusDelivered, "status after the success")
	w.sameAttempts(read, attempt(r, time.Time{}))
	w.sweep(100)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses after a sweep")
}

func cancelInFlightFails(w *world) {
	d, sub := w.one()
	r := result(w.claimOne(), sender.ClassTimeout)
	w.unsubscribe(sub)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now, Health: h}
	}
	w.record(r)
	for _, when := range []string{"after the failure", "after a sweep"} {
		read := w.delivery(d.ID, sub)
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses %s", when)
		w.sameAttempts(read, attempt(r, time.Time{}))
		w.claimNothing("%s", when)
		w.sweep(100)
	}
}

func cancelInFlightLost(w *world) {
	for want, again := range map[sender.Status]bool{sender.StatusCancelled: false, sender.StatusDelivered: true} {
		d, sub := w.one()
		c := w.claimOne()
		if again { // it was delivered, and a resume skips it while it is sent again
			w.record(result(c, sender.ClassNone))
			id := w.delivery(d.ID, sub).ID
			w.redeliver(id)
			c = w.claimOne()
			w.pause(sub)
			w.resume(sub, takeNone)
			_ = w.Store.Redeliver(w.ctx, id, time.Time{}) // the contract does not say whether it can be
		}
		w.unsubscribe(sub)
		w.Advance(lease + time.Second)
		w.claimNothing("of a deleted subscription whose attempt was lost")
		w.equal(w.sweep(100), 1, "deliveries that the sweep ended")
		read := w.delivery(d.ID, sub)
		w.equal([]any{read.Status, read.AttemptCount, read.LastErrorClass}, []any{want, c.Number, sender.ClassInterrupted}, "status, attempts and last class")
		w.sameTime(read.Attempts[c.Number-1].StartedAt, c.At, "start of the lost attempt")
		w.lost(result(c, sender.ClassNone), d.ID, sub, "swept")
	}
}

func cancelSweep(w *world) {
	_, subs := w.crowd(3, 5)
	n, err := w.Store.Sweep(w.ctx, dispatch.SweepParams{Limit: 10})
	w.noError(err, "sweeping")
	w.equal(n.Ended, 0, "deliveries ended while no subscription is deleted")
	w.unsubscribe(subs[0])
	w.unsubscribe(subs[1])
	n, err = w.Store.Sweep(w.ctx, dispatch.SweepParams{Limit: 4})
	w.noError(err, "sweeping")
	w.equal(n.Ended, 4, "deliveries ended by a sweep of up to 4")
	w.equal(w.sweep(4), 6, "deliveries ended by the sweeps that followed")
	for _, sub := range subs[:2] {
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 5}, "statuses")
	}
	w.equal(w.statuses(subs[2]), map[sender.Status]int{sender.StatusPending: 5}, "statuses of a subscription that is not deleted")
	w.unsubscribe(subs[2])
	w.equal(w.sweep(4), 5, "deliveries ended of a subscription that was deleted later")
}

// cancelSweepBesideResumes has many subscriptions paused again after a resume, while an
// attempt of before it is lost that it has not skipped.
func cancelSweepBesideResumes(w *world) {
	owner := w.subscriber()
	w.publish(w.draft("nobody.asks"))
	w.Advance(time.Second)
	since := w.now()
	var subs []string
	var drafts []sender.Draft
	w.inTx(func(tx any) error {
		for range 100 {
			sub := w.subscription(owner, "only.addressed")
			subs, drafts = append(subs, sub.ID), append(drafts, w.addressed(owner, sub.ID))
			if err := w.Store.CreateSubscriptionTx(w.ctx, tx, sub); err != nil {
				return err
			}
		}
		return nil
	})
	w.publish(drafts...)
	w.expand()
	w.equal(len(w.claim(plenty)), len(subs), "deliveries claimed")
	hold := func(tx any, sub string) error {
		return w.Store.HoldSubscriptionTx(w.ctx, tx, sub, sender.SubscriptionPaused, "")
	}
	w.inTx(func(tx any) (err error) {
		for _, sub := range subs {
			err = errors.Join(err, hold(tx, sub), w.Store.ResumeSubscriptionTx(w.ctx, tx, sub, sender.Resume{Since: since}), hold(tx, sub))
		}
		return err
	})
	w.Advance(lease + time.Second)
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 3)
	w.pause(sub)
	w.resume(sub, takeNone)
	w.endsSwept()
	w.equal(w.read(sub).Backlog, int64(0), "Backlog of one that was resumed without what was held")
}
