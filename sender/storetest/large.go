package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func largeRules() []rule {
	return []rule{
		{"beside others", "Events behind a large one are expanded, and claimed, in the next step; those about its object only once it is whole.", largeBeside},
		{"parts", "A call makes no more of large events than a part, less what the others make, and no less than a quarter of it: so they end beside any others, and each delivery is made once.", largeParts},
		{"side by side", "Large events share a part, so that one that has few more deliveries than a small one does not wait for one that has very many.", largeSideBySide},
		{"many that wait", "Events that wait for a large one about their object are passed over by those behind them, and are expanded in their order once it is whole.", largeWaiting},
		{"late", "A large event's delivery that comes after a later event's is claimed before that, if that was not claimed, and in any case.", largeLate},
		{"late beside retries", "A late delivery keeps its place among others of its subscription that wait for a retry.", largeLateRetries},
		{"late and skipped", "A large event that was begun before its subscription was resumed without it leaves a cancelled delivery there.", largeSkipped},
		{"late and closing", "A subscription that is closing gets a large event that was committed before, however late, and is deleted after it.", largeClosing},
	}
}

// ofMany is the type for which many subscribe.
const ofMany = "big.one"

// parts make an event with more than three deliveries a large one.
var parts = dispatch.ExpandParams{Events: 10, Deliveries: 10, Whole: 3, Part: 4}

// many registers subscriptions to large events, each with a subscriber of its own. The
// last one subscribes to all types.
func (w *world) many(n int) (subs []string) {
	w.Helper()
	for range n - 1 {
		subs = append(subs, w.subscribe(w.subscriber(), ofMany))
	}
	return append(subs, w.subscribe(w.subscriber(), "*"))
}

// expandOnce makes one call.
func (w *world) expandOnce(p dispatch.ExpandParams) dispatch.Expanded {
	w.Helper()
	x, _, err := w.Store.Step(w.ctx, p, dispatch.Batch{})
	w.noError(err, "expanding")
	return x
}

// of counts the deliveries of an event.
func (w *world) of(d sender.Draft) int {
	w.Helper()
	return len(w.list(history.DeliveryQuery{Event: d.ID}))
}

func largeBeside(w *world) {
	const n = 30
	w.many(n)
	large, same, other := w.draft(ofMany), w.draft("small.one"), w.draft("small.one")
	same.Object = large.Object
	w.publish(large, same)
	w.expandOnce(parts)
	w.check(w.of(large) > 0 && w.of(large) < n, "%d of %d deliveries of a large event are made by the first call", w.of(large), n)
	w.publish(other)
	_, c := w.dispatch(parts, dispatch.Batch{Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(plenty)}})
	w.check(slices.ContainsFunc(c.Claimed, func(c dispatch.Claimed) bool { return c.Event.ID == other.ID }), "what is behind a large event is not claimed in the next step")
	for more := true; more; {
		more = w.expandOnce(parts).More
		w.check(w.of(same) == 0 || w.of(large) == n, "an event is expanded when %d of %d deliveries are made of one before it about the same object", w.of(large), n)
	}
	w.equal([]int{w.of(large), w.of(same), w.of(other)}, []int{n, 1, 1}, "deliveries in the end")
}

func largeParts(w *world) {
	const n = 30
	w.many(n)
	large := w.draft(ofMany)
	w.publish(large)
	drafts := []sender.Draft{large}
	made, calls := 0, 0
	for ; made < n; calls++ {
		w.check(calls < 2*n, "%d of %d deliveries of a large event are made after %d calls, beside others", made, n, calls)
		var small []sender.Draft
		for range calls % 8 { // more of them would take the whole call
			small = append(small, w.draft("small.one"))
		}
		if len(small) > 0 {
			w.publish(small...)
		}
		w.expandOnce(parts)
		drafts = append(drafts, small...)
		now := w.of(large)
		w.check(now > made, "no delivery of a large event was made, beside %d of others", len(small))
		w.check(now == n || now-made <= max(1, parts.Part-len(small)), "%d deliveries of a large event were made, beside %d of others", now-made, len(small))
		made = now
	}
	w.expandBy(parts)
	w.equal(w.of(large), n, "deliveries of the large event")
	w.equal(len(w.list(history.DeliveryQuery{})), n+len(drafts)-1, "deliveries in all")
}

func largeSideBySide(w *world) {
	const n, few = 40, 5
	w.many(n)
	for range few {
		w.subscribe(w.subscriber(), "some.*")
	}
	first, second := w.draft(ofMany), w.draft("some.one")
	w.publish(first, second)
	for calls := 0; w.of(second) <= few; calls++ { // and the one that subscribes to all types
		w.check(w.of(first) < n/2, "%d deliveries of one large event are made when only %d of the other are", w.of(first), w.of(second))
		w.expandOnce(parts)
	}
	w.expandBy(parts)
	w.equal([]int{w.of(first), w.of(second)}, []int{n, few + 1}, "deliveries in the end")
}

func largeWaiting(w *world) {
	const n, waiting = 60, 20
	w.many(n)
	large := w.draft(ofMany)
	drafts := []sender.Draft{large}
	for range waiting {
		d := w.draft("small.one")
		d.Object = large.Object
		drafts = append(drafts, d)
	}
	other := w.draft("small.one")
	w.publish(append(drafts, other)...)
	p := parts
	p.Events = 3
	for w.of(other) == 0 {
		w.check(w.of(large) < n, "what is behind %d events that wait for a large one waits, too", waiting)
		w.expandOnce(p)
	}
	for more := true; more; {
		more = w.expandOnce(p).More
		made := 0
		for i, d := range drafts[1:] {
			if w.of(d) > 0 {
				w.equal(made, i, "events before one that is expanded, about the same object")
				made++
			}
		}
		w.check(made == 0 || w.of(large) == n, "%d events are expanded that were to wait", made)
	}
	w.equal(len(w.list(history.DeliveryQuery{})), n+waiting+1, "deliveries in all")
}

func largeLate(w *world) {
	for _, claimed := range []int{0, 1, 2} {
		const n = 9
		subs := w.many(n)
		sub := subs[n-1]
		for _, other := range subs[:n-1] { // or they take the slots
			w.pause(other)
		}
		large := w.draft(ofMany)
		later := []sender.Draft{w.draft("small.one"), w.draft("small.two")}
		w.publish(large)
		w.publish(later...)
		w.expandOnce(parts)
		w.equal(w.events(sub), sorted(later...), "events of the subscription that gets the large one last")
		w.Advance(time.Second)
		var got []string
		take := func(n int) {
			w.Helper()
			for _, c := range w.claim(n) {
				if c.Target.Subscription == sub {
					got = append(got, c.Event.ID)
					w.record(result(c, sender.ClassNone))
				}
			}
		}
		for range claimed {
			take(1)
		}
		w.Advance(time.Second)
		w.expandBy(parts)
		w.equal(w.events(sub), sorted(append(later, large)...), "events of the subscription in the end")
		w.publish(w.draft("small.three"))
		w.expandBy(parts)
		for range 2 * n {
			take(1)
		}
		w.equal(len(got), 4, "deliveries claimed, %d of them before the late one came", claimed)
		w.equal(slices.Index(got, large.ID), claimed, "place of the late one in the order of the claims, of which %d were before it came", claimed)
		for _, id := range subs {
			w.unsubscribe(id)
		}
		w.endsSwept()
	}
}

// largeLateRetries claims the pending deliveries one at a time, beside others.
func largeLateRetries(w *world) {
	const n = 9
	subs := w.many(n)
	sub := subs[n-1]
	for _, other := range subs[:n-1] {
		w.pause(other)
	}
	failed := w.draft("small.zero")
	w.publish(failed)
	w.expand()
	c := w.claimOne()
	large := w.draft(ofMany)
	later := []sender.Draft{w.draft("small.one"), w.draft("small.two"), w.draft("small.three")}
	w.publish(large)
	w.publish(later...)
	w.expandOnce(parts)
	w.Advance(time.Second)
	w.record(result(c, sender.ClassTimeout))
	w.Advance(time.Second)
	w.expandBy(parts)
	w.Advance(retryDelay(1))
	var got []string
	for range 2 * n {
		for _, c := range w.claim(1) {
			got = append(got, c.Event.ID)
			w.equal(c.Target.Subscription, sub, "subscription of what was claimed")
		}
	}
	w.equal(sortedIDs(got), sorted(append(later, large, failed)...), "events claimed, each once")
	w.check(slices.Index(got, large.ID) < slices.Index(got, later[0].ID), "a late delivery was claimed after those of later events: %v", got)
}

func sortedIDs(ids []string) []string { return slices.Sorted(slices.Values(ids)) }

func largeSkipped(w *world) {
	const n = 9
	subs := w.many(n)
	sub := subs[n-1]
	large, small := w.draft(ofMany), w.draft("small.one")
	w.publish(large)
	w.publish(small)
	w.expandOnce(parts)
	w.pause(sub)
	w.Advance(time.Second)
	since := w.now()
	kept := w.draft("small.two")
	w.publish(kept)
	w.resume(sub, sender.Resume{Since: since})
	w.expandBy(parts)
	w.endsSwept()
	w.equal(w.delivery(large.ID, sub).Status, sender.StatusCancelled, "status of a late delivery that a resume has skipped")
	w.equal(w.delivery(small.ID, sub).Status, sender.StatusCancelled, "status of one that it has skipped")
	for _, c := range w.claim(plenty) {
		if c.Target.Subscription == sub {
			w.equal(c.Event.ID, kept.ID, "event of what is claimed")
		}
	}
	w.check(w.delivery(kept.ID, sub).InFlight, "what a resume takes was not claimed")
}

func largeClosing(w *world) {
	const n = 9
	subs := w.many(n)
	sub := subs[n-1]
	large, small := w.draft(ofMany), w.draft("small.one")
	w.publish(large)
	w.publish(small)
	w.expandOnce(parts)
	w.close(sub)
	w.publish(w.draft("small.two"))
	w.record(resultsOf(w.claim(plenty), sender.ClassNone)...)
	w.endsSwept()
	w.equal(w.read(sub).Status, sender.SubscriptionClosing, "status while a large event is not whole")
	w.expandBy(parts)
	w.equal(w.events(sub), sorted(large, small), "events of a subscription that is closing")
	w.record(resultsOf(w.claim(plenty), sender.ClassNone)...)
	w.endsSwept()
	w.gone(sub, "once it has got the large event")
}
