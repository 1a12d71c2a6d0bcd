package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

func lineLatest(w *world) {
	owner, sub := w.ordered(latest)
	e := w.versions(owner, sub, "a", "a", "b", "a")
	e = append(e, w.versions(owner, sub, "b")...) // 4: b
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusPending: 2, sender.StatusSuperseded: 3}, "statuses of five events about two objects")
	w.equal(w.read(sub).Backlog, int64(2), "Backlog")
	w.equal(len(w.list(history.DeliveryQuery{Status: sender.StatusSuperseded})), 3, "superseded deliveries")
	flying := w.claims("at first", e[3], e[4])
	e = append(e, w.versions(owner, sub, "a", "a")...)
	w.claimNothing("while an earlier version is in flight")
	w.status(e[5], sub, sender.StatusSuperseded, "behind one in flight")
	for _, c := range flying {
		w.record(result(c, sender.ClassNone))
	}
	w.record(result(w.claims("the newest", e[6])[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 3, sender.StatusSuperseded: 4}, "statuses at the end")
	w.equal(w.read(sub).Backlog, int64(0), "Backlog at the end")
}

func lineLatestFailed(w *world) {
	owner, sub := w.ordered(latest)
	e := w.versions(owner, sub, "a")
	failed := w.claims("at first", e[0])[0]
	e = append(e, w.versions(owner, sub, "a")...)
	out := w.record(result(failed, sender.ClassStatus))
	w.equal(out[0].Decision.Status, sender.StatusSuperseded, "status of the decision")
	d := w.delivery(e[0], sub)
	w.equal([]any{d.Status, d.AttemptCount, d.LastErrorClass}, []any{sender.StatusSuperseded, 1, sender.ClassStatus}, "one that failed with a newer one behind it")
	w.claims("the newer one", e[1])

	e = append(e, w.versions(owner, sub, "a")...)
	w.Advance(lease + time.Second)
	claimed := w.claims("once the lease has ended", e[2])
	d = w.delivery(e[1], sub)
	w.equal([]any{d.Status, d.AttemptCount, d.LastErrorClass}, []any{sender.StatusSuperseded, 1, sender.ClassInterrupted}, "one that was lost with a newer one behind it")

	e = append(e, w.versions(owner, sub, "a")...)
	w.giveBack(claimed...)
	w.equal([]any{w.delivery(e[2], sub).Status, w.delivery(e[2], sub).AttemptCount}, []any{sender.StatusSuperseded, 0}, "one that was given back with a newer one behind it")

	// A delivery that waits for its retry is superseded too.
	w.record(result(w.claims("the next", e[3])[0], sender.ClassStatus))
	w.status(e[3], sub, sender.StatusAwaitingRetry, "without a newer one")
	e = append(e, w.versions(owner, sub, "a")...)
	w.status(e[3], sub, sender.StatusSuperseded, "while it waited for its retry")
	w.record(result(w.claims("the last", e[4])[0], sender.ClassNone))
	w.equal(w.read(sub).Backlog, int64(0), "Backlog at the end")
}

// lineLatestLong lets more wait in a line than a store may end in one step. It changes the
// order to the latest, and has the newest overtake the others in each way that there is.
// That is claimed alone, when sweeps have ended the others.
func lineLatestLong(w *world) {
	for _, path := range append(w.longFlying(), w.longWaiting()...) {
		sub, newest := path.begin()
		w.alone(sub, newest, "the newest is "+path.name)
	}
}

// longLine is more than a step may end.
const longLine = rules.SupersedeMost + 100

// longPath is a way in which the newest of a long line comes to overtake the others.
type longPath struct {
	name  string
	begin func() (sub, newest string)
}

// wait lets many versions of an object wait in a line.
func (w *world) wait(set sender.Settings, many int) (owner, sub string, e []string) {
	owner, sub = w.ordered(set)
	return owner, sub, w.versions(owner, sub, slices.Repeat([]string{"a"}, many)...)
}

// longFlying are the ways in which one of the line is on its way meanwhile.
func (w *world) longFlying() []longPath {
	flying := func(end func(c dispatch.Claimed)) (sub, newest string) {
		_, sub, e := w.wait(byObject, longLine)
		first := w.claims("of the order of objects", e[0])[0]
		w.set(sub, latest)
		end(first)
		return sub, e[longLine-1]
	}
	return []longPath{
		{"behind one that succeeds", func() (string, string) {
			return flying(func(c dispatch.Claimed) { w.record(result(c, sender.ClassNone)) })
		}},
		{"behind one that fails", func() (string, string) {
			return flying(func(c dispatch.Claimed) { w.record(result(c, sender.ClassStatus)) })
		}},
		{"behind one that is given back", func() (string, string) { return flying(func(c dispatch.Claimed) { w.giveBack(c) }) }},
		{"behind one that is lost", func() (string, string) { return flying(func(dispatch.Claimed) { w.Advance(lease + time.Second) }) }},
		{"behind a dead letter", func() (string, string) {
			_, sub, e := w.wait(holding, longLine)
			w.die(w.claims("of the order of objects", e[0])[0])
			w.set(sub, latest)
			w.noError(w.Store.PassOver(w.ctx, w.delivery(e[0], sub).ID, time.Time{}), "passing over a dead letter")
			return sub, e[longLine-1]
		}},
	}
}

// deliveredBefore has the newest of a long line delivered before the others, which did not
// have to wait then.
func (w *world) deliveredBefore() (sub, newest string) {
	owner, sub, e := w.wait(byObject, longLine)
	w.set(sub, sender.Settings{})
	newest = w.versions(owner, sub, "a")[0]
	for _, c := range w.claims("of the relaxed order", e[0], newest) {
		if c.Event.ID == newest {
			w.record(result(c, sender.ClassNone))
		} else {
			w.giveBack(c)
		}
	}
	w.set(sub, latest)
	return sub, newest
}

// longWaiting are the ways in which all of the line wait.
func (w *world) longWaiting() []longPath {
	return []longPath{
		{"made", func() (string, string) {
			owner, sub, _ := w.wait(byObject, 2*longLine)
			w.set(sub, latest)
			newest := w.versions(owner, sub, "a")[0]
			ended := 2*longLine + 1 - int(w.read(sub).Backlog)
			w.check(ended <= rules.SupersedeMost+1, "a step has ended %d of a line, which are more than %d and the one that is out", ended, rules.SupersedeMost)
			return sub, newest
		}},
		{"redelivered", func() (string, string) {
			sub, newest := w.deliveredBefore()
			w.redeliver(w.delivery(newest, sub).ID)
			return sub, newest
		}},
		{"replayed", func() (string, string) {
			sub, newest := w.deliveredBefore()
			w.replay(replay.Filter{Status: sender.StatusDelivered, Subscription: sub})
			w.steps(plenty)
			return sub, newest
		}},
		{"resumed", func() (string, string) {
			owner, sub, _ := w.wait(byObject, longLine)
			w.pause(sub)
			w.set(sub, latest)
			newest := w.versions(owner, sub, "a")[0]
			w.resume(sub, takeAll)
			return sub, newest
		}},
		{"resumed with the last half", func() (string, string) {
			owner, sub, _ := w.wait(byObject, longLine)
			w.pause(sub)
			w.Advance(time.Second)
			since := w.now()
			e := w.versions(owner, sub, slices.Repeat([]string{"a"}, longLine)...)
			w.set(sub, latest)
			w.resume(sub, sender.Resume{Since: since})
			return sub, e[longLine-1]
		}},
		{"and the order changed twice", func() (string, string) {
			owner, sub, e := w.wait(byObject, 2*longLine)
			w.set(sub, latest)
			newest := w.versions(owner, sub, "a")[0]
			w.set(sub, byObject)
			w.sweep(sweepMost)
			c := w.claim(plenty)
			w.check(len(c) == 1 && slices.Contains(append(e, newest), c[0].Event.ID), "of the order of objects again, these were claimed: %+v", c)
			w.set(sub, latest)
			w.giveBack(c...)
			return sub, newest
		}},
	}
}

// sweepMost is how many deliveries a sweep may end that is to leave some.
const sweepMost = 700

// alone claims and sweeps by turns, and ends the test unless one event alone is claimed, and
// nothing is left.
func (w *world) alone(sub, event, when string) {
	w.Helper()
	began := false
	for range plenty {
		claimed := w.claim(plenty)
		for _, c := range claimed {
			w.check(!began && c.Event.ID == event, "%s: %s was claimed, the newest is %s, which was claimed before: %v", when, c.Event.ID, event, began)
			began = true
			w.record(result(c, sender.ClassNone))
		}
		n, err := w.Store.Sweep(w.ctx, dispatch.SweepParams{Limit: sweepMost})
		w.noError(err, "sweeping")
		w.check(n.Ended <= sweepMost, "%s: a sweep of up to %d ended %d", when, sweepMost, n.Ended)
		if n.Ended == 0 && len(claimed) == 0 {
			break
		}
	}
	w.check(began, "%s: it was never claimed", when)
	w.equal(w.read(sub).Backlog, int64(0), "%s: Backlog at the end", when)
}

func lineLatestInOneStep(w *world) {
	owner, sub := w.ordered(latest)
	e := w.versions(owner, sub, "a")
	failed := w.claims("at first", e[0])[0]
	d := w.draftOn("a.b", sender.Object{Type: "thing", ID: "a"})
	d.Subscriber, d.Subscription = owner, sub
	w.publish(d)
	_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{Decide: w.decide, Results: []dispatch.Result{result(failed, sender.ClassStatus)}})
	w.noError(err, "expanding and recording")
	w.status(e[0], sub, sender.StatusSuperseded, "after the step")
	w.claims("after the step", d.ID)
}

func lineLatestLeavesSet(w *world) {
	owner, sub := w.ordered(latest)
	e := w.versions(owner, sub, "a")
	w.record(result(w.claims("at first", e[0])[0], sender.ClassNone))
	r := w.replay(replay.Filter{Status: sender.StatusDelivered, Subscription: sub})
	w.equal(r.Matched, int64(1), "Matched")
	b := w.versions(owner, sub, "b")
	other := w.claims("of another object", b[0])[0]
	w.redeliver(w.delivery(e[0], sub).ID)
	d := w.draftOn("a.b", sender.Object{Type: "thing", ID: "a"})
	d.Subscriber, d.Subscription = owner, sub
	w.publish(d)
	_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{Decide: w.decide, Results: []dispatch.Result{result(other, sender.ClassNone)}})
	w.noError(err, "expanding and recording")
	w.status(e[0], sub, sender.StatusDelivered, "once it was sent again and superseded")
	w.record(result(w.claims("after the step", d.ID)[0], sender.ClassNone))
	step := w.steps(10)
	w.equal([]int{step.Admitted, step.Skipped}, []int{0, 1}, "admitted and skipped")
	w.claimNothing("after the replay")
}

func lineLatestHeld(w *world) {
	owner, sub := w.ordered(latest)
	w.pause(sub)
	var newest []string
	for range 5 {
		newest = w.versions(owner, sub, "a", "b", "a", "c", "c")
	}
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 3, sender.StatusSuperseded: 22}, "statuses of 25 events about 3 objects")
	w.resume(sub, takeAll)
	for _, c := range w.claims("after the resume", newest[1], newest[2], newest[4]) {
		w.record(result(c, sender.ClassNone))
	}
}

func lineLatestAgain(w *world) {
	owner, sub := w.ordered(latest)
	e := w.versions(owner, sub, "a", "a", "b", "b")
	old := w.delivery(e[0], sub).ID
	w.redeliver(old)
	w.status(e[0], sub, sender.StatusSuperseded, "redelivered while a newer one waits")
	for _, c := range w.claims("at first", e[1], e[3]) {
		w.record(result(c, sender.ClassNone))
	}
	w.redeliver(old)
	w.record(result(w.claims("redelivered", e[0])[0], sender.ClassNone))
	w.status(e[0], sub, sender.StatusDelivered, "redelivered")
	r := w.replay(replay.Filter{Status: sender.StatusSuperseded, Subscription: sub})
	w.equal(r.Matched, int64(1), "superseded deliveries that a replay has found")
	w.steps(plenty)
	w.record(result(w.claims("replayed", e[2])[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 4}, "statuses at the end")

	// One that was delivered stays so.
	e = w.versions(owner, sub, "a")
	w.redeliver(old)
	w.status(e[0], sub, sender.StatusPending, "the newer one")
	w.status(w.get(old).Event.ID, sub, sender.StatusDelivered, "redelivered, and superseded at once")
}

func lineChanged(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "a")
	first := w.claims("at first", e[0])
	w.set(sub, sender.Settings{})
	e = append(e, w.versions(owner, sub, "a")...)
	relaxed := w.claims("of the relaxed order", e[3])
	w.record(result(first[0], sender.ClassStatus), result(relaxed[0], sender.ClassNone))
	w.Advance(retryDelay(1))
	for _, next := range []int{0, 1, 2} {
		w.record(result(w.claims("what waited behind others", e[next])[0], sender.ClassNone))
	}

	w.set(sub, byObject)
	e = w.versions(owner, sub, "a", "a", "a", "a")
	w.set(sub, latest)
	e = append(e, w.versions(owner, sub, "a")...)
	w.equal(w.statuses(sub)[sender.StatusSuperseded], 4, "superseded ones, once the order is the latest")
	w.record(result(w.claims("of the latest order", e[4])[0], sender.ClassNone))
	w.equal(w.read(sub).Backlog, int64(0), "Backlog at the end")
}

func lineChangedToLatest(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "a", "a", "b")
	first := w.claim(1)
	w.equal(eventsOf(first), []string{e[0]}, "the first one")
	w.set(sub, latest)
	w.record(result(first[0], sender.ClassNone)) // b is pending
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1, sender.StatusSuperseded: 2, sender.StatusPending: 2}, "statuses, as the first one has ended")
	for _, c := range w.claims("as the first one has ended", e[3], e[4]) {
		w.record(result(c, sender.ClassNone))
	}
	w.equal(w.read(sub).Backlog, int64(0), "Backlog")

	// Three more: one waits behind another, one is a dead letter, and one came after that.
	owner, sub = w.ordered(holding)
	e = w.versions(owner, sub, "a", "a", "a", "a")
	for _, event := range e[:2] {
		w.record(result(w.claims("in order", event)[0], sender.ClassNone))
	}
	w.die(w.claims("the next", e[2])[0])
	w.redeliver(w.delivery(e[0], sub).ID)
	w.redeliver(w.delivery(e[1], sub).ID)
	first = w.claims("redelivered", e[0])
	w.set(sub, latest)
	w.record(result(first[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 2, sender.StatusDeadLettered: 1, sender.StatusPending: 1}, "statuses, as what was redelivered has ended")
	w.record(result(w.claims("as what was redelivered has ended", e[3])[0], sender.ClassNone))
	w.sweep(plenty)
	w.claimNothing("at the end")
	w.equal(w.read(sub).Backlog, int64(0), "Backlog at the end")
	counts, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	w.equal([]int64{counts.Live, counts.DeadLettered}, []int64{0, 1}, "live and dead ones at the end")

	// A dead letter that held back another one is sent again. The other one supersedes it at
	// once, and comes out.
	owner, sub = w.ordered(holding)
	e = w.versions(owner, sub, "b", "b")
	w.die(w.claims("of another object", e[0])[0])
	w.set(sub, latest)
	w.redeliver(w.delivery(e[0], sub).ID)
	w.status(e[0], sub, sender.StatusSuperseded, "redelivered before a newer one that it held back")
	w.record(result(w.claims("the newer one", e[1])[0], sender.ClassNone))
}
