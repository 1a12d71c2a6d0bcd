package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

func resumeRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"resume, all", "A resume that takes all makes every held delivery due at once; schedules start anew, while attempt numbers go on.", resumeAll[Tx]},
		{"resume, none", "From the commit of a resume that takes none on, what was held reads as cancelled and is not claimed; what had ended stays; later events are delivered.", resumeNone[Tx]},
		{"resume, since", "A resume since a time takes what was published at that time or later, and cancels the rest.", resumeSince[Tx]},
		{"resume, not expanded yet", "What is committed at a resume, and not expanded yet, counts among the held ones.", resumeWaiting[Tx]},
		{"resume, again and again", "Each resume decides about what is held then; what an earlier one has cancelled stays cancelled.", resumeTwice[Tx]},
		{"resume, in flight and taken", "An attempt that is in flight at a resume that takes its delivery becomes the first of the new schedule.", resumeFlightTaken[Tx]},
		{"resume, in flight and succeeds", "An attempt that is in flight at a resume without its delivery, and succeeds, makes it delivered.", resumeFlightSucceeds[Tx]},
		{"resume, in flight and fails", "An attempt that is in flight at a resume without its delivery, and fails, is stored and leaves it cancelled, whatever Decide says.", resumeFlightFails[Tx]},
		{"resume, in flight and lost", "An attempt that is in flight at a resume without its delivery, and is lost, is stored as interrupted and leaves it cancelled.", resumeFlightLost[Tx]},
		{"resume, single and in flight", "The single attempt of a delivered one that is in flight at a resume without it leaves it delivered, however it ends.", resumeFlightSingle[Tx]},
		{"resume, health", "The resume of a disabled subscription ends its failing time; that of a paused one does not.", resumeHealth[Tx]},
		{"resume, active", "Resuming an active subscription changes nothing.", resumeActive[Tx]},
		{"resume, refused", "A closing subscription cannot be resumed; an unknown or deleted one is ErrNotFound.", resumeRefused[Tx]},
		{"resume, retention", "A resume that would send what was published before NotBefore is refused with a *RetentionError, and nothing is changed.", resumeRetention[Tx]},
		{"resume, retention of what is not expanded yet", "What is committed, and not expanded yet, is not sent either if it was published before NotBefore; what the subscription does not get anyway does not count.", resumeRetentionWaiting[Tx]},
		{"resume, rolled back", "A resume that rolled back changes nothing.", resumeRolledBack[Tx]},
	}
}

var (
	takeAll  = sender.Resume{}
	takeNone = sender.Resume{None: true}
)

func resumeAll[Tx any](w *world[Tx]) {
	for name, hold := range w.holds() {
		owner := w.subscriber()
		sub := w.subscribe(owner, "only.addressed")
		w.backlog(owner, sub, 3)
		live := w.watch()
		var failed string // the event of the delivery that has attempts
		for range 2 {
			for _, c := range w.claim(plenty) {
				if failed == "" || failed == c.Event.ID {
					failed = c.Event.ID
					w.record(result(c, sender.ClassTimeout))
				} else {
					w.noError(w.Store.Release(w.ctx, []sender.Release{{Key: c.Key, Token: c.Token}}), "releasing")
				}
			}
			w.Advance(retryDelay(1) + time.Second)
		}
		hold(sub)
		w.Advance(time.Second)
		at := w.now()
		w.resume(sub, takeAll)
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusPending: 2, sender.StatusAwaitingRetry: 1}, "statuses after the resume, %s", name)
		for _, d := range w.list(sender.DeliveryQuery{Subscription: sub}) {
			w.check(!d.NextAttemptAt.IsZero() && !d.NextAttemptAt.After(at.Add(time.Microsecond)), "%s: NextAttemptAt of %s is %v, it was resumed at %v", name, d.ID, d.NextAttemptAt, at)
		}
		w.equal([]any{w.read(sub).Status, w.read(sub).Backlog}, []any{sender.SubscriptionActive, int64(3)}, "status and Backlog, %s", name)
		for _, c := range w.claimsOf(map[string]int{sub: 3}, "after the resume") {
			w.record(result(c, sender.ClassTimeout))
			number := 1
			if c.Event.ID == failed {
				number = 3
			}
			w.equal([]int{c.Number, live.Number, live.Tries}, []int{number, number, 1}, "number, and number and tries at the decision, %s", name)
			w.sameTime(live.First, c.At, "First, %s", name)
		}
		w.Advance(retryDelay(1) - time.Second)
		w.claimNothing("before the first retry of the new schedule, %s", name)
		w.Advance(time.Second + time.Millisecond)
		for tries := 2; tries <= maxTries; tries++ {
			w.record(resultsOf(w.claimsOf(map[string]int{sub: 3}, "retry"), sender.ClassTimeout)...)
			w.Advance(retryDelay(maxTries))
		}
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDeadLettered: 3}, "statuses at the end of the schedule, %s", name)
	}
}

func resumeNone[Tx any](w *world[Tx]) {
	for name, hold := range w.holds() {
		owner := w.subscriber()
		sub, sibling := w.subscribe(owner, "only.addressed"), w.subscribe(owner, "only.addressed")
		w.backlog(owner, sub, 3)
		w.record(result(w.claim(1)[0], sender.ClassNone))
		w.record(result(w.claim(1)[0], sender.ClassTimeout))
		w.backlog(owner, sibling, 2)
		hold(sub)
		w.resume(sub, takeNone)
		want := map[sender.Status]int{sender.StatusCancelled: 2, sender.StatusDelivered: 1}
		for _, when := range []string{"after the resume", "after a sweep"} {
			w.equal(w.statuses(sub), want, "statuses %s, %s", when, name)
			w.check(when == "after the resume" || w.read(sub).Backlog == 0, "Backlog %s, %s: %d, want 0", when, name, w.read(sub).Backlog)
			for _, d := range w.list(sender.DeliveryQuery{Subscription: sub}) {
				w.check(d.NextAttemptAt.IsZero() && !d.InFlight, "a cancelled delivery has a next attempt, or one in flight %s, %s", when, name)
				if d.Status == sender.StatusCancelled {
					w.errorIs(w.Store.Redeliver(w.ctx, d.ID), sender.ErrCancelled, "redelivering what was cancelled by a resume, %s, %s", when, name)
				}
			}
			w.endsSwept()
		}
		w.equal(w.statuses(sibling), map[sender.Status]int{sender.StatusPending: 2}, "statuses of another subscription, %s", name)
		w.Advance(time.Hour)
		w.record(resultsOf(w.claimsOf(map[string]int{sibling: 2}, name), sender.ClassNone)...)
		later := w.addressed(owner, sub)
		w.publish(later)
		w.expand()
		w.equal(w.delivery(later.ID, sub).Status, sender.StatusPending, "status of what came after the resume, %s", name)
		w.record(result(w.claimOne(), sender.ClassNone))
	}
}

func resumeSince[Tx any](w *world[Tx]) {
	sub := w.subscribe(w.subscriber(), "*")
	var drafts []sender.Draft
	var at []time.Time
	for range 4 {
		drafts = append(drafts, w.draft("a.b"))
		at = append(at, w.now())
		w.publish(drafts[len(drafts)-1])
		w.Advance(time.Second)
	}
	w.expand()
	for _, c := range w.claim(plenty) { // one awaits its retry on either side
		if c.Event.ID == drafts[1].ID || c.Event.ID == drafts[2].ID {
			w.record(result(c, sender.ClassTimeout))
		} else {
			w.noError(w.Store.Release(w.ctx, []sender.Release{{Key: c.Key, Token: c.Token}}), "releasing")
		}
	}
	w.pause(sub)
	w.resume(sub, sender.Resume{Since: at[2]})
	for _, when := range []string{"after the resume", "after a sweep"} {
		for i, want := range []sender.Status{sender.StatusCancelled, sender.StatusCancelled, sender.StatusAwaitingRetry, sender.StatusPending} {
			w.equal(w.delivery(drafts[i].ID, sub).Status, want, "status of event %d, resumed since event 2 was published, %s", i, when)
		}
		w.endsSwept()
		w.equal(w.read(sub).Backlog, int64(2), "Backlog after a sweep")
	}
	for _, c := range w.claimsOf(map[string]int{sub: 2}, "after the resume") {
		w.check(c.Event.ID == drafts[2].ID || c.Event.ID == drafts[3].ID, "an event was claimed that was published before Since")
	}
}

func resumeWaiting[Tx any](w *world[Tx]) {
	for name, c := range map[string]struct {
		resume func(second time.Time) sender.Resume
		taken  int // of three events, from the last on
	}{
		"all":   {func(time.Time) sender.Resume { return takeAll }, 3},
		"none":  {func(time.Time) sender.Resume { return takeNone }, 0},
		"since": {func(second time.Time) sender.Resume { return sender.Resume{Since: second} }, 2},
	} {
		owner := w.subscriber()
		sub, sibling := w.subscribe(owner, "x."+name), w.subscribe(owner, "x."+name)
		var drafts []sender.Draft
		var second time.Time
		for i := range 3 {
			if i == 1 {
				second = w.now()
				w.pause(sub) // one was published before
			}
			drafts = append(drafts, w.draft("x."+name))
			w.publish(drafts[i])
			w.Advance(time.Second)
		}
		w.resume(sub, c.resume(second))
		after := w.draft("x." + name)
		w.publish(after)
		w.expand()
		w.equal(w.events(sub), sorted(append(drafts, after)...), "events, resumed with %s", name)
		for i, d := range append(drafts, after) {
			want := sender.StatusPending
			if i < 3-c.taken {
				want = sender.StatusCancelled
			}
			w.equal(w.delivery(d.ID, sub).Status, want, "status of event %d of 3, resumed with %s before they were expanded", i, name)
		}
		w.endsSwept()
		w.equal(w.read(sub).Backlog, int64(c.taken+1), "Backlog, resumed with %s", name)
		w.record(resultsOf(w.claimsOf(map[string]int{sub: c.taken + 1, sibling: 4}, "resumed with "+name), sender.ClassNone)...)
	}
}

func resumeTwice[Tx any](w *world[Tx]) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	round := func(r sender.Resume) (expanded, waiting sender.Draft) {
		expanded, waiting = w.draft("a.b"), w.draft("a.b")
		w.publish(expanded)
		w.expandOnly(1)
		w.publish(waiting)
		w.pause(sub)
		w.resume(sub, r)
		return expanded, waiting
	}
	cancelled1, cancelled2 := round(takeNone)
	// What is not expanded yet goes through all the resumes that follow.
	w.pause(sub)
	w.resume(sub, takeAll)
	w.expand()
	w.pause(sub)
	w.resume(sub, takeAll)
	for _, d := range []sender.Draft{cancelled1, cancelled2} {
		w.equal(w.delivery(d.ID, sub).Status, sender.StatusCancelled, "status of what a resume has cancelled, after one that takes all")
	}
	w.claimNothing("of what a resume has cancelled, after one that takes all")

	taken1, taken2 := round(takeAll)
	w.pause(sub)
	w.resume(sub, takeNone)
	w.expand()
	for _, d := range []sender.Draft{taken1, taken2} {
		w.equal(w.delivery(d.ID, sub).Status, sender.StatusCancelled, "status of what a resume has taken, after one that takes none")
	}
	w.Advance(time.Second)
	since := w.now()
	kept1, kept2 := round(takeAll)
	w.pause(sub)
	w.expand()
	w.resume(sub, sender.Resume{Since: since})
	w.endsSwept()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 4, sender.StatusPending: 2}, "statuses in the end")
	w.equal(w.read(sub).Backlog, int64(2), "Backlog in the end")
	got := w.claim(plenty)
	w.equal(len(got), 2, "deliveries claimed in the end")
	for _, c := range got {
		w.check(c.Event.ID == kept1.ID || c.Event.ID == kept2.ID, "event %s was claimed, which was cancelled", c.Event.ID)
	}
}

// expandOnly expands a number of events.
func (w *world[Tx]) expandOnly(events int) {
	w.Helper()
	for events > 0 {
		x, err := w.Store.Expand(w.ctx, sender.ExpandParams{Events: events, Deliveries: plenty})
		w.noError(err, "expanding")
		w.check(x.Events > 0, "%d events are left to expand, and none was", events)
		events -= x.Events
	}
}

func resumeFlightTaken[Tx any](w *world[Tx]) {
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
	claims := w.claimBy(sender.ClaimParams{Lease: lease, Lanes: lanes(10)})
	w.equal([]int{len(claims.Claimed), len(claims.Interrupted)}, []int{1, 1}, "deliveries claimed, and attempts interrupted, after the attempt in flight was lost")
	w.equal([]int{live.Number, live.Tries}, []int{3, 1}, "number and tries at the decision about the lost one")
	w.record(result(claims.Claimed[0], sender.ClassNone))
	w.equal([]any{w.delivery(d.ID, sub).Status, w.delivery(d.ID, sub).AttemptCount}, []any{sender.StatusDelivered, 4}, "status and attempts")
}

// leftInFlight makes a delivery whose subscription was resumed without it while an
// attempt was in flight.
func (w *world[Tx]) leftInFlight() (d sender.Draft, sub string, c sender.Claimed) {
	w.Helper()
	d, sub = w.one()
	c = w.claimOne()
	w.pause(sub)
	w.resume(sub, takeNone)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses after the resume")
	w.errorIs(w.Store.Redeliver(w.ctx, w.delivery(d.ID, sub).ID), sender.ErrCancelled, "redelivering what was cancelled while it was in flight")
	w.equal(w.sweep(100), 0, "deliveries ended by a sweep while an attempt is in flight")
	return d, sub, c
}

func resumeFlightSucceeds[Tx any](w *world[Tx]) {
	d, sub, c := w.leftInFlight()
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

func resumeFlightFails[Tx any](w *world[Tx]) {
	for _, status := range []sender.Status{sender.StatusAwaitingRetry, sender.StatusDeadLettered} {
		d, sub, c := w.leftInFlight()
		w.decide = func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			dec := sender.Decision{Status: status, Health: h, Notices: []sender.Notice{{Kind: sender.NoticeDeadLettered}}}
			if status == sender.StatusAwaitingRetry {
				dec.Due, dec.Notices = now, nil
			}
			return dec
		}
		r := result(c, sender.ClassTimeout)
		claims, err := w.Store.RecordAndClaim(w.ctx, sender.Batch{Results: []sender.Result{r}, Decide: w.decide, Claim: sender.ClaimParams{Lease: lease, Lanes: lanes(10)}})
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

func resumeFlightLost[Tx any](w *world[Tx]) {
	d, sub, c := w.leftInFlight()
	w.Advance(lease + time.Second)
	w.claimNothing("of what was left behind by a resume, and was lost")
	w.endsSwept()
	w.claimBy(sender.ClaimParams{Lease: lease, Lanes: lanes(10)})
	read := w.delivery(d.ID, sub)
	w.equal([]any{read.Status, read.InFlight, read.AttemptCount, read.LastErrorClass}, []any{sender.StatusCancelled, false, 1, sender.ClassInterrupted}, "status, in flight, attempts and last class")
	w.lost(result(c, sender.ClassNone), d.ID, sub, "ended by a sweep")
	w.check(w.claimBy(sender.ClaimParams{Lease: lease, Lanes: lanes(10)}).NextDue.IsZero(), "NextDue is set although nothing is live")
}

func resumeFlightSingle[Tx any](w *world[Tx]) {
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
			w.claimNothing("of a single attempt that was left behind, and was lost")
		} else {
			w.record(result(c, class))
		}
		w.endsSwept()
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses after the single attempt ended with %q", class)
		w.equal([]any{w.get(id).AttemptCount, w.get(id).LastErrorClass}, []any{2, class}, "attempts and last class")
		w.Advance(time.Hour)
		w.claimNothing("after a single attempt that was left behind")
	}
}

func resumeHealth[Tx any](w *world[Tx]) {
	for name, hold := range w.holds() {
		_, sub := w.one()
		w.decide = func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			dec := decide(l, h, r, now)
			dec.Health.Warned = 50
			return dec
		}
		w.record(result(w.claimOne(), sender.ClassTimeout))
		w.decide = decide
		want := w.read(sub).Health
		w.check(want.Streak == 1 && want.Warned == 50 && !want.FailingSince.IsZero(), "Health after a failure is %+v", want)
		hold(sub)
		w.equal(w.read(sub).Health, want, "Health while it is %s", name)
		w.resume(sub, takeNone)
		if name != "paused" {
			want.Streak, want.FailingSince, want.Warned = 0, time.Time{}, 0
		}
		w.equal(w.read(sub).Health, want, "Health after it was %s and resumed", name)
	}
}

func resumeActive[Tx any](w *world[Tx]) {
	_, subs := w.crowd(1, 2)
	w.record(result(w.claim(1)[0], sender.ClassTimeout))
	before, deliveries := w.read(subs[0]), w.list(sender.DeliveryQuery{})
	for _, r := range []sender.Resume{takeAll, takeNone, {Since: w.now().Add(time.Hour)}, {NotBefore: w.now().Add(time.Hour)}} {
		w.resume(subs[0], r)
		w.endsSwept()
		w.equal(w.read(subs[0]), before, "active subscription that was resumed")
		w.equal(w.list(sender.DeliveryQuery{}), deliveries, "deliveries of an active subscription that was resumed")
	}
}

func resumeRefused[Tx any](w *world[Tx]) {
	d, closing := w.one()
	w.close(closing)
	_, deleted := w.one()
	w.unsubscribe(deleted)
	w.errorIs(w.tryResume(closing, takeNone), sender.ErrStatus, "resuming a closing subscription")
	w.errorIs(w.tryResume(deleted, takeNone), sender.ErrNotFound, "resuming a deleted subscription")
	w.errorIs(w.tryResume("wsub_unknown", takeNone), sender.ErrNotFound, "resuming an unknown subscription")
	w.equal(w.claimOne().Event.ID, d.ID, "event of what is claimed")
}

// refusedForRetention ends the test unless a resume is refused, and changes nothing
// even if the caller commits.
func (w *world[Tx]) refusedForRetention(sub string, r sender.Resume, oldest time.Time, what string) {
	w.Helper()
	before, deliveries := w.read(sub), w.list(sender.DeliveryQuery{Subscription: sub})
	w.inTx(func(tx Tx) error {
		err := w.Store.ResumeSubscriptionTx(w.ctx, tx, sub, r)
		w.errorIs(err, sender.ErrRetention, "%s", what)
		var refused *sender.RetentionError
		w.check(errors.As(err, &refused), "%s: the error is no *RetentionError: %v", what, err)
		w.sameTime(refused.Published, oldest, "Published, %s", what)
		w.sameTime(refused.NotBefore, r.NotBefore, "NotBefore, %s", what)
		return nil
	})
	w.equal(w.read(sub), before, "subscription after a refusal, %s", what)
	w.equal(w.list(sender.DeliveryQuery{Subscription: sub}), deliveries, "deliveries after a refusal, %s", what)
	w.claimNothing("after a refusal, %s", what)
}

func resumeRetention[Tx any](w *world[Tx]) {
	sub := w.subscribe(w.subscriber(), "*")
	var at []time.Time
	for range 4 {
		at = append(at, w.now())
		w.publish(w.draft("a.b"))
		w.expand()
		w.Advance(time.Second)
		if len(at) == 1 { // what has ended is not sent
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

func resumeRetentionWaiting[Tx any](w *world[Tx]) {
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
}

func resumeRolledBack[Tx any](w *world[Tx]) {
	for name, hold := range w.holds() {
		owner := w.subscriber()
		sub := w.subscribe(owner, "x")
		w.publish(w.draft("x"))
		w.expand()
		w.record(result(w.claimOne(), sender.ClassTimeout))
		w.publish(w.draft("x"))
		w.expand()
		w.publish(w.draft("x")) // is not expanded yet
		hold(sub)
		before, deliveries := w.read(sub), w.list(sender.DeliveryQuery{Subscription: sub})
		for _, r := range []sender.Resume{takeAll, takeNone, {Since: w.now().Add(time.Hour)}} {
			what := fmt.Sprintf("resume with %+v that rolled back, %s", r, name)
			w.undone(func(tx Tx) error { return w.Store.ResumeSubscriptionTx(w.ctx, tx, sub, r) })
			w.equal(w.sweep(100), 0, "deliveries ended by a sweep after a %s", what)
			w.equal(w.read(sub), before, "subscription after a %s", what)
			w.equal(w.list(sender.DeliveryQuery{Subscription: sub}), deliveries, "deliveries after a %s", what)
			w.claimNothing("after a %s", what)
		}
		w.expand()
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 3}, "statuses in the end, %s", name)
		w.Advance(time.Hour)
	}
}
