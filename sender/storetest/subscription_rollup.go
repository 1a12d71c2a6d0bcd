package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// hours returns figures of subscriptions.
func (w *world) hours(from, to time.Time, ids ...string) []history.SubscriptionRollup {
	w.Helper()
	all, err := w.Store.SubscriptionRollups(w.ctx, ids, from, to)
	w.noError(err, "reading the figures of subscriptions")
	return all
}

// figures are those of an hour that a test compares.
func (w *world) figures(r history.SubscriptionRollup) []any {
	return []any{
		r.Subscription, r.Deliveries, r.Delivered, r.DeadLettered, r.Interrupted, r.Failed, r.Succeeded, r.FirstTry,
		r.Failures[sender.ClassTimeout], r.Failures[sender.ClassBlocked], r.Duration.Count(), r.Duration.Longest(),
	}
}

// decideByClass dead-letters what is blocked, and retries other failures after 30 s.
func (w *world) decideByClass() {
	w.decide = func(_ dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		switch r.Class {
		case sender.ClassNone:
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		case sender.ClassBlocked:
			return dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		return dispatch.Decision{Status: sender.StatusAwaitingRetry, Due: now.Add(30 * time.Second), Health: h}
	}
}

// byHead claims everything, and records the classes in the order of each subscription's
// deliveries.
func (w *world) byHead(classes map[string][]sender.Class) {
	w.Helper()
	next := map[string]int{}
	var results []dispatch.Result
	for _, c := range w.claim(plenty) {
		all := classes[c.Target.Subscription]
		if i := next[c.Target.Subscription]; i < len(all) {
			results = append(results, result(c, all[i]))
		}
		next[c.Target.Subscription]++
	}
	w.record(results...)
}

func querySubscriptionRollups(w *world) {
	w.Advance(w.now().Truncate(time.Hour).Add(time.Hour).Sub(w.now()))
	start := w.now()
	owner := w.subscriber()
	a, b, c := w.subscribe(owner, "a.*"), w.subscribe(owner, "a.*"), w.subscribe(owner, "never")
	day := start.Add(24 * time.Hour)
	w.equal(len(w.hours(start, day, a, b, c)), 0, "figures before anything was done")
	w.publish(w.draft("a.b"), w.draft("a.b"), w.draft("a.b"))
	w.undone(func(tx any) error { return w.Store.DeleteSubscriptionTx(w.ctx, tx, c) })
	w.expand()
	w.decideByClass()
	w.byHead(map[string][]sender.Class{a: {sender.ClassNone, sender.ClassTimeout, sender.ClassBlocked}, b: {sender.ClassNone, sender.ClassNone, sender.ClassNone}})
	const took = 20 * time.Millisecond
	want := [][]any{
		{b, int64(3), int64(3), int64(0), int64(0), int64(0), int64(3), int64(3), int64(0), int64(0), int64(3), took},
		{a, int64(3), int64(1), int64(1), int64(0), int64(1), int64(1), int64(1), int64(1), int64(1), int64(3), took},
	}
	check := func(got []history.SubscriptionRollup, want [][]any, when string) {
		w.Helper()
		w.equal(len(got), len(want), "figures %s", when)
		for i := range got {
			w.equal(w.figures(got[i]), want[i], "figures %d %s", i, when)
		}
	}
	check(w.hours(start, day, b, c, "wsub_unknown", a), want, "in the first hour")
	w.sweep(10)
	check(w.hours(start, day, b, a), want, "once they may be written")
	w.sweep(0)
	check(w.hours(start, day, b, a), want, "once they are written")
	w.Advance(2 * time.Hour)
	w.byHead(map[string][]sender.Class{a: {sender.ClassNone}})
	w.sweep(0)
	later := []any{a, int64(0), int64(1), int64(0), int64(0), int64(0), int64(1), int64(0), int64(0), int64(0), int64(1), took}
	got := w.hours(start, day, a)
	check(got, append(want[1:2:2], later), "in two hours")
	w.sameTime(got[0].Hour, start, "first hour")
	w.sameTime(got[1].Hour, start.Add(2*time.Hour), "second hour")
	check(w.hours(start.Add(time.Hour), day, a), [][]any{later}, "from the second hour on")
	check(w.hours(start, start.Add(2*time.Hour), a), want[1:2], "before the third hour")

	w.redeliver(w.list(history.DeliveryQuery{Subscription: b, Limit: 1})[0].ID)
	w.byHead(map[string][]sender.Class{b: {sender.ClassNone}})
	check(w.hours(start.Add(time.Hour), day, b), [][]any{{b, int64(0), int64(1), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(1), took}},
		"of one that was delivered before")
}

func queryCountsByLane(w *world) {
	owner := w.subscriber()
	subs := map[string]sender.Lane{}
	for lane := range sender.Lane(sender.Lanes) {
		subs[w.subscribe(owner, "a.b")] = lane
	}
	w.publish(w.draft("a.b"))
	w.expand()
	w.decide = func(l dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	}
	var results []dispatch.Result
	lanes := map[int64]sender.Lane{}
	for _, c := range w.claim(plenty) {
		lanes[c.Key.Subscription] = subs[c.Target.Subscription]
		results = append(results, result(c, sender.ClassNone))
	}
	w.decide = func(l dispatch.Live, h sender.Health, _ dispatch.Result, _ time.Time) dispatch.Decision {
		h.Lane = lanes[l.Key.Subscription]
		return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
	}
	w.record(results...)
	var want [sender.Lanes]history.LaneCounts
	for sub, lane := range subs {
		for range int(lane) + 1 {
			want[lane].Live++
			w.publish(w.addressed(owner, sub))
		}
	}
	w.expand()
	since := w.now()
	w.Advance(time.Minute)
	got, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	for lane := range want {
		w.equal(got.Lanes[lane].Live, want[lane].Live, "Live in lane %d", lane)
		w.sameTime(got.Lanes[lane].OldestDue, since, "OldestDue in lane %d", lane)
	}
	w.claim(plenty)
	got, err = w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	for lane := range want {
		w.sameTime(got.Lanes[lane].OldestDue, time.Time{}, "OldestDue in lane %d, in flight", lane)
	}
}

func queryRecent(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.decideByClass()
	post := func(classes ...sender.Class) {
		for _, class := range classes {
			w.publish(w.addressed(owner, sub))
			w.expand()
			w.byHead(map[string][]sender.Class{sub: {class}})
		}
	}
	w.equal(w.read(sub).Health.Recent, sender.Recent(0), "outcomes of one that had no attempt")
	post(sender.ClassNone, sender.ClassBlocked, sender.ClassInterrupted, sender.ClassTimeout)
	w.equal(w.read(sub).Health.Recent.Outcomes(), []sender.Outcome{sender.OutcomeSucceeded, sender.OutcomeDeadLettered, sender.OutcomeFailed}, "outcomes")
	w.disable(sub)
	w.resume(sub, sender.Resume{None: true})
	for range sender.RecentOutcomes {
		post(sender.ClassNone)
	}
	w.equal(len(w.read(sub).Health.Recent.Outcomes()), sender.RecentOutcomes, "outcomes that are remembered")
	post(sender.ClassBlocked)
	got := w.read(sub).Health.Recent.Outcomes()
	w.equal([]sender.Outcome{got[0], got[sender.RecentOutcomes-1]}, []sender.Outcome{sender.OutcomeSucceeded, sender.OutcomeDeadLettered}, "the oldest and the newest outcome")
}
