package storetest

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

func spareRules() []rule {
	return []rule{
		{"spared", "That a decision spares an attempt is told with the next claim, and to the next decision, and to none after it.", spareNext},
		{"spared, released", "A release keeps what was spared.", spareReleased},
		{"spared, lost", "An attempt that was lost ends what was spared before it.", spareLost},
		{"spared, anew", "Nothing is spared in a schedule that starts anew: by a redelivery or a resume, of what waits and of what is in flight, or by a replay.", spareAnew},
		{"spared, single", "A single attempt that is spared is made again, as a single one: its delivery waits meanwhile, and is delivered afterwards, whatever comes of it.", spareSingle},
	}
}

const spareDelay = time.Second

// sparing is the suite's policy, except that it spares a reset unless the attempt
// before was spared.
func (w *world) sparing() *dispatch.Live {
	live := new(dispatch.Live)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		*live = l
		if r.Class == sender.ClassReset && !l.Spared {
			return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(spareDelay), Health: h, Uncounted: true, Spared: true}
		}
		return decide(l, h, r, now)
	}
	return live
}

// spare makes an attempt that is spared, and waits until the next one is due.
func (w *world) spare() {
	w.Helper()
	w.record(result(w.claimOne(), sender.ClassReset))
	w.Advance(spareDelay)
}

// claimSpared claims the one delivery that is due.
func (w *world) claimSpared(spared bool, when string) dispatch.Claimed {
	w.Helper()
	c := w.claimOne()
	w.equal(c.Spared, spared, "Spared of what was claimed %s", when)
	return c
}

func spareNext(w *world) {
	w.one()
	live := w.sparing()
	before := false
	spared := []bool{true, false, false, true, false, true} // the attempts with these outcomes
	for i, class := range []sender.Class{sender.ClassReset, sender.ClassReset, sender.ClassTimeout, sender.ClassReset, sender.ClassTimeout, sender.ClassReset} {
		when := fmt.Sprintf("for attempt %d", i+1)
		c := w.claimSpared(before, when)
		dec := w.record(result(c, class))[0].Decision
		w.equal([]bool{live.Spared, dec.Spared}, []bool{before, spared[i]}, "Spared before and after the decision %s", when)
		before = spared[i]
		w.Advance(retryDelay(maxTries))
	}
}

func spareReleased(w *world) {
	w.one()
	live := w.sparing()
	release := func(spared bool, when string) {
		w.Helper()
		c := w.claimSpared(spared, when)
		w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	}
	release(false, "at first")
	w.spare()
	release(true, "after one that was spared")
	release(true, "after a release")
	w.record(result(w.claimSpared(true, "after two releases"), sender.ClassReset))
	w.equal([]any{live.Spared, live.Number, live.Tries}, []any{true, 2, 1}, "Spared, number and tries at the decision after a release")
	w.Advance(retryDelay(1))
	release(false, "after the second in a row")
}

func spareLost(w *world) {
	w.one()
	live := w.sparing()
	w.spare()
	w.claimSpared(true, "after one that was spared")
	w.Advance(lease + time.Second)
	claims := w.claimBy(dispatch.ClaimParams{Lease: lease, Lanes: lanes(plenty)})
	w.equal([]int{len(claims.Interrupted), len(claims.Claimed)}, []int{1, 1}, "attempts interrupted, and deliveries claimed")
	w.check(live.Spared, "the decision on the lost attempt was not told that the one before it was spared")
	w.check(!claims.Claimed[0].Spared, "what was claimed after a lost attempt is spared")
	dec := w.record(result(claims.Claimed[0], sender.ClassReset))[0].Decision
	w.check(dec.Spared, "the attempt after one that was lost is not spared")
}

func spareAnew(w *world) {
	release := func(c dispatch.Claimed) {
		w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	}
	for _, again := range []struct {
		name string
		do   func(id, sub string)
	}{
		{"a redelivery", func(id, _ string) { w.redeliver(id) }},
		{"a resume", func(_, sub string) { w.pause(sub); w.resume(sub, takeAll) }},
	} {
		d, sub := w.one()
		id := w.delivery(d.ID, sub).ID
		live := w.sparing()

		w.spare()
		w.equal(w.facts(d.ID, sub).Spared, true, "Spared of the facts before %s", again.name)
		again.do(id, sub)
		w.equal(w.facts(d.ID, sub).Spared, false, "Spared of the facts after %s", again.name)
		c := w.claimSpared(false, "after "+again.name)
		w.record(result(c, sender.ClassReset))
		w.equal([]any{live.Spared, live.Tries}, []any{false, 1}, "Spared and tries at the first decision after %s", again.name)

		w.Advance(spareDelay)
		c = w.claimSpared(true, "before "+again.name+" in flight")
		again.do(id, sub)
		w.record(result(c, sender.ClassReset))
		w.equal([]any{live.Spared, live.Tries}, []any{false, 1}, "Spared and tries of what was in flight at %s", again.name)

		w.Advance(spareDelay)
		c = w.claimSpared(true, "before "+again.name+" and a release")
		again.do(id, sub)
		release(c)
		w.record(result(w.claimSpared(false, "after "+again.name+" and a release"), sender.ClassNone))
	}

	w.one()
	w.sparing()
	w.spare()
	w.decide = endNow
	w.record(result(w.claimSpared(true, "before it was dead-lettered"), sender.ClassTimeout))
	w.replay(replay.Filter{})
	w.equal(w.steps(10).Admitted, 1, "admitted")
	live := w.sparing()
	w.record(result(w.claimSpared(false, "after a replay"), sender.ClassReset))
	w.equal(live.Spared, false, "Spared at the first decision after a replay")
}

func spareSingle(w *world) {
	for _, last := range []sender.Class{sender.ClassNone, sender.ClassReset, sender.ClassTimeout} {
		d, sub := w.one()
		live := w.sparing()
		w.record(result(w.claimOne(), sender.ClassNone))
		id := w.delivery(d.ID, sub).ID
		w.redeliver(id)
		waits := w.get(id).Status

		first := result(w.claimOne(), sender.ClassReset)
		due := w.record(first)[0].Decision.Due
		w.check(live.Single, "Decide was not told that it is a single attempt")
		read := w.get(id)
		w.equal([]any{read.Status, read.InFlight, read.AttemptCount, read.LastErrorClass}, []any{waits, false, 2, sender.ClassReset}, "status, in flight, attempts and last class while it waits")
		w.sameTime(read.NextAttemptAt, due, "NextAttemptAt")
		w.sameTime(read.Attempts[1].NextAttemptAt, due, "NextAttemptAt of the attempt")
		w.equal(w.statuses(sub), map[sender.Status]int{waits: 1}, "statuses while it waits")
		w.equal(w.read(sub).Backlog, int64(1), "Backlog while it waits")
		f := w.facts(d.ID, sub)
		w.equal([]any{f.Single, f.Spared, f.Tries}, []any{true, true, 0}, "facts while it waits")
		w.claimNothing("before it is due")

		w.Advance(spareDelay)
		w.record(result(w.claimSpared(true, "after a single one"), last))
		w.equal([]any{live.Single, live.Spared, live.Number, live.Tries}, []any{true, true, 3, 1}, "Single, Spared, number and tries at the last decision")
		w.equal([]any{w.get(id).Status, w.get(id).AttemptCount}, []any{sender.StatusDelivered, 3}, "status and attempts in the end")
		w.equal([]any{w.read(sub).Backlog, w.read(sub).DeadLettered}, []any{int64(0), int64(0)}, "Backlog and DeadLettered in the end")
		w.Advance(time.Hour)
		w.claimNothing("after the end")

		w.redeliver(id)
		w.equal(w.facts(d.ID, sub).Spared, false, "Spared of one that is redelivered")
		w.spare()
		w.pause(sub)
		w.resume(sub, takeNone)
		w.equal(w.get(id).Status, sender.StatusDelivered, "status of one that a resume has skipped while it waited")
		w.endsSwept()
		w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1}, "statuses after a sweep")
	}
}
