package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

func outageRules() []rule {
	return []rule{
		{"uncounted", "An attempt that a decision leaves uncounted has its number, and is stored, but the next one has the same Live.Tries; Live.First stays, also if one is released in between.", outageUncounted},
		{"stood", "The time that decisions let a schedule stand still is summed up, until the schedule starts anew.", outageStood},
	}
}

// standing is the suite's policy, except for failures to connect: they are uncounted,
// and the schedule stands still.
func (w *world) standing() *dispatch.Live {
	live := new(dispatch.Live)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		*live = l
		dec := decide(l, h, r, now)
		if r.Class == sender.ClassConnect {
			dec = dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(time.Minute), Health: h, Uncounted: true, Stands: 90*time.Second + time.Microsecond}
		}
		return dec
	}
	return live
}

func outageUncounted(w *world) {
	d, sub := w.one()
	live := w.standing()
	var first time.Time
	tries := []int{1, 1, 1, 2, 2, 3} // of the attempts with these outcomes
	for i, class := range []sender.Class{sender.ClassConnect, sender.ClassConnect, sender.ClassTimeout, sender.ClassConnect, sender.ClassTimeout, sender.ClassTimeout} {
		c := w.claimOne()
		if i == 0 {
			first = c.At
		} else { // a released attempt was never made
			w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
			c = w.claimOne()
		}
		w.record(result(c, class))
		w.equal([]int{c.Number, live.Number, live.Tries}, []int{i + 1, i + 1, tries[i]}, "number, and number and tries at the decision, of attempt %d", i+1)
		w.sameTime(live.First, first, "First of attempt %d", i+1)
		w.Advance(retryDelay(maxTries))
	}
	w.equal(w.delivery(d.ID, sub).AttemptCount, 6, "attempts stored")
}

func outageStood(w *world) {
	d, sub := w.one()
	live := w.standing()
	const step = 90*time.Second + time.Microsecond
	fail := func(class sender.Class, stood time.Duration, when string) {
		w.Helper()
		w.record(result(w.claimOne(), class))
		w.equal(live.Stood, stood, "Stood %s", when)
		w.Advance(retryDelay(maxTries))
	}
	fail(sender.ClassConnect, 0, "at the first attempt")
	fail(sender.ClassTimeout, step, "after one standstill")
	fail(sender.ClassConnect, step, "after one standstill and a failure")
	c := w.claimOne()
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: c.Key, Token: c.Token}}), "releasing")
	fail(sender.ClassTimeout, 2*step, "after two, and a release")
	w.redeliver(w.delivery(d.ID, sub).ID)
	fail(sender.ClassConnect, 0, "after a redelivery")
	fail(sender.ClassConnect, step, "after one standstill of the new schedule")
	w.pause(sub)
	w.resume(sub, takeAll)
	fail(sender.ClassConnect, 0, "after a resume")
	c = w.claimOne()
	w.redeliver(w.delivery(d.ID, sub).ID)
	w.record(result(c, sender.ClassConnect))
	w.equal(live.Stood, time.Duration(0), "Stood of an attempt that was in flight at a redelivery")
}
