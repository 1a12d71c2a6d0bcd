package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func ownPolicyRules() []rule {
	return []rule{
		{"policy of its own", "A decision about an attempt is given its subscription's settings, as they are now, if they have a policy of their own.", ownPolicyGiven},
		{"stopped by 410", "A delivery that was answered with 410 Gone, and whose subscription chose that this stops it, is held, even if it was the last attempt of its schedule; so is one that was in flight then. A resume sends them.", goneHolds},
		{"stopped by 410, closing", "A subscription that is closing is not stopped: its deliveries come to their end, and it is deleted.", goneCloses},
	}
}

func ownPolicyGiven(w *world) {
	live := w.watch()
	own := sender.Settings{RetryDelays: []time.Duration{time.Minute, time.Hour}, Horizon: 3 * time.Hour, DisableAfter: sender.NeverDisable, Gone: sender.GoneStops}
	owner, sub := w.ordered(own)
	other := w.subscribe(owner, "only.addressed")
	for i, want := range []sender.Settings{own, {Horizon: time.Hour}, {DisableAfter: time.Hour}, {RetryDelays: own.RetryDelays}, {Gone: sender.GoneStops}, {}} {
		if i > 0 {
			w.set(sub, want)
		}
		w.publish(w.addressed(owner, other), w.addressed(owner, sub))
		w.expand()
		for _, c := range w.claimsOf(map[string]int{sub: 1, other: 1}, "with the settings %v", want) {
			w.record(result(c, sender.ClassNone))
			if c.Target.Subscription == other {
				w.equal([]any{live.Own, live.GoneStops}, []any{(*sender.Settings)(nil), false}, "policy of a subscription that has none, beside one with the settings %v", want)
				continue
			}
			w.equal(live.GoneStops, want.Gone == sender.GoneStops, "whether 410 stops, with the settings %v", want)
			w.equal(live.Own != nil, want.HasPolicy(), "whether there is a policy, with the settings %v", want)
			if live.Own != nil {
				w.equal(*live.Own, want, "policy that was given")
			}
		}
	}
}

// goneSettings stop by 410. Under ownPolicy their schedule has two attempts.
var (
	goneSettings = sender.Settings{RetryDelays: []time.Duration{time.Hour}, Horizon: time.Hour, Gone: sender.GoneStops}
	ownPolicy    = dispatch.Policy{Own: sender.PolicyBounds{Allowed: true}}
)

func goneHolds(w *world) {
	w.decide = ownPolicy.Decide
	owner, sub := w.ordered(goneSettings)
	w.backlog(owner, sub, 3)
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassTimeout))
	}
	w.Advance(time.Hour)
	last := w.claim(plenty)
	w.equal(len(last), 3, "deliveries claimed at the horizon")
	w.record(answered(last[0], sender.ClassStatus, 410))
	got := w.read(sub)
	w.equal([]any{got.Status, got.DisabledReason, got.Health.Streak}, []any{sender.SubscriptionDisabled, sender.DisabledByGone, 4}, "status, reason and Streak")
	w.record(answered(last[1], sender.ClassStatus, 410), result(last[2], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 2, sender.StatusDelivered: 1}, "statuses")
	w.Advance(100 * time.Hour)
	w.claimNothing("while it is stopped")

	w.resume(sub, sender.Resume{})
	again := w.claim(plenty)
	w.equal(len(again), 2, "deliveries claimed after a resume")
	w.pause(sub) // it is held already when they are answered
	w.record(answered(again[0], sender.ClassStatus, 410), answered(again[1], sender.ClassStatus, 410))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 2, sender.StatusDelivered: 1}, "statuses of one that was paused")
	w.equal(w.read(sub).Status, sender.SubscriptionPaused, "status of one that was paused")
	w.resume(sub, sender.Resume{})
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 3}, "statuses at the end")
}

func goneCloses(w *world) {
	w.decide = ownPolicy.Decide
	owner, sub := w.ordered(goneSettings)
	w.backlog(owner, sub, 1)
	w.close(sub)
	w.record(answered(w.claimOne(), sender.ClassStatus, 410))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusAwaitingRetry: 1}, "statuses after the first attempt")
	w.Advance(time.Hour)
	w.record(answered(w.claimOne(), sender.ClassStatus, 410))
	w.endsSwept()
	w.gone(sub, "after its last attempt")
}
