package storetest

import (
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/history"
)

func retentionRules() []rule {
	return []rule{
		{"resume, retention", "A resume that would send what was published before NotBefore is refused with a *RetentionError, and nothing is changed.", resumeRetention},
		{"resume, retention of what is not expanded yet", "An event that is committed, and not expanded yet, is not sent either if it was published before NotBefore; events that the subscription does not ask for do not count, and those that its filter will not match do.", resumeRetentionWaiting},
		{"resume, retention in the middle of an event", "An event in whose middle an expansion has stopped does not count for a subscription that has got it.", resumeRetentionMiddle},
		{"resume, retention of what is in flight", "A delivery in flight counts as a held one does, since it may be sent again.", resumeRetentionInFlight},
		{"resume, retention of what was sent again", "A delivery that is sent again counts, also after a resume that has skipped what came before.", resumeRetentionAgain},
	}
}

// refusedForRetention ends the test unless a resume is refused, and changes nothing
// even if the caller commits.
func (w *world) refusedForRetention(sub string, r sender.Resume, oldest time.Time, what string) {
	w.Helper()
	before, deliveries := w.read(sub), w.list(history.DeliveryQuery{Subscription: sub})
	w.inTx(func(tx any) error {
		err := w.Store.ResumeSubscriptionTx(w.ctx, tx, sub, r)
		w.errorIs(err, sender.ErrRetention, "%s", what)
		var refused *sender.RetentionError
		w.check(errors.As(err, &refused), "%s: the error is no *RetentionError: %v", what, err)
		w.sameTime(refused.Published, oldest, "Published, %s", what)
		w.sameTime(refused.NotBefore, r.NotBefore, "NotBefore, %s", what)
		return nil
	})
	w.equal(w.read(sub), before, "subscription after a refusal, %s", what)
	w.equal(w.list(history.DeliveryQuery{Subscription: sub}), deliveries, "deliveries after a refusal, %s", what)
	w.claimNothing("after a refusal, %s", what)
}

func resumeRetention(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	var at []time.Time
	for range 4 {
		at = append(at, w.now())
		w.publish(w.draft("a.b"))
		w.expand()
		w.Advance(time.Second)
		if len(at) == 1 { // a delivery that has ended is not sent
			w.record(result(w.claimOne(), sender.ClassNone))
		}
	}
	w.disable(sub)
	w.refusedForRetention(sub, sender.Resume{NotBefore: at[1].Add(time.Microsecond)}, at[1], "just too old")
	w.refusedForRetention(sub, sender.Resume{NotBefore: at[3]}, at[1], "two that are too old")
	w.refusedForRetention(sub, sender.Resume{NotBefore: at[3], Since: at[2]}, at[2], "too old, since it was published")
	w.resume(sub, sender.Resume{NotBefore: at[3], Since: at[3]})
	w.endsSwept()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1, sender.StatusCancelled: 2, sender.StatusPending: 1}, "statuses, resumed since what is young enough")
	for i, r := range []sender.Resume{{NotBefore: at[3]}, {}, {None: true, NotBefore: at[3].Add(time.Hour)}} {
		w.pause(sub)
		w.resume(sub, r)
		w.equal(w.read(sub).Status, sender.SubscriptionActive, "status after resume %d, which sends nothing that is too old", i)
	}
}

func resumeRetentionInFlight(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	published := w.now()
	w.publish(w.draft("a.b"))
	w.expand()
	w.claimOne()
	w.Advance(time.Second)
	w.disable(sub)
	w.refusedForRetention(sub, sender.Resume{NotBefore: w.now()}, published, "in flight")
	w.resume(sub, sender.Resume{NotBefore: published})
}

// A skipped delivery is in flight, so the store remembers the resume for longer.
func resumeRetentionAgain(w *world) {
	owner := w.subscriber()
	for _, order := range []sender.Order{sender.OrderRelaxed, sender.OrderObject} {
		s := w.subscription(owner, "only.addressed")
		s.Settings.Order = order
		w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
		published := w.now()
		again, inFlight := w.addressed(owner, s.ID), w.addressed(owner, s.ID)
		w.publish(again)
		w.expand()
		w.record(result(w.claimOne(), sender.ClassNone))
		w.publish(inFlight)
		w.expand()
		w.claimOne()
		w.pause(s.ID)
		w.resume(s.ID, takeNone)
		w.endsSwept()
		w.redeliver(w.delivery(again.ID, s.ID).ID)
		w.Advance(time.Second)
		w.pause(s.ID)
		w.refusedForRetention(s.ID, sender.Resume{NotBefore: w.now()}, published, "sent again since a resume that has skipped what came before, "+string(order))
		w.resume(s.ID, sender.Resume{NotBefore: published})
		w.equal(w.claimOne().Event.ID, again.ID, "event claimed")
	}
}

func resumeRetentionWaiting(w *world) {
	sub := w.subscribe(w.subscriber(), "a.*")
	w.subscribe(w.subscriber(), "*")
	start := w.now()
	w.publish(w.draft("other"))
	w.Advance(time.Second)
	second := w.now()
	w.publish(w.draft("a.b"))
	w.Advance(time.Second)
	w.pause(sub)
	w.refusedForRetention(sub, sender.Resume{NotBefore: w.now()}, second, "not expanded yet")
	w.resume(sub, sender.Resume{NotBefore: start.Add(time.Millisecond)})
	w.expand()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusPending: 1}, "statuses after a resume that sends nothing that is too old")

	w.publish(w.draft("a.b"))
	w.Advance(time.Second)
	w.pause(sub)
	w.resume(sub, takeNone)
	w.pause(sub)
	w.resume(sub, sender.Resume{Since: second.Add(time.Second), NotBefore: w.now()}) // skipped deliveries are not sent
	w.expand()
	w.endsSwept()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 2}, "statuses after a resume that sends nothing")

	filtered := w.read(sub)
	filtered.Filter = filter.Read(`{"data.n":{"gte":1}}`)
	w.update(filtered)
	published := w.now()
	w.publish(w.draft("a.b"))
	w.Advance(time.Second)
	w.claim(plenty)
	w.pause(sub)
	w.refusedForRetention(sub, sender.Resume{NotBefore: w.now()}, published, "not expanded, and not what the filter matches")
	w.expand()
	w.resume(sub, sender.Resume{NotBefore: w.now()})
}

func resumeRetentionMiddle(w *world) {
	owner := w.subscriber()
	for range 4 {
		w.subscribe(owner, "*")
	}
	w.publish(w.draft("a.b"))
	_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 1, Deliveries: 1}, dispatch.Batch{})
	w.noError(err, "expanding")
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
		w.Advance(time.Second)
		w.pause(c.Target.Subscription)
		w.resume(c.Target.Subscription, sender.Resume{NotBefore: w.now()})
	}
	w.expand()
	w.equal(len(w.list(history.DeliveryQuery{})), 4, "deliveries of the event")
}
