package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func (w *world) facts(event, subscription string) history.Facts {
	w.Helper()
	d := w.delivery(event, subscription)
	f, err := w.Store.Facts(w.ctx, d.ID)
	w.noError(err, "reading the facts about %s", d.ID)
	w.sameTime(f.Now, w.now(), "Now of the facts")
	w.equal(f.Delivery.ID, d.ID, "delivery that the facts are about")
	w.equal([]any{f.Delivery.Status, f.Delivery.InFlight, f.Delivery.AttemptCount}, []any{d.Status, d.InFlight, d.AttemptCount}, "status, whether it is in flight, and number of attempts")
	w.equal(f.Delivery.Attempts, telling(d.Attempts), "attempts among the facts")
	return f
}

// telling are the attempts that explain a delivery: the first, the first that succeeded, and the
// last.
func telling(all []sender.Attempt) (list []sender.Attempt) {
	succeeded := slices.IndexFunc(all, func(a sender.Attempt) bool { return a.Class == sender.ClassNone })
	for i, a := range all {
		if i == 0 || i == succeeded || i == len(all)-1 {
			list = append(list, a)
		}
	}
	return list
}

func queryFacts(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	var drafts []sender.Draft
	for range 4 {
		d := w.addressed(owner, sub)
		drafts = append(drafts, d)
		w.publish(d)
		w.expand()
		w.Advance(time.Second)
	}
	for i, d := range drafts {
		f := w.facts(d.ID, sub)
		w.equal([]any{f.Ahead, f.Tries, f.Single, f.Status, f.InFlight}, []any{i, 0, false, sender.SubscriptionActive, 0}, "what goes before delivery %d, its tries, and its subscription", i)
		w.check(f.Leased.IsZero() && f.HeldSince.IsZero() && f.RateAgain.IsZero(), "a delivery that is due is said to be held back: %+v", f)
	}
	claimed := w.claim(1)
	at := w.now()
	f := w.facts(drafts[0].ID, sub)
	w.sameTime(f.Leased, at, "Leased of one in flight")
	w.sameTime(f.Lease, at.Add(lease), "Lease of one in flight")
	w.equal([]any{f.Tries, f.InFlight}, []any{1, 1}, "tries of one in flight, and how many are")
	w.equal(w.facts(drafts[3].ID, sub).Ahead, 2, "what goes before the last one")

	w.record(result(claimed[0], sender.ClassStatus))
	f = w.facts(drafts[0].ID, sub)
	w.check(f.Delivery.NextAttemptAt.After(f.Now) && f.Leased.IsZero() && f.Ahead == 0, "one that awaits a retry: %+v", f)
	w.equal([]any{f.Tries, f.Health.Streak, f.InFlight}, []any{1, 1, 0}, "tries of one that awaits a retry, failures, and how many are in flight")
	w.Advance(f.Delivery.NextAttemptAt.Sub(f.Now))
	w.equal(w.facts(drafts[0].ID, sub).Ahead, 3, "what goes before one that is due again")
	w.equal(w.facts(drafts[3].ID, sub).Ahead, 2, "what goes before the last one")

	w.pause(sub)
	at = w.now()
	w.Advance(time.Minute)
	f = w.facts(drafts[1].ID, sub)
	w.equal(f.Status, sender.SubscriptionPaused, "status of a paused subscription")
	w.sameTime(f.HeldSince, at, "HeldSince")
	w.disable(sub)
	f = w.facts(drafts[1].ID, sub)
	w.equal([]any{f.Status, f.Reason}, []any{sender.SubscriptionDisabled, "because of disabled"}, "status and reason of a disabled subscription")
	w.sameTime(f.HeldSince, w.now(), "HeldSince of a disabled one")
	w.equal(w.read(sub).DisabledReason, f.Reason, "DisabledReason")

	w.resume(sub, sender.Resume{})
	w.check(w.facts(drafts[1].ID, sub).HeldSince.IsZero(), "a subscription that was resumed is said to be held since %v", w.facts(drafts[1].ID, sub).HeldSince)
	var results []dispatch.Result
	for _, c := range w.claim(plenty) {
		results = append(results, result(c, sender.ClassNone))
	}
	w.record(results...)
	d := w.delivery(drafts[2].ID, sub)
	w.noError(w.Store.Redeliver(w.ctx, d.ID, time.Time{}), "redelivering")
	f = w.facts(drafts[2].ID, sub)
	w.equal([]any{f.Single, f.Tries, len(f.Delivery.Attempts)}, []any{true, 0, 1}, "one that is sent a single time more")
	w.unsubscribe(sub)
	w.equal(w.facts(drafts[1].ID, sub).Status, sender.SubscriptionStatus(""), "status of a deleted subscription")
}

func queryFactsUnknown(w *world) {
	d, sub := w.one()
	for _, id := range w.oddIDs(w.delivery(d.ID, sub).ID) {
		_, err := w.Store.Facts(w.ctx, id)
		w.errorIs(err, sender.ErrNotFound, "reading the facts about %q", id)
	}
}
