package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func claimRules() []rule {
	return []rule{
		{"what is claimed", "A claimed delivery comes with its token, attempt number, target, event, body and the time of the claim; the deliveries of one subscription share the target.", claimFields},
		{"lease", "A claimed delivery is not claimed again before its lease ends, and is after.", claimLease},
		{"lost attempt", "A claim that finds a lease ended without a result stores the attempt as interrupted, decides, and goes on with the next number.", claimInterrupted},
		{"lost attempt ends the delivery", "The decision about a lost attempt can dead-letter the delivery, which is then not claimed.", claimInterruptedEnds},
		{"lost attempt is put off", "The decision about a lost attempt can put the next one off.", claimInterruptedLater},
		{"by several at a time", "However many claim at a time, no delivery is claimed twice, and all are.", claimConcurrently},
		{"oldest due first", "A subscription's deliveries are claimed in the order in which they became due.", claimOrder},
		{"nothing before it is due", "A delivery is not claimed before it is due.", claimNotBefore},
		{"after recording", "The claim of a batch sees what the recording of the same batch made due.", claimAfterRecord},
		{"NextDue", "NextDue is never later than when something is due that was not claimed, and zero if nothing is live.", claimNextDue},
		{"every wake-up is seen", "A delivery that becomes due while others expand and claim is not overlooked: it is claimed without the clock moving.", claimWakeups},
	}
}

func claimFields(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	first, second := w.draft("a.b"), w.draft("c.d")
	first.Version = 41
	w.publish(first, second)
	w.expand()
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Token: 1<<63 - 1, Lanes: lanes(10)})
	w.equal(len(claims.Claimed), 2, "deliveries claimed")
	w.equal(len(claims.Recorded)+len(claims.Interrupted), 0, "results recorded by a claim of fresh deliveries")
	want := map[string]sender.Draft{first.ID: first, second.ID: second}
	for _, c := range claims.Claimed {
		d, ok := want[c.Event.ID]
		w.check(ok, "event %s was claimed twice, or was not published", c.Event.ID)
		delete(want, d.ID)
		w.sameEvent(c.Event, d, claims.Now)
		w.sameBody(c.Body, d, max(d.Version, 1))
		w.equal([]int64{c.Token, int64(c.Number)}, []int64{1<<63 - 1, 1}, "token and number of a first attempt")
		w.sameTime(c.At, claims.Now, "time of the claim")
		w.equal(c.Target.Subscription, sub, "subscription")
		w.equal(c.Target.SubscriptionNo, c.Key.Subscription, "number of the subscription")
		w.equal(c.Target.URL, "https://example.com/"+sub, "URL")
		w.equal(c.Target.Subscriber, owner, "subscriber")
		w.equal(c.Target.Lane, sender.LaneNew, "lane of a new subscription")
		w.check(c.Target == claims.Claimed[0].Target, "two deliveries of one subscription do not share their Target")
		read := w.delivery(d.ID, sub)
		w.check(read.InFlight, "a claimed delivery does not read as in flight")
		w.equal(read.Status, sender.StatusPending, "status during the first attempt")
	}
	w.check(claims.Claimed[0].Key != claims.Claimed[1].Key, "two deliveries have one key")
}

func claimLease(w *world) {
	w.one()
	w.claimOne()
	w.claimNothing("at once after the claim")
	w.Advance(lease - time.Second)
	w.claimNothing("a second before the lease's end")
	w.Advance(time.Second + time.Millisecond)
	w.equal(w.claimOne().Number, 2, "number of a claim after a lost lease")
}

func claimInterrupted(w *world) {
	d, sub := w.one()
	lost := w.claimOne()
	w.Advance(lease + time.Second)
	var asked []dispatch.Live
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		asked = append(asked, l)
		w.equal([]any{r.Key, r.Token, r.Number, r.Class, r.Duration, r.StatusCode, r.Chance}, []any{lost.Key, lost.Token, 1, sender.ClassInterrupted, time.Duration(0), 0, 0.625}, "key, token, number, class, duration, status code and chance of the lost attempt's result")
		w.sameTime(r.StartedAt, lost.At, "start of the lost attempt")
		w.check(r.Error != "", "the lost attempt's result does not say what happened")
		return decide(l, h, r, now)
	}
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Chance: 0.625, Lanes: lanes(10)})
	w.check(len(asked) > 0, "Decide was not called for the lost attempt")
	last := asked[len(asked)-1]
	w.sameTime(last.First, lost.At, "First that Decide was given")
	last.First = time.Time{}
	w.equal(last, dispatch.Live{Key: lost.Key, Number: 1, Tries: 1}, "row that Decide was given")
	w.equal(len(claims.Claimed), 1, "deliveries claimed")
	w.equal(claims.Claimed[0].Number, 2, "number of the next attempt")
	w.equal(len(claims.Interrupted), 1, "interrupted attempts")
	found := claims.Interrupted[0]
	w.equal([]any{found.Lost, found.Event.ID, found.Target.Subscription, found.Decision.Status, found.Result.Number}, []any{false, d.ID, sub, sender.StatusAwaitingRetry, 1}, "Interrupted: lost, event, subscription, status and number")

	read := w.delivery(d.ID, sub)
	w.sameAttempts(read, sender.Attempt{Number: 1, StartedAt: lost.At, Class: sender.ClassInterrupted, Error: found.Result.Error, NextAttemptAt: found.Decision.Due})
	w.equal([]any{read.Status, read.InFlight, read.LastErrorClass}, []any{sender.StatusAwaitingRetry, true, sender.ClassInterrupted}, "status, in flight, and last class")
}

func claimInterruptedEnds(w *world) {
	d, sub := w.one()
	for n := range maxTries {
		c := w.claimOne()
		w.equal(c.Number, n+1, "number of the attempt")
		w.Advance(lease + time.Second)
	}
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal(len(claims.Claimed), 0, "deliveries claimed after the last try was lost")
	w.equal(len(claims.Interrupted), 1, "interrupted attempts")
	w.equal(claims.Interrupted[0].Decision.Status, sender.StatusDeadLettered, "decision")
	read := w.delivery(d.ID, sub)
	w.equal(read.Status, sender.StatusDeadLettered, "status")
	w.equal(read.AttemptCount, maxTries, "number of attempts")
	w.check(read.Attempts[maxTries-1].NextAttemptAt.IsZero(), "the last attempt has a NextAttemptAt")
	w.Advance(24 * time.Hour)
	w.claimNothing("of a dead-lettered delivery")
}

func claimInterruptedLater(w *world) {
	d, sub := w.one()
	w.claimOne()
	w.Advance(lease + time.Second)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(time.Hour), Health: h}
	}
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{0, 1}, "deliveries claimed, and attempts interrupted")
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.AttemptCount}, []any{sender.StatusAwaitingRetry, false, 1}, "status, in flight and attempts")
	w.sameTime(read.NextAttemptAt, claims.Now.Add(time.Hour), "NextAttemptAt")
	w.Advance(time.Hour - time.Second)
	w.claimNothing("a second before it is due again")
	w.Advance(2 * time.Second)
	w.equal(w.claimOne().Number, 2, "number of the next attempt")
}

func claimConcurrently(w *world) {
	const claimers, subscriptions, events = 8, 10, 30
	for range subscriptions {
		w.subscribe(w.subscriber(), "*")
	}
	for range events {
		w.publish(w.draft("a.b"))
	}
	w.expand()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		claimed = map[dispatch.DeliveryKey]int{}
		batch   = dispatch.Batch{Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(7)}}
	)
	for range claimers {
		wg.Go(func() {
			for range subscriptions * events / 4 {
				_, c, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, batch)
				if err != nil {
					w.Errorf("claiming: %v", err)
					return
				}
				mu.Lock()
				for _, d := range c.Claimed {
					claimed[d.Key]++
				}
				mu.Unlock()
				if len(c.Claimed) == 0 {
					return // or another claim has the due ones: the test claims the rest
				}
			}
		})
	}
	wg.Wait()
	for _, c := range w.claim(plenty) {
		claimed[c.Key]++
	}
	for key, n := range claimed {
		w.equal(n, 1, "claims of delivery %v", key)
	}
	w.equal(len(claimed), subscriptions*events, "deliveries claimed")
}

func claimOrder(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	w.backlog(owner, sub, 6)
	claimed := w.claim(plenty)
	minutes := []int{40, 10, 60, 20, 50, 30} // until each is due again
	due := map[dispatch.DeliveryKey]int{}
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(time.Duration(due[r.Key]) * time.Minute), Health: h}
	}
	var results []dispatch.Result
	for i, c := range claimed {
		due[c.Key] = minutes[i]
		results = append(results, result(c, sender.ClassTimeout))
	}
	w.record(results...)
	w.Advance(2 * time.Hour)
	var order []int
	for len(order) < len(claimed) {
		got := w.claim(2)
		w.check(len(got) > 0, "%d of %d deliveries were claimed", len(order), len(claimed))
		var pair []int
		for _, c := range got {
			pair = append(pair, due[c.Key])
		}
		if len(pair) == 2 { // the contract does not say in which order one claim returns two
			pair = []int{min(pair[0], pair[1]), max(pair[0], pair[1])}
		}
		order = append(order, pair...)
		w.Advance(time.Millisecond)
	}
	w.equal(order, []int{10, 20, 30, 40, 50, 60}, "order of the claims, by the minutes after which each was due")
}

func claimNotBefore(w *world) {
	w.one()
	for n := 1; n < maxTries; n++ {
		w.record(result(w.claimOne(), sender.ClassConnect))
		w.claimNothing("at once after failure %d", n)
		w.Advance(retryDelay(n) - time.Second)
		w.claimNothing("a second before retry %d is due", n)
		w.Advance(time.Second + time.Millisecond)
	}
	w.equal(w.claimOne().Number, maxTries, "number of the last attempt")
}

func claimAfterRecord(w *world) {
	w.one()
	c := w.claimOne()
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now, Health: h}
	}
	_, claims, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{
		Results: []dispatch.Result{result(c, sender.ClassReset)}, Decide: w.decide,
		Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(1)},
	})
	w.noError(err, "recording and claiming")
	w.equal([]int{len(claims.Recorded), len(claims.Claimed)}, []int{1, 1}, "results recorded, and deliveries claimed")
	w.equal(claims.Claimed[0].Number, 2, "number of the attempt")
}

func claimNextDue(w *world) {
	full := dispatch.ClaimParams{Lease: lease, Lanes: lanes(plenty)}
	w.check(w.claimBy(full).NextDue.IsZero(), "NextDue of an empty store is set")
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	other := w.subscribe(owner, "other")
	w.backlog(owner, sub, 3)
	w.backlog(owner, other, 1)

	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(1)})
	w.equal(len(claims.Claimed), 1, "deliveries claimed")
	soon := claims.Now.Add(time.Millisecond)
	w.check(!claims.NextDue.IsZero() && claims.NextDue.Before(soon), "NextDue with work that the slots kept from being claimed: got %v, want at most about %v", claims.NextDue, claims.Now)
	rest := w.claimBy(full)
	w.equal(len(rest.Claimed), 3, "deliveries claimed")

	delays := []time.Duration{30 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute}
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		delay := delays[0]
		delays = append(delays[1:], delay) // whatever the number of calls, all four differ
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(delay), Health: h}
	}
	due := map[dispatch.DeliveryKey]time.Time{}
	for _, c := range append(claims.Claimed, rest.Claimed...) {
		due[c.Key] = w.record(result(c, sender.ClassTimeout))[0].Decision.Due
	}
	w.decide = decide
	for visits := 0; len(due) > 0; {
		claims := w.claimBy(full)
		for _, c := range claims.Claimed {
			w.check(!c.At.Before(due[c.Key].Add(-time.Microsecond)), "a delivery was claimed at %v, and is due at %v", c.At, due[c.Key])
			delete(due, c.Key)
			w.record(result(c, sender.ClassNone))
			visits = 0
		}
		for _, at := range due {
			w.check(!claims.NextDue.IsZero() && !claims.NextDue.After(at), "NextDue is %v, and something is due at %v", claims.NextDue, at)
		}
		if visits++; visits > 4 {
			w.Fatalf("NextDue, %v, led to %d claims of nothing in a row; something is due next at %v", claims.NextDue, visits, due)
		}
		if wait := claims.NextDue.Sub(claims.Now); wait > 0 {
			w.Advance(wait + time.Microsecond)
		}
	}
	w.Advance(time.Hour) // the end of any lease
	w.claimBy(full)
	w.check(w.claimBy(full).NextDue.IsZero(), "NextDue is set although nothing is live")
}

func claimWakeups(w *world) {
	const publishers, each = 4, 30
	owner := w.subscriber()
	for range 3 {
		w.subscribe(owner, "*")
	}
	var (
		workers, publishing sync.WaitGroup
		mu                  sync.Mutex
		claimed             = map[dispatch.DeliveryKey]int{}
		stop                = make(chan struct{})
	)
	step := func() error {
		if _, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 5, Deliveries: 10}, dispatch.Batch{}); err != nil {
			return fmt.Errorf("expanding: %w", err)
		}
		_, c, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(5)}})
		if err != nil {
			return fmt.Errorf("claiming: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, d := range c.Claimed {
			claimed[d.Key]++
		}
		return nil
	}
	for range 2 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := step(); err != nil {
					w.Error(err)
					return
				}
			}
		})
	}
	for range publishers {
		drafts := make([]sender.Draft, each)
		for i := range drafts {
			drafts[i] = w.draft("a.b")
		}
		publishing.Go(func() {
			for i := range drafts {
				if _, err := w.tryPublish(drafts[i]); err != nil {
					w.Errorf("publishing: %v", err)
					return
				}
			}
		})
	}
	publishing.Wait()
	close(stop)
	workers.Wait()
	w.expand()
	for _, c := range w.claim(plenty) {
		claimed[c.Key]++
	}
	for key, n := range claimed {
		w.equal(n, 1, "claims of delivery %v", key)
	}
	w.equal(len(claimed), publishers*each*3, "deliveries claimed, the clock not having moved")
}
