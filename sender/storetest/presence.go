package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func presenceRules() []rule {
	return []rule{
		{"known", "A process that has said that it lives is known, with its beat, until it leaves; it learns who was known before.", presenceKnown},
		{"a claim says it too", "A claim stores the beat of its process in its transaction, if it claims anything.", presenceByClaim},
		{"taken over", "The leases of a process end at once when it is taken over: its deliveries are due, whatever their lanes, and the next claim finds their attempts interrupted. The process is known no more.", presenceTakenOver},
		{"others' leases", "To take a process over leaves alone what others hold, what it held and has ended, and what it holds not.", presenceOthers},
		{"it lives", "A process whose beat is not the one given is not taken over, nor is one that is not known.", presenceLives},
		{"results of one that was taken over", "A result of a process that was taken over counts until the delivery is claimed again, and not after.", presenceResults},
		{"taken over, of a subscription that is gone", "When a process is taken over, its deliveries of a deleted subscription are cancelled, and those of a paused one wait until it is resumed.", presenceHeld},
		{"a claim whose answer was lost", "Deliveries that are leased under tokens are found by them, up to a limit, and given back as if they had not been claimed; those that were recorded, released, or claimed again are not found.", presenceLostClaim},
	}
}

// claimAs claims everything that is due for a process.
func (w *world) claimAs(process int64) []dispatch.Claimed {
	w.Helper()
	return w.claimBy(dispatch.ClaimParams{Lease: lease, By: dispatch.Presence{Process: process, Beat: 1}, Lanes: lanes(plenty)}).Claimed
}

func (w *world) takeOver(process, beat int64) int {
	w.Helper()
	n, err := w.Store.TakeOver(w.ctx, dispatch.Presence{Process: process, Beat: beat})
	w.noError(err, "taking over process %d", process)
	return n
}

func (w *world) known(when string, want ...dispatch.Presence) {
	w.Helper()
	got, err := w.Store.Present(w.ctx)
	w.noError(err, "reading who is present")
	w.equal(byNumber(got), byNumber(want), "processes that are known %s", when)
}

func byNumber(all []dispatch.Presence) []dispatch.Presence {
	all = append([]dispatch.Presence{}, all...)
	slices.SortFunc(all, func(a, b dispatch.Presence) int { return int(a.Process - b.Process) })
	return all
}

func presenceKnown(w *world) {
	w.known("in an empty store")
	for _, step := range []struct {
		says   dispatch.Presence
		before []dispatch.Presence
	}{
		{dispatch.Presence{Process: 7, Beat: 1}, nil},
		{dispatch.Presence{Process: 7, Beat: 2}, []dispatch.Presence{{Process: 7, Beat: 1}}},
		{dispatch.Presence{Process: 8, Beat: 5}, []dispatch.Presence{{Process: 7, Beat: 2}}},
		{dispatch.Presence{Process: 7, Beat: 3}, []dispatch.Presence{{Process: 7, Beat: 2}, {Process: 8, Beat: 5}}},
	} {
		before, err := w.Store.Beat(w.ctx, step.says)
		w.noError(err, "saying that process %d lives", step.says.Process)
		w.equal(byNumber(before), byNumber(step.before), "processes that were known before %v", step.says)
	}
	w.known("after four beats", dispatch.Presence{Process: 7, Beat: 3}, dispatch.Presence{Process: 8, Beat: 5})
	w.noError(w.Store.Leave(w.ctx, dispatch.Presence{Process: 7, Beat: 2}), "leaving with another beat")
	w.known("after one has left with another beat", dispatch.Presence{Process: 7, Beat: 3}, dispatch.Presence{Process: 8, Beat: 5})
	for range 2 {
		w.noError(w.Store.Leave(w.ctx, dispatch.Presence{Process: 7, Beat: 3}), "leaving")
	}
	w.known("after one has left", dispatch.Presence{Process: 8, Beat: 5})
}

func presenceByClaim(w *world) {
	w.equal(len(w.claimAs(7)), 0, "deliveries claimed of none")
	w.known("after a claim that found nothing")
	w.one()
	w.equal(len(w.claimAs(7)), 1, "deliveries claimed")
	w.known("after a claim", dispatch.Presence{Process: 7, Beat: 1})
	w.one()
	w.claimBy(dispatch.ClaimParams{Lease: lease, By: dispatch.Presence{Process: 7, Beat: 2}, Lanes: lanes(plenty)})
	w.known("after another claim", dispatch.Presence{Process: 7, Beat: 2})
	w.one()
	w.claimBy(dispatch.ClaimParams{Lease: lease, By: dispatch.Presence{Process: 7}, Lanes: lanes(plenty)})
	w.known("after a claim without a beat", dispatch.Presence{Process: 7, Beat: 2})
}

func presenceTakenOver(w *world) {
	owners, subs := w.crowd(3, 2)
	for _, c := range w.claim(plenty) { // the subscriptions get into different lanes
		r := result(c, sender.ClassNone)
		if c.Target.Subscription == subs[1] {
			r = result(c, sender.ClassTimeout)
		}
		if c.Target.Subscription != subs[2] {
			w.record(r)
		}
	}
	w.backlog(owners[0], subs[0], 3)
	w.Advance(lease + time.Second + retryDelay(1))
	held := w.claimAs(7)
	w.equal(len(held), 3+2+2, "deliveries claimed")
	w.claimNothing("while they are leased")
	w.Advance(time.Second)
	w.claimNothing("a second later")

	w.equal(w.takeOver(7, 1), len(held), "leases that were ended")
	w.known("after it was taken over")
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, By: dispatch.Presence{Process: 8, Beat: 1}, Lanes: lanes(plenty)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{len(held), len(held)}, "deliveries claimed, and attempts found interrupted, after it was taken over")
	number := map[dispatch.DeliveryKey]int{}
	for _, c := range held {
		number[c.Key] = c.Number
	}
	for _, c := range claims.Claimed {
		w.equal(c.Number, number[c.Key]+1, "number of the attempt after the one that was lost")
	}
	w.claimNothing("when all is claimed again")
	w.equal(w.takeOver(7, 1), 0, "leases that were ended of one that is gone")
	w.claimNothing("after one was taken over who is gone")
}

func presenceOthers(w *world) {
	w.one()
	mine := w.claimAs(7)[0]
	d, sub := w.one()
	w.equal(len(w.claimAs(8)), 1, "deliveries claimed by another process")
	w.one()
	w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(plenty)}) // nobody's
	recorded, recordedSub := w.one()
	w.record(result(w.claimAs(7)[0], sender.ClassNone))
	_, _ = w.one()
	back := w.claimAs(7)[0]
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: back.Key, Token: back.Token, Due: back.At.Add(time.Hour)}}), "releasing")

	w.equal(w.takeOver(7, 1), 1, "leases that were ended")
	w.equal([]any{w.delivery(d.ID, sub).InFlight, w.delivery(recorded.ID, recordedSub).Status}, []any{true, sender.StatusDelivered}, "what another holds is in flight, and what was recorded")
	again := w.claim(plenty)
	w.equal(len(again), 1, "deliveries claimed after one of three was taken over")
	w.equal(again[0].Key, mine.Key, "delivery claimed again")
	w.known("after one was taken over", dispatch.Presence{Process: 8, Beat: 1})
}

func presenceLives(w *world) {
	w.one()
	c := w.claimAs(7)[0]
	_, err := w.Store.Beat(w.ctx, dispatch.Presence{Process: 7, Beat: 2})
	w.noError(err, "saying that it lives")
	for _, beat := range []int64{0, 1, 3} {
		w.equal(w.takeOver(7, beat), 0, "leases that were ended of a process whose beat is not %d", beat)
	}
	w.equal(w.takeOver(8, 1), 0, "leases that were ended of a process that is not known")
	w.claimNothing("after nobody was taken over")
	w.known("after nobody was taken over", dispatch.Presence{Process: 7, Beat: 2})
	w.record(result(c, sender.ClassNone))
}

func presenceResults(w *world) {
	first, sub := w.one()
	inTime := w.claimAs(7)[0]
	second, other := w.one()
	late := w.claimAs(7)[0]
	w.equal(w.takeOver(7, 1), 2, "leases that were ended")
	w.record(result(inTime, sender.ClassNone))
	w.equal(w.delivery(first.ID, sub).Status, sender.StatusDelivered, "status after a result that came before the next claim")

	c := w.claimOne()
	w.equal(c.Key, late.Key, "delivery claimed")
	w.lost(result(late, sender.ClassNone), second.ID, other, "taken over, and claimed again")
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: late.Key, Token: late.Token}}), "releasing what was claimed again")
	w.claimNothing("after a late release")
	w.record(result(c, sender.ClassNone))
}

func presenceHeld(w *world) {
	_, subs := w.crowd(2, 1)
	w.equal(len(w.claimAs(7)), 2, "deliveries claimed")
	w.unsubscribe(subs[0])
	w.pause(subs[1])
	w.equal(w.takeOver(7, 1), 2, "leases that were ended")
	w.claimNothing("of a subscription that is deleted, and one that is paused")
	w.equal(w.sweep(10), 1, "deliveries that were swept")
	w.resume(subs[1], sender.Resume{})
	w.equal(w.claimOne().Number, 2, "number of the attempt after the resume")
}

// leasedUnder returns the deliveries that are leased under these tokens.
func (w *world) leasedUnder(limit int, tokens ...int64) []dispatch.Release {
	w.Helper()
	found, err := w.Store.LeasedUnder(w.ctx, tokens, limit)
	w.noError(err, "looking for leases by their tokens")
	return found
}

func presenceLostClaim(w *world) {
	w.equal(len(w.leasedUnder(10, 1, 2)), 0, "leases found in an empty store")
	w.crowd(2, 2)
	first := w.claim(3)
	second := w.claim(1)
	mine, others := first[0].Token, second[0].Token
	w.equal(len(w.leasedUnder(10)), 0, "leases found under no tokens")
	w.equal(len(w.leasedUnder(10, mine)), 3, "leases found under the token of a claim of three")
	w.equal(len(w.leasedUnder(10, others, 1, mine)), 4, "leases found under both tokens")
	w.equal(len(w.leasedUnder(2, others, mine)), 2, "leases found, up to two")

	w.record(result(first[0], sender.ClassNone))
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: first[1].Key, Token: mine, Due: first[1].At.Add(time.Hour)}}), "releasing")
	found := w.leasedUnder(10, mine)
	w.equal(found, []dispatch.Release{{Key: first[2].Key, Token: mine}}, "leases found after one was recorded, and one released")
	w.noError(w.Store.Release(w.ctx, found), "releasing what was found")
	w.equal(len(w.leasedUnder(10, mine)), 0, "leases found after all ended")
	again := w.claimOne()
	w.equal([]any{again.Key, again.Number}, []any{first[2].Key, 1}, "delivery claimed after it was given back, and the number of its attempt")

	w.Advance(lease + time.Second)
	w.equal(w.leasedUnder(10, others), []dispatch.Release{{Key: second[0].Key, Token: others}}, "lease found that has ended, of what nobody has claimed since")
	w.equal(len(w.claim(plenty)), 2, "deliveries claimed after the leases' time")
	w.equal(len(w.leasedUnder(10, others, again.Token)), 0, "leases found of what was claimed again")
}
