package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func disableRules() []rule {
	return []rule{
		{"disabled by a decision", "A decision that disables makes an active subscription disabled, with its reason; its deliveries are held, and the claim of the same batch gives none of them.", disableActive},
		{"disabled by a decision, within a batch", "The results that follow one that disables are decided and stored as always.", disableBatch},
		{"disabled by a decision, held or closing", "A decision that disables a subscription that is not active changes nothing of it; the notices of its being disabled are dropped, and if it is closing those of its failing, the others are not.", disableOthers},
		{"disabled by a decision, with a lost attempt", "The claim of a batch that disables a subscription finds no lost attempt of it: the claim after its resume does.", disableWithLost},
		{"disabled by a decision, lost attempt", "The decision about a lost attempt can disable the subscription, which is then not claimed.", disableLost},
	}
}

// disabling is the suite's policy, except that failures by a reset disable.
func disabling(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
	dec := decide(l, h, r, now)
	if r.Class == sender.ClassReset || r.Class == sender.ClassInterrupted {
		dec.Disable = "it broke"
		dec.Notices = []sender.Notice{{Kind: sender.NoticeDisabled, Detail: "disabled"}, {Kind: sender.NoticeFailing, Percent: 90}}
	}
	return dec
}

func disableActive(w *world) {
	_, subs := w.crowd(2, 4)
	w.decide = disabling
	var own []dispatch.Claimed
	for _, c := range w.claim(2) {
		if c.Target.Subscription == subs[0] {
			own = append(own, c)
		}
	}
	w.Advance(time.Second)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := disabling(l, h, r, now)
		dec.Due = now // would be claimed at once
		return dec
	}
	_, claims, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{
		Results: []dispatch.Result{result(own[0], sender.ClassReset)}, Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(plenty)},
	})
	w.noError(err, "recording and claiming")
	for _, c := range claims.Claimed {
		w.check(c.Target.Subscription != subs[0], "a claim gave a delivery of a subscription that the same batch has disabled")
	}
	w.equal(len(claims.Notices), 2, "notices stored")
	got := w.read(subs[0])
	w.equal([]any{got.Status, got.DisabledReason, got.Backlog, got.Health.Streak}, []any{sender.SubscriptionDisabled, "it broke", int64(4), 1}, "status, reason, Backlog and Streak")
	w.sameTime(got.DisabledAt, claims.Now, "DisabledAt")
	w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusHeld: 4}, "statuses")
	w.equal(w.read(subs[1]).Status, sender.SubscriptionActive, "status of another subscription")
	w.Advance(time.Hour)
	for _, c := range w.claim(plenty) {
		w.check(c.Target.Subscription != subs[0], "a delivery of a subscription that was disabled by a decision was claimed")
	}
}

func disableWithLost(w *world) {
	_, subs := w.crowd(1, 2)
	w.record(resultsOf(w.claim(plenty), sender.ClassTimeout)...) // so that the lane does not change
	w.Advance(retryDelay(1))
	claimed := w.claim(plenty)
	w.decide = disabling
	w.Advance(lease + time.Second)
	_, claims, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{
		Results: []dispatch.Result{result(claimed[0], sender.ClassReset)}, Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(plenty)},
	})
	w.noError(err, "recording and claiming")
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{0, 0}, "deliveries claimed, and attempts interrupted, by a batch that disables")
	w.record(result(claimed[1], sender.ClassNone)) // until it is found lost it counts
	w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusHeld: 1, sender.StatusDelivered: 1}, "statuses")
}

func disableBatch(w *world) {
	_, subs := w.crowd(1, 3)
	claimed := w.claim(plenty)
	w.decide = disabling
	_, claims, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: w.decide, Results: []dispatch.Result{
		result(claimed[0], sender.ClassReset), result(claimed[1], sender.ClassReset), result(claimed[2], sender.ClassNone),
	}})
	w.noError(err, "recording")
	for i, r := range claims.Recorded {
		w.check(!r.Lost, "result %d of a batch that disables reads as lost", i)
	}
	kinds := map[sender.NoticeKind]int{}
	for _, n := range claims.Notices {
		kinds[n.Kind]++
	}
	w.equal(kinds, map[sender.NoticeKind]int{sender.NoticeDisabled: 1, sender.NoticeFailing: 2}, "notices by kind, of two results that disable")
	w.equal(w.statuses(subs[0]), map[sender.Status]int{sender.StatusHeld: 2, sender.StatusDelivered: 1}, "statuses")
	got := w.read(subs[0])
	w.equal([]any{got.Status, got.Health.Streak, got.Health.Lane}, []any{sender.SubscriptionDisabled, 0, sender.LaneProven}, "status, and streak and lane after the success")
}

func disableOthers(w *world) {
	for name, change := range map[string]func(id string){
		"paused": w.pause, "disabled": w.disable, "closing": w.close,
	} {
		_, sub := w.one()
		c := w.claimOne()
		change(sub)
		want := w.read(sub)
		w.Advance(time.Second)
		_, claims, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: disabling, Results: []dispatch.Result{result(c, sender.ClassReset)}})
		w.noError(err, "recording")
		told, status := []sender.NoticeKind{sender.NoticeFailing}, sender.StatusHeld
		if name == "closing" {
			told, status = nil, sender.StatusAwaitingRetry
		}
		var kinds []sender.NoticeKind
		for _, n := range claims.Notices {
			kinds = append(kinds, n.Kind)
		}
		w.equal(kinds, told, "kinds of the notices stored, %s", name)
		got := w.read(sub)
		got.Health = want.Health
		w.equal(got, want, "subscription that was %s, after a decision to disable it", name)
		w.equal(w.statuses(sub), map[sender.Status]int{status: 1}, "statuses, %s", name)
	}
}

func disableLost(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 3)
	w.claim(1)
	w.Advance(lease + time.Second)
	w.decide = disabling
	claimed := 0 // of those that were due before the lease had ended
	var notices []sender.Notice
	for range 4 {
		claims := w.claimBy(dispatch.ClaimParams{Lease: time.Hour, Lanes: lanes(1)})
		claimed += len(claims.Claimed)
		for _, found := range claims.Interrupted {
			for _, c := range claims.Claimed {
				w.check(c.Key != found.Result.Key, "a delivery was claimed although the decision about its lost attempt has disabled its subscription")
			}
		}
		notices = append(notices, claims.Notices...)
		w.Advance(time.Millisecond)
	}
	w.check(claimed <= 2, "%d deliveries were claimed, of 3 of which one disables the subscription", claimed)
	w.equal(len(notices), 2, "notices stored")
	w.equal(w.read(sub).Status, sender.SubscriptionDisabled, "status")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 3}, "statuses")
}
