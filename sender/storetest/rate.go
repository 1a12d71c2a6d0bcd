package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func rateRules() []rule {
	return []rule{
		{"in flight", "No more of a subscription is leased at a time than its MaxInFlight, whoever claims; what ends makes room.", rateInFlight},
		{"in flight, lost", "A lease that has ended takes no room: its delivery is claimed again, also behind a backlog.", rateInFlightLost},
		{"in flight, given back", "What is given back makes room, also if its delivery is cancelled by that.", rateInFlightGivenBack},
		{"in flight, bounds", "MaxInFlight does not lift a claim's own bounds.", rateInFlightBounds},
		{"in flight, changed", "A changed MaxInFlight holds from the next claim on.", rateInFlightChanged},
		{"a second", "No more of a subscription is claimed a second than its Rate, after a burst of a tenth of a second's worth, or of one; and no less, if NextDue is followed.", rateSecond},
		{"a second, slow", "A Rate can be less than one a second.", rateSlow},
		{"a second, saved up", "A rate that was not used is not saved up beyond the burst.", rateIdle},
		{"a second, changed", "A changed Rate holds from the next claim on.", rateChanged},
		{"a second, lost", "A lost attempt whose delivery is not claimed again takes nothing of the Rate: another delivery is claimed instead.", rateLost},
		{"others", "A subscription that has no room is in nobody's way: the others get the slots.", rateOthers},
	}
}

// limited makes a subscription with settings and a backlog.
func (w *world) limited(set sender.Settings, backlog int) string {
	w.Helper()
	owner := w.subscriber()
	s := w.subscription(owner, "only.addressed")
	s.Settings = set
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	w.backlog(owner, s.ID, backlog)
	return s.ID
}

func (w *world) set(id string, set sender.Settings) {
	w.Helper()
	s := w.read(id)
	s.Settings = set
	w.update(s)
}

func rateInFlight(w *world) {
	w.limited(sender.Settings{MaxInFlight: 3}, 20)
	w.equal(len(w.claim(2)), 2, "deliveries claimed with two slots")
	w.equal(len(w.claim(plenty)), 1, "deliveries claimed of a subscription that has 2 of 3 in flight")
	w.claimNothing("of a subscription that has 3 of 3 in flight")
	w.Advance(lease / 2)
	w.claimNothing("of a subscription that has 3 of 3 in flight")
	w.Advance(lease/2 + time.Second)
	claimed := w.claim(plenty)
	w.equal(len(claimed), 3, "deliveries claimed after all three were lost")
	w.record(result(claimed[0], sender.ClassNone))
	w.equal(len(w.claim(plenty)), 1, "deliveries claimed after a success")
	w.record(result(claimed[1], sender.ClassTimeout))
	w.equal(len(w.claim(plenty)), 1, "deliveries claimed after a failure")
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: claimed[2].Key, Token: claimed[2].Token, Due: w.now().Add(time.Hour)}}), "releasing")
	again := w.claim(plenty)
	w.equal(len(again), 1, "deliveries claimed after a release")
	claims := w.batch(dispatch.Batch{
		Decide: decide, Results: []dispatch.Result{result(again[0], sender.ClassNone)},
		Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(plenty)},
	})
	w.equal(len(claims.Claimed), 1, "deliveries claimed by the batch that records a success")
}

func rateInFlightLost(w *world) {
	sub := w.limited(sender.Settings{MaxInFlight: 1}, 3)
	lost := w.claimOne()
	for n := 1; n <= 3*maxTries; n++ {
		w.Advance(lease + time.Second)
		w.equal(len(w.claim(plenty)), 1, "deliveries claimed after attempt %d was lost, of one at a time", n)
		if w.delivery(lost.Event.ID, sub).AttemptCount > 0 {
			return
		}
	}
	w.Fatalf("the delivery whose attempt was lost was not claimed again, behind a backlog of 2, in %d claims", 3*maxTries)
}

func rateLost(w *world) {
	const deliveries = 2
	w.limited(sender.Settings{Rate: 1 / lease.Seconds()}, deliveries)
	w.claimOne()
	for n := 1; n < deliveries*maxTries; n++ {
		w.Advance(lease + time.Second)
		w.equal(len(w.claim(plenty)), 1, "deliveries claimed after attempt %d was lost, of one in the time of a lease", n)
	}
}

func rateInFlightGivenBack(w *world) {
	owner, sub := w.ordered(sender.Settings{MaxInFlight: 1})
	claimed := w.claims("at first", w.versions(owner, sub, "a")...)
	w.pause(sub)
	w.resume(sub, takeNone)
	later := w.versions(owner, sub, "b")
	w.claimNothing("while one that the resume has skipped is in flight")
	w.giveBack(claimed...)
	w.claims("once that was given back", later...)
}

func rateInFlightBounds(w *world) {
	sub := w.limited(sender.Settings{MaxInFlight: 8}, 20)
	p := dispatch.ClaimParams{Lease: lease}
	p.Lanes[sender.LaneNew] = dispatch.LaneParams{Slots: 10, PerSubscriber: 10, PerSubscription: 5}
	claims := w.claimBy(p)
	w.equal(len(claims.Claimed), 5, "deliveries claimed with a bound of 5 and a MaxInFlight of 8")
	no := claims.Claimed[0].Target.SubscriptionNo
	p.SubscriptionRoom = map[int64]int{no: 2}
	w.equal(len(w.claimBy(p).Claimed), 2, "deliveries claimed with room for 2 and a MaxInFlight of 8")
	p.SubscriptionRoom = map[int64]int{no: 100}
	w.equal(len(w.claimBy(p).Claimed), 1, "deliveries claimed with room for 100, and 7 of 8 in flight")
	w.equal(w.read(sub).Backlog, int64(20), "Backlog")
}

func rateInFlightChanged(w *world) {
	sub := w.limited(sender.Settings{MaxInFlight: 2}, 20)
	claimed := w.claim(plenty)
	w.equal(len(claimed), 2, "deliveries claimed")
	w.set(sub, sender.Settings{MaxInFlight: 5})
	claimed = append(claimed, w.claim(plenty)...)
	w.equal(len(claimed), 5, "deliveries claimed in all, after MaxInFlight was raised to 5")
	w.set(sub, sender.Settings{MaxInFlight: 4})
	w.record(result(claimed[0], sender.ClassNone))
	w.claimNothing("of a subscription that has 4 of 4 in flight, after MaxInFlight was lowered")
	w.record(result(claimed[1], sender.ClassNone))
	w.equal(len(w.claim(plenty)), 1, "deliveries claimed of a subscription that has 3 of 4 in flight")
	w.set(sub, sender.Settings{})
	w.equal(len(w.claim(plenty)), 14, "deliveries claimed without MaxInFlight")
}

// claimFor claims for a time, at each NextDue, lets all attempts succeed, and returns
// how many it claimed. It ends the test if that is more than a rate allows.
func (w *world) claimFor(d time.Duration, rate float64) (n int) {
	w.Helper()
	burst := max(1, rate/10)
	start := w.now()
	for visits := 0; ; visits++ {
		claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(plenty)})
		n += len(claims.Claimed)
		passed := claims.Now.Sub(start)
		// One microsecond is allowed for: stores may round the times that they
		// remember.
		most := burst + rate*(passed+10*time.Microsecond).Seconds()
		w.check(float64(n) <= most, "%d deliveries were claimed within %v, at %g a second at most", n, passed, rate)
		w.record(resultsOf(claims.Claimed, sender.ClassNone)...)
		wait := max(claims.NextDue.Sub(claims.Now)+time.Microsecond, time.Millisecond)
		w.check(!claims.NextDue.IsZero(), "NextDue is not set while there is a backlog that the rate has kept back")
		w.check(visits < 5000, "NextDue leads to %d claims within %v", visits, passed)
		if passed+wait > d {
			w.Advance(d - passed)
			return n
		}
		w.Advance(wait)
	}
}

func rateSecond(w *world) {
	for _, rate := range []float64{5, 100} {
		sub := w.limited(sender.Settings{Rate: rate}, int(5*rate))
		n := w.claimFor(2*time.Second, rate)
		w.check(float64(n) >= 1.9*rate, "%d deliveries were claimed in 2 s, at a rate of %g a second", n, rate)
		w.unsubscribe(sub)
		w.endsSwept()
	}
}

func rateSlow(w *world) {
	w.limited(sender.Settings{Rate: 0.1}, 20)
	n := w.claimFor(65*time.Second, 0.1)
	w.equal(n, 7, "deliveries claimed in 65 s at one every 10 s")
}

func rateIdle(w *world) {
	sub := w.limited(sender.Settings{Rate: 20}, 100)
	w.claimFor(500*time.Millisecond, 20)
	w.Advance(time.Hour)
	n := len(w.claim(plenty))
	w.check(n >= 1 && n <= 2, "%d deliveries were claimed at once after an hour without any, at a rate of 20 a second", n)
	w.check(w.read(sub).Backlog > 80, "Backlog is %d", w.read(sub).Backlog)
}

func rateChanged(w *world) {
	sub := w.limited(sender.Settings{Rate: 0.001}, 100)
	w.equal(len(w.claim(plenty)), 1, "deliveries claimed at first, at one every 1000 s")
	w.claimNothing("at once after the first, at one every 1000 s")
	w.set(sub, sender.Settings{})
	w.equal(len(w.claim(10)), 10, "deliveries claimed without a rate, of 10 slots")
	w.Advance(2000 * time.Second)
	w.set(sub, sender.Settings{Rate: 0.001})
	w.check(len(w.claim(plenty)) <= 1, "more than one delivery was claimed under a rate that was set anew")
}

func rateOthers(w *world) {
	slow := w.limited(sender.Settings{Rate: 0.01}, 20)
	full := w.limited(sender.Settings{MaxInFlight: 1}, 20)
	w.claimsOf(map[string]int{slow: 1, full: 1}, "alone")
	w.Advance(time.Second)
	_, subs := w.crowd(2, 6)
	sibling := w.subscribe(w.read(slow).Subscriber, "only.addressed")
	w.backlog(w.read(slow).Subscriber, sibling, 6)
	got := map[string]int{}
	for range 3 {
		for _, c := range w.claim(6) {
			got[c.Target.Subscription]++
		}
		w.Advance(time.Millisecond)
	}
	w.equal(got, map[string]int{subs[0]: 6, subs[1]: 6, sibling: 6}, "deliveries claimed in three claims of 6 slots, behind two subscriptions without room")
}
