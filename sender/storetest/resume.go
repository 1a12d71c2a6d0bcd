package storetest

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func resumeRules() []rule {
	return []rule{
		{"resume, all", "A resume that takes all makes every held delivery due at once; schedules start anew, while attempt numbers go on.", resumeAll},
		{"resume, none", "From the commit of a resume that takes none on, what was held reads as cancelled and is not claimed; what had ended stays; later events are delivered.", resumeNone},
		{"resume, since", "A resume since a time takes what was published at that time or later, and cancels the rest.", resumeSince},
		{"resume, not expanded yet", "An event that is committed at a resume, and not expanded yet, counts among the held ones.", resumeWaiting},
		{"resume, again and again", "Each resume decides about what is held then; what an earlier one has cancelled stays cancelled.", resumeTwice},
		{"resume, health", "The resume of a disabled subscription ends its failing time; that of a paused one does not.", resumeHealth},
		{"resume, active", "Resuming an active subscription changes nothing.", resumeActive},
		{"resume, refused", "A closing subscription cannot be resumed; an unknown or deleted one is ErrNotFound.", resumeRefused},
		{"resume, rolled back", "A resume that rolled back changes nothing.", resumeRolledBack},
	}
}

var (
	takeAll  = sender.Resume{}
	takeNone = sender.Resume{None: true}
)

func resumeAll(w *world) {
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
					w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
				}
			}
			w.Advance(retryDelay(1) + time.Second)
		}
		hold(sub)
		w.Advance(time.Second)
		at := w.now()
		w.resume(sub, takeAll)
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusPending: 2, sender.StatusAwaitingRetry: 1}, "statuses after the resume, %s", name)
		for _, d := range w.list(history.DeliveryQuery{Subscription: sub}) {
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

func resumeNone(w *world) {
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
			for _, d := range w.list(history.DeliveryQuery{Subscription: sub}) {
				w.check(d.NextAttemptAt.IsZero() && !d.InFlight, "a cancelled delivery has a next attempt, or one in flight %s, %s", when, name)
				if d.Status == sender.StatusCancelled {
					w.errorIs(w.Store.Redeliver(w.ctx, d.ID, time.Time{}), sender.ErrCancelled, "redelivering what was cancelled by a resume, %s, %s", when, name)
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

func resumeSince(w *world) {
	w.resumedSince(func(at []time.Time) time.Time { return at[2] })
	w.resumedSince(func(at []time.Time) time.Time { return at[1].Add(1) }) // finer than a store may keep
	w.resumedSince(func(at []time.Time) time.Time { return at[2].In(otherZone) })
}

// resumedSince resumes a subscription since the third of four events, or just after the second.
func (w *world) resumedSince(since func(at []time.Time) time.Time) {
	w.Helper()
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
			w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
		}
	}
	w.pause(sub)
	w.resume(sub, sender.Resume{Since: since(at)})
	for _, when := range []string{"after the resume", "after a sweep"} {
		for i, want := range []sender.Status{sender.StatusCancelled, sender.StatusCancelled, sender.StatusAwaitingRetry, sender.StatusPending} {
			w.equal(w.delivery(drafts[i].ID, sub).Status, want, "status of event %d, resumed since event 2 was published, %s", i, when)
		}
		w.endsSwept()
		w.equal(w.read(sub).Backlog, int64(2), "Backlog after a sweep")
	}
	for _, c := range w.claimsOf(map[string]int{sub: 2}, "after the resume") {
		w.check(c.Event.ID == drafts[2].ID || c.Event.ID == drafts[3].ID, "an event was claimed that was published before Since")
		w.record(result(c, sender.ClassNone))
	}
	w.unsubscribe(sub)
}

func resumeWaiting(w *world) {
	for name, c := range map[string]struct {
		resume func(second time.Time) sender.Resume
		taken  int // of three events, from the last on
	}{
		"all":   {func(time.Time) sender.Resume { return takeAll }, 3},
		"none":  {func(time.Time) sender.Resume { return takeNone }, 0},
		"since": {func(second time.Time) sender.Resume { return sender.Resume{Since: second} }, 2},
		"later": {func(second time.Time) sender.Resume { return sender.Resume{Since: second.Add(1 - time.Second)} }, 2}, // just after the first
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

func resumeTwice(w *world) {
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
	// All later resumes count for an event that is not expanded yet.
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
func (w *world) expandOnly(events int) {
	w.Helper()
	for events > 0 {
		x, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: events, Deliveries: plenty}, dispatch.Batch{})
		w.noError(err, "expanding")
		w.check(x.Events > 0, "%d events are left to expand, and none was", events)
		events -= x.Events
	}
}

func resumeHealth(w *world) {
	for name, hold := range w.holds() {
		_, sub := w.one()
		w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
			dec := decide(l, h, r, now)
			dec.Health.Warned, dec.Health.WarnedAt = 50, now
			return dec
		}
		w.record(result(w.claimOne(), sender.ClassTimeout))
		w.decide = decide
		want := w.read(sub).Health
		w.check(want.Streak == 1 && want.Warned == 50 && !want.FailingSince.IsZero() && want.WarnedAt.Equal(want.FailingSince), "Health after a failure is %+v", want)
		hold(sub)
		w.equal(w.read(sub).Health, want, "Health while it is %s", name)
		w.resume(sub, takeNone)
		if name != "paused" {
			want.Streak, want.FailingSince, want.Warned, want.WarnedAt = 0, time.Time{}, 0, time.Time{}
		}
		w.equal(w.read(sub).Health, want, "Health after it was %s and resumed", name)
	}
}

func resumeActive(w *world) {
	_, subs := w.crowd(1, 2)
	w.record(result(w.claim(1)[0], sender.ClassTimeout))
	before, deliveries := w.read(subs[0]), w.list(history.DeliveryQuery{})
	for _, r := range []sender.Resume{takeAll, takeNone, {Since: w.now().Add(time.Hour)}, {NotBefore: w.now().Add(time.Hour)}} {
		w.resume(subs[0], r)
		w.endsSwept()
		w.equal(w.read(subs[0]), before, "active subscription that was resumed")
		w.equal(w.list(history.DeliveryQuery{}), deliveries, "deliveries of an active subscription that was resumed")
	}
}

func resumeRefused(w *world) {
	d, closing := w.one()
	w.close(closing)
	_, deleted := w.one()
	w.unsubscribe(deleted)
	w.errorIs(w.tryResume(closing, takeNone), sender.ErrStatus, "resuming a closing subscription")
	w.errorIs(w.tryResume(deleted, takeNone), sender.ErrNotFound, "resuming a deleted subscription")
	w.errorIs(w.tryResume("wsub_unknown", takeNone), sender.ErrNotFound, "resuming an unknown subscription")
	w.equal(w.claimOne().Event.ID, d.ID, "event of what is claimed")
}

func resumeRolledBack(w *world) {
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
		before, deliveries := w.read(sub), w.list(history.DeliveryQuery{Subscription: sub})
		for _, r := range []sender.Resume{takeAll, takeNone, {Since: w.now().Add(time.Hour)}} {
			what := fmt.Sprintf("resume with %+v that rolled back, %s", r, name)
			w.undone(func(tx any) error { return w.Store.ResumeSubscriptionTx(w.ctx, tx, sub, r) })
			w.equal(w.sweep(100), 0, "deliveries ended by a sweep after a %s", what)
			w.equal(w.read(sub), before, "subscription after a %s", what)
			w.equal(w.list(history.DeliveryQuery{Subscription: sub}), deliveries, "deliveries after a %s", what)
			w.claimNothing("after a %s", what)
		}
		w.expand()
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 3}, "statuses in the end, %s", name)
		w.Advance(time.Hour)
	}
}
