package storetest

import (
	"reflect"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// rollups returns the rollups of the last hour.
func (w *world) rollups() []history.Rollup {
	w.Helper()
	all, err := w.Store.Rollups(w.ctx, w.now().Add(-time.Hour), w.now().Add(time.Minute))
	w.noError(err, "reading rollups")
	return all
}

func (w *world) sameRollup(got, want history.Rollup, what string) {
	w.Helper()
	w.sameTime(got.Minute, want.Minute, "Minute %s", what)
	w.sameTime(got.OldestDue, want.OldestDue, "OldestDue %s", what)
	w.equal(quantiles(&got.FirstAttempt), quantiles(&want.FirstAttempt), "FirstAttempt %s", what)
	w.equal(quantiles(&got.Success), quantiles(&want.Success), "Success %s", what)
	for i := range want.Lanes {
		g, n := &got.Lanes[i], &want.Lanes[i]
		w.sameTime(g.OldestDue, n.OldestDue, "OldestDue of lane %d %s", i, what)
		w.equal(quantiles(&g.FirstAttempt), quantiles(&n.FirstAttempt), "FirstAttempt of lane %d %s", i, what)
		g.OldestDue, g.FirstAttempt = n.OldestDue, n.FirstAttempt
	}
	got.Minute, got.OldestDue, got.FirstAttempt, got.Success = want.Minute, want.OldestDue, want.FirstAttempt, want.Success
	w.check(reflect.DeepEqual(got, want), "%s: got %+v, want %+v", what, got, want)
}

func quantiles(l *history.Latency) []any {
	return []any{l.Count(), l.Quantile(0.1), l.Quantile(0.5), l.Quantile(0.9), l.Longest()}
}

func latency(ds ...time.Duration) (l history.Latency) {
	for _, d := range ds {
		l.Add(d)
	}
	return l
}

func queryRollups(w *world) {
	const ms = time.Millisecond
	w.Advance(w.now().Truncate(time.Minute).Add(time.Minute).Sub(w.now()))
	start := w.now()
	owner := w.subscriber()
	sub := w.subscribe(owner, "a.*")
	w.equal(len(w.rollups()), 0, "rollups before anything was done")
	w.publish(w.draft("a.b"), w.draft("a.b"), w.draft("a.b"), w.draft("a.b"), w.draft("b.c"))
	w.expand()
	w.Advance(2 * time.Second)

	claimed := w.claim(plenty)
	published := func(r dispatch.Result) dispatch.Result {
		r.Published = start
		return r
	}
	// They begin 1 ms after the claim, and take 20 ms.
	w.decide = func(_ dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		switch r.Class {
		case sender.ClassNone:
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		case sender.ClassBlocked:
			return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(30 * time.Second), Health: h}
	}
	late := published(result(claimed[0], sender.ClassNone))
	late.Token += 7
	for _, r := range w.tryRecord(published(result(claimed[0], sender.ClassNone)), late, published(result(claimed[1], sender.ClassTimeout)), published(result(claimed[2], sender.ClassBlocked))) {
		w.check(r.Lost == (r.Decision.Status == ""), "a result is lost and decided about")
	}
	first := history.Rollup{
		Minute: start, Published: 5, Deliveries: 4, Delivered: 1, DeadLettered: 1, Failed: 1,
		Failures:     map[sender.Class]int64{sender.ClassTimeout: 1, sender.ClassBlocked: 1},
		FirstAttempt: latency(2001*ms, 2001*ms, 2001*ms), Success: latency(2021 * ms), Succeeded: 1, FirstTry: 1,
	}
	first.Lanes[sender.LaneNew] = history.LaneRollup{Delivered: 1, Failed: 2, FirstAttempt: first.FirstAttempt}
	got := w.rollups()
	w.equal(len(got), 1, "rollups in the first minute")
	first.Waits(&history.Counts{Live: got[0].Backlog, OldestDue: got[0].OldestDue}) // while the minute lasts: as it began
	w.sameRollup(got[0], first, "in the first minute")

	w.Advance(3 * time.Minute) // the fourth was lost, and the second is due again
	w.sweep(10)                // a store may count its backlog here
	_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: func(_ dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Health: h} // which is zero
	}, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(plenty)}})
	w.errorIs(err, sender.ErrInvalid, "a decision without a status")
	w.equal(len(w.rollups()), 1, "rollups after a batch that failed")
	again := w.claim(plenty)
	w.equal(len(again), 1, "deliveries claimed again")
	w.record(published(result(again[0], sender.ClassNone)))
	got = w.rollups()
	w.equal(len(got), 2, "rollups: the minutes in between are left out")
	// The second was due 30 s after it was recorded, before the lease of the fourth ended.
	first.Backlog, first.OldestDue = 2, start.Add(32*time.Second)
	first.Lanes[sender.LaneNew].Backlog, first.Lanes[sender.LaneNew].OldestDue = first.Backlog, first.OldestDue
	w.sameRollup(got[0], first, "of the first minute")
	second := history.Rollup{
		Minute: start.Add(3 * time.Minute), Delivered: 1, Interrupted: 1, Failures: map[sender.Class]int64{sender.ClassInterrupted: 1},
		FirstAttempt: latency(2 * time.Second), Success: latency(3*time.Minute + 2021*ms),
		Backlog: 2, OldestDue: start.Add(32 * time.Second), Succeeded: 1,
	}
	second.Lanes[sender.LaneNew] = history.LaneRollup{Delivered: 1, Failed: 1, FirstAttempt: second.FirstAttempt, Backlog: 2, OldestDue: second.OldestDue}
	w.sameRollup(got[1], second, "of the fourth minute")

	for _, c := range []struct {
		from, to time.Duration
		want     int
	}{{0, time.Minute, 1}, {0, 3 * time.Minute, 1}, {0, 3*time.Minute + 1000, 2}, {time.Minute, 10 * time.Minute, 1}, {1000, 3 * time.Minute, 0}} {
		all, err := w.Store.Rollups(w.ctx, start.Add(c.from), start.Add(c.to))
		w.noError(err, "reading rollups")
		w.equal(len(all), c.want, "rollups from %v to %v", c.from, c.to)
	}
	w.equal(w.read(sub).Backlog, int64(1), "Backlog in the end")
}

func queryHourRollups(w *world) {
	w.Advance(w.now().Truncate(time.Hour).Add(time.Hour).Sub(w.now()))
	start := w.now()
	minutesOf := func(from, to time.Time) (hours []history.Rollup) {
		all, err := w.Store.Rollups(w.ctx, from, to)
		w.noError(err, "reading rollups")
		for i := range all {
			hour := all[i].Minute.UTC().Truncate(time.Hour)
			if n := len(hours); n == 0 || !hours[n-1].Minute.Equal(hour) {
				hours = append(hours, history.Rollup{Minute: hour})
			}
			hours[len(hours)-1].Merge(&all[i])
			hours[len(hours)-1].Minute = hour
		}
		return hours
	}
	same := func(n int, from, to time.Duration, what string) {
		got, err := w.Store.HourRollups(w.ctx, start.Add(from), start.Add(to))
		w.noError(err, "reading rollups of hours")
		want := minutesOf(start.Add(from), start.Add(to))
		w.equal(len(got), n, "hours %s", what)
		w.equal(len(want), n, "hours of minutes %s", what)
		for i := range min(len(got), len(want)) {
			w.sameRollup(got[i], want[i], what)
		}
	}
	same(0, 0, time.Hour, "before anything was done")
	for i, class := range []sender.Class{sender.ClassNone, sender.ClassTimeout, sender.ClassNone} {
		w.ended(i+1, class)
		w.Advance(20 * time.Minute) // the third is in the second hour
		w.ended(1, sender.ClassNone)
		w.Advance(20 * time.Minute)
	}
	same(2, 0, 2*time.Hour, "while they last")
	for range 3 { // of the two, then of the third hour
		w.sweep(10)
		w.Advance(time.Hour)
		w.ended(1, sender.ClassNone)
	}
	w.sweep(10)
	same(5, 0, 10*time.Hour, "of which some are over")
	same(1, time.Hour, 2*time.Hour, "of one hour")
	same(1, 4*time.Hour, 5*time.Hour, "of the hour that lasts")
	same(0, -time.Hour, 0, "before them")
}
