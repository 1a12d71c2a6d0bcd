package storetest

import (
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func recordRules() []rule {
	return []rule{
		{"success", "An attempt that succeeded is stored, and its delivery is delivered and never claimed again.", recordSuccess},
		{"failure", "After a failure the delivery awaits its retry, which is due when the decision says.", recordFailure},
		{"dead letter", "A delivery that the decision gives up is dead-lettered, with its body and all its attempts.", recordDeadLetter},
		{"attempts in full", "Attempts are stored with every field, byte for byte.", recordAttempts},
		{"what Decide is given", "Decide is given the row as it is, the subscription's health, the result, and the database's time.", recordDecide},
		{"health within a batch", "Results of one subscription are decided in the order given, each with the Health that the one before left, and the last is stored.", recordHealth},
		{"token", "A result whose token is not the present lease's changes nothing.", recordToken},
		{"not leased", "A result for a delivery that is not leased changes nothing, be it the second for one attempt.", recordNotLeased},
		{"too late", "A result that arrives after its lease was lost and the delivery was claimed again changes nothing.", recordLate},
		{"late, but not lost", "A result that arrives after its lease's end counts if nobody else has claimed the delivery.", recordOverdue},
		{"several of many", "In a batch, lost results stand in nobody's way.", recordMixed},
		{"released", "A released delivery is due again at the time given, and its attempt never was: its number is used again, and it counts as no try. Until then its schedule stands still.", releaseRule},
		{"released under another token", "A release whose token is not the present lease's changes nothing.", releaseToken},
		{"a number given twice", "After a release the number is given out again, and the token is not: what was done under the first one changes nothing, be it repeated.", releaseTwice},
	}
}

func recordSuccess(w *world) {
	d, sub := w.one()
	r := result(w.claimOne(), sender.ClassNone)
	w.equal(w.record(r)[0].Decision.Status, sender.StatusDelivered, "decision")
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.NextAttemptAt.IsZero(), read.LastErrorClass}, []any{sender.StatusDelivered, false, true, sender.ClassNone}, "status, in flight, no next attempt, last class")
	w.sameAttempts(read, attempt(r, time.Time{}))
	w.sameBody(read.Body, d, 1)
	w.Advance(1000 * time.Hour)
	w.claimNothing("after success")
}

func recordFailure(w *world) {
	d, sub := w.one()
	first := result(w.claimOne(), sender.ClassTimeout)
	due := w.record(first)[0].Decision.Due
	w.sameTime(due, w.now().Add(retryDelay(1)), "Due of the decision")
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.LastErrorClass}, []any{sender.StatusAwaitingRetry, false, sender.ClassTimeout}, "status, in flight, last class")
	w.sameTime(read.NextAttemptAt, due, "NextAttemptAt")
	w.sameAttempts(read, attempt(first, due))

	w.Advance(retryDelay(1) - time.Second)
	w.claimNothing("a second before the retry is due")
	w.Advance(time.Second + time.Millisecond)
	second := result(w.claimOne(), sender.ClassNone)
	w.equal(second.Number, 2, "number of the retry")
	w.record(second)
	read = w.delivery(d.ID, sub)
	w.equal(read.Status, sender.StatusDelivered, "status")
	w.sameAttempts(read, attempt(first, due), attempt(second, time.Time{}))
}

func recordDeadLetter(w *world) {
	d, sub := w.one()
	w.deadLetter()
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.NextAttemptAt.IsZero(), read.LastErrorClass}, []any{sender.StatusDeadLettered, false, true, sender.ClassStatus}, "status, in flight, no next attempt, last class")
	w.equal(read.AttemptCount, maxTries, "number of attempts")
	for i, a := range read.Attempts {
		w.equal(a.Number, i+1, "number of an attempt")
		w.equal(a.NextAttemptAt.IsZero(), i+1 == maxTries, "whether attempt %d has no NextAttemptAt", i+1)
	}
	w.sameBody(read.Body, d, 1)
	w.Advance(1000 * time.Hour)
	w.claimNothing("after the dead letter")
}

// deadLetter fails the only due delivery until it is given up.
func (w *world) deadLetter() {
	w.Helper()
	for range maxTries {
		c := w.claimOne()
		if dec := w.record(result(c, sender.ClassStatus))[0].Decision; dec.Status == sender.StatusDeadLettered {
			return
		}
		w.Advance(retryDelay(maxTries))
	}
	w.Fatalf("the delivery was not given up after %d failures: Decide was not given the tries that were made", maxTries)
}

func recordAttempts(w *world) {
	d, sub := w.one()
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(1500 * time.Microsecond), Health: h}
	}
	var want []sender.Attempt
	for i, r := range []dispatch.Result{
		{Class: sender.ClassDNS, Error: "no such host"},
		{Class: sender.ClassConnect, Duration: time.Microsecond, Error: "'\"\\%_$1? ключ 🔑\n\u2028"},
		{Class: sender.ClassTLS, Duration: 9999999 * time.Microsecond},
		{Class: sender.ClassTimeout, Duration: 72 * time.Hour, Error: strings.Repeat("e", 5000)},
		{Class: sender.ClassReset, Snippet: []byte("\x00\xff\x80 'half an answ")},
		{Class: sender.ClassStatus, StatusCode: 999, Snippet: []byte(strings.Repeat("snippet ", 500))},
		{Class: sender.ClassRedirect, StatusCode: 302, Headers: headers},
		{Class: sender.ClassStatus, StatusCode: 500, Headers: sender.Headers(strings.Repeat("h", dispatch.MaxHeaders))},
		{Class: sender.ClassBlocked, Error: "blocked"},
		{Class: sender.ClassProtocol, RetryAfter: time.Hour, Chance: 0.75},
	} {
		c := w.claimOne()
		r.Key, r.Token, r.Number, r.StartedAt = c.Key, c.Token, c.Number, c.At.Add(time.Duration(i)*time.Microsecond)
		next := w.record(r)[0].Decision.Due
		want = append(want, attempt(r, next))
		read := w.delivery(d.ID, sub)
		w.sameAttempts(read, want...)
		w.equal(read.LastErrorClass, r.Class, "LastErrorClass")
		w.Advance(time.Second)
	}
}

func recordDecide(w *world) {
	w.one()
	var live dispatch.Live
	var now time.Time
	var got dispatch.Result
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, at time.Time) dispatch.Decision {
		live, got, now = l, r, at
		return decide(l, h, r, at)
	}
	var first time.Time
	for n := 1; n <= 3; n++ {
		c := w.claimOne()
		if n == 1 {
			first = c.At
		}
		w.Advance(time.Second)
		r := result(c, sender.ClassStatus)
		r.RetryAfter, r.Chance = 7*time.Second, 0.125
		w.record(r)
		w.sameTime(live.First, first, "First at attempt %d", n)
		live.First = time.Time{}
		w.equal(live, dispatch.Live{Key: c.Key, Number: n, Tries: n}, "row at attempt %d", n)
		w.equal(got, r, "result at attempt %d", n)
		w.sameTime(now, c.At.Add(time.Second), "time of the decision on attempt %d", n)
		w.Advance(retryDelay(n))
	}
}

func recordHealth(w *world) {
	_, subs := w.crowd(2, 8)
	bySub := map[string][]dispatch.Claimed{}
	for _, c := range w.claim(plenty) {
		bySub[c.Target.Subscription] = append(bySub[c.Target.Subscription], c)
	}
	a, b := bySub[subs[0]], bySub[subs[1]]
	var seen []sender.Health
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		seen = append(seen, h)
		return decide(l, h, r, now)
	}
	// batch records classes as results of a's deliveries, with one of b's between,
	// and returns Decide's arguments for a's last one.
	batch := func(classes ...sender.Class) sender.Health {
		var results []dispatch.Result
		for _, class := range classes {
			results = append(results, result(a[0], class))
			a = a[1:]
		}
		results = append(results[:1:1], append([]dispatch.Result{result(b[0], sender.ClassNone)}, results[1:]...)...)
		b = b[1:]
		seen = nil
		w.record(results...)
		w.check(len(seen) >= len(results), "Decide was called %d times for %d results", len(seen), len(results))
		return seen[len(seen)-1]
	}
	same := func(got, want sender.Health) {
		w.Helper()
		w.sameTime(got.FailingSince, want.FailingSince, "FailingSince")
		w.sameTime(got.LastFailure, want.LastFailure, "LastFailure")
		w.sameTime(got.LastSuccess, want.LastSuccess, "LastSuccess")
		w.equal([]any{got.Lane, got.Streak}, []any{want.Lane, want.Streak}, "lane and streak")
	}
	since := w.now()
	same(batch(sender.ClassStatus, sender.ClassStatus, sender.ClassStatus), sender.Health{Lane: sender.LaneProbation, Streak: 2, FailingSince: since, LastFailure: since})
	w.Advance(time.Second)
	last := w.now()
	same(batch(sender.ClassStatus, sender.ClassStatus), sender.Health{Lane: sender.LaneProbation, Streak: 4, FailingSince: since, LastFailure: last})
	w.Advance(time.Hour)
	same(batch(sender.ClassNone, sender.ClassStatus), sender.Health{Lane: sender.LaneProven, LastSuccess: w.now().Truncate(time.Minute)})
	seen = nil
	w.record(result(b[0], sender.ClassStatus))
	same(seen[0], sender.Health{Lane: sender.LaneProven, LastSuccess: w.now().Truncate(time.Minute)})
}

// lost ends the test unless a result is reported as lost and changes nothing.
func (w *world) lost(r dispatch.Result, event, sub, why string) {
	w.Helper()
	before := w.delivery(event, sub)
	w.check(w.tryRecord(r)[0].Lost, "%s: the result under token %d does not read as lost", why, r.Token)
	w.equal(w.delivery(event, sub), before, "delivery after a result that was lost (%s)", why)
}

func recordToken(w *world) {
	d, sub := w.one()
	c := w.claimOne()
	for _, token := range []int64{0, 2, -1, 1 << 40} {
		r := result(c, sender.ClassNone)
		r.Token = token
		w.lost(r, d.ID, sub, "another token")
	}
	unknown := result(c, sender.ClassNone)
	unknown.Key.Event += 1000
	w.lost(unknown, d.ID, sub, "no such delivery")
	w.claimNothing("after results that were lost")
	w.record(result(c, sender.ClassNone))
}

func recordNotLeased(w *world) {
	d, sub := w.one()
	c := w.claimOne()
	w.record(result(c, sender.ClassTimeout))
	w.lost(result(c, sender.ClassNone), d.ID, sub, "recorded before, as a failure")
	w.Advance(retryDelay(1))
	w.lost(result(c, sender.ClassNone), d.ID, sub, "due again")

	second := result(w.claimOne(), sender.ClassNone)
	both := w.tryRecord(second, second)
	w.equal([]bool{both[0].Lost, both[1].Lost}, []bool{false, true}, "which of two results for one attempt in a batch is lost")
	w.equal(w.delivery(d.ID, sub).AttemptCount, 2, "number of attempts")
	w.lost(result(c, sender.ClassTimeout), d.ID, sub, "delivered")
	w.lost(second, d.ID, sub, "delivered, and recorded before")
}

func recordLate(w *world) {
	for _, class := range []sender.Class{sender.ClassNone, sender.ClassTimeout} {
		d, sub := w.one()
		first := w.claimOne()
		w.Advance(lease + time.Second)
		second := w.claimOne()
		w.lost(result(first, class), d.ID, sub, "claimed again")
		w.claimNothing("after a late result")
		w.record(result(second, sender.ClassNone))
		w.lost(result(first, class), d.ID, sub, "claimed again and delivered")
		read := w.delivery(d.ID, sub)
		w.equal([]any{read.Status, read.AttemptCount}, []any{sender.StatusDelivered, 2}, "status and attempts")
	}
}

func recordOverdue(w *world) {
	d, sub := w.one()
	r := result(w.claimOne(), sender.ClassNone)
	w.Advance(lease + time.Second)
	w.record(r)
	w.claimNothing("after success")
	read := w.delivery(d.ID, sub)
	w.equal(read.Status, sender.StatusDelivered, "status")
	w.sameAttempts(read, attempt(r, time.Time{}))
}

func recordMixed(w *world) {
	w.crowd(3, 4)
	claimed := w.claim(plenty)
	var results []dispatch.Result
	for i, c := range claimed {
		r := result(c, []sender.Class{sender.ClassNone, sender.ClassTimeout}[i%2])
		if i%3 == 0 {
			r.Token++
		}
		results = append(results, r)
	}
	for i, r := range w.tryRecord(results...) {
		w.equal(r.Lost, i%3 == 0, "whether result %d is lost", i)
	}
	for status, want := range map[sender.Status]int{sender.StatusDelivered: 4, sender.StatusAwaitingRetry: 4, sender.StatusPending: 4} {
		w.equal(len(w.list(history.DeliveryQuery{Status: status})), want, "deliveries that are %s", status)
	}
}

func releaseRule(w *world) {
	d, sub := w.one()
	c := w.claimOne()
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.AttemptCount}, []any{sender.StatusPending, false, 0}, "status, in flight and attempts of a released delivery")
	w.lost(result(c, sender.ClassNone), d.ID, sub, "released")

	again := w.claimOne()
	w.equal(again.Number, 1, "number of the attempt after a release")
	later := again.At.Add(time.Hour)
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: again.Key, Token: again.Token, Due: later}}), "releasing")
	w.sameTime(w.delivery(d.ID, sub).NextAttemptAt, later, "NextAttemptAt of a delivery released until later")
	w.Advance(time.Hour - time.Second)
	w.claimNothing("a second before the time given to the release")
	w.Advance(2 * time.Second)

	var live dispatch.Live
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		live = l
		return decide(l, h, r, now)
	}
	c = w.claimOne()
	w.record(result(c, sender.ClassTimeout))
	w.equal([]int{live.Number, live.Tries}, []int{1, 1}, "number and tries at the first attempt that was made")
	w.sameTime(live.First, c.At, "First at the first attempt that was made")

	w.Advance(retryDelay(1))
	c2 := w.claimOne()
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c2.Key, Token: c2.Token}}), "releasing")
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusAwaitingRetry, "status of a released retry")
	c2 = w.claimOne()
	w.record(result(c2, sender.ClassTimeout))
	w.equal([]int{c2.Number, live.Number, live.Tries}, []int{2, 2, 2}, "number, and number and tries at the decision, of a retry after a release")
	w.sameTime(live.First, c.At, "First at a retry after a release")
	w.equal(live.Stood, time.Duration(0), "Stood at a retry that was released at once")

	w.Advance(retryDelay(2))
	c3 := w.claimOne()
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c3.Key, Token: c3.Token, Due: c3.At.Add(time.Hour)}}), "releasing")
	w.Advance(2 * time.Hour)
	w.record(result(w.claimOne(), sender.ClassTimeout))
	w.equal([]any{live.Number, live.Tries, live.Stood}, []any{3, 3, time.Hour}, "number, tries and Stood of a retry that was put off")
	w.sameTime(live.First, c.At, "First at a retry that was put off")
}

func releaseTwice(w *world) {
	d, sub := w.one()
	first := w.claimOne()
	back := []dispatch.Release{{Key: first.Key, Token: first.Token}}
	w.noError(w.Store.Release(w.ctx, back), "releasing")
	second := w.claimOne()
	w.equal([]int{first.Number, second.Number}, []int{1, 1}, "numbers of an attempt that was released and claimed again")
	w.lost(result(first, sender.ClassNone), d.ID, sub, "released, and claimed under the same number")
	before := w.delivery(d.ID, sub)
	w.noError(w.Store.Release(w.ctx, back), "releasing again")
	w.equal(w.delivery(d.ID, sub), before, "delivery after a release was repeated")
	w.claimNothing("after a release was repeated")
	w.record(result(second, sender.ClassNone))
}

func releaseToken(w *world) {
	d, sub := w.one()
	first := w.claimOne()
	stale := dispatch.Release{Key: first.Key, Token: first.Token}
	unknown := stale
	unknown.Key.Subscription += 1000
	w.Advance(lease + time.Second)
	second := w.claimOne()
	before := w.delivery(d.ID, sub)
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{stale, unknown}), "releasing under tokens that are not the present ones")
	w.equal(w.delivery(d.ID, sub), before, "delivery after a release under a stale token")
	w.claimNothing("after a release under a stale token")
	w.record(result(second, sender.ClassNone))
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: second.Key, Token: second.Token}}), "releasing what is delivered")
	w.equal(w.delivery(d.ID, sub).Status, sender.StatusDelivered, "status after a release of what is delivered")
	w.claimNothing("after a release of what is delivered")
}
