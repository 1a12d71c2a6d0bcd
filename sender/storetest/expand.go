package storetest

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func expandRules() []rule {
	return []rule{
		{"in chunks", "An expansion that is bounded below the fan-out goes on in the middle of an event, and makes each delivery exactly once.", expandChunks},
		{"between chunks", "A subscription that is made or deleted between two chunks of an event gets no delivery in the later one; events that are published meanwhile get theirs.", expandBetween},
		{"by several at a time", "However many expand at a time, each delivery is made exactly once.", expandConcurrently},
		{"due at once", "A delivery is due as soon as it is made.", expandDue},
		{"in a step", "A step expands, then records and claims: what it expands can be claimed by it.", expandInStep},
		{"in a step that fails", "A step is one transaction: if it cannot record, it has expanded nothing either.", expandInStepThatFails},
		{"nothing to do", "Without committed events there is nothing to expand, and an event that nobody asked for is not expanded again.", expandNothing},
	}
}

func expandChunks(w *world) {
	const subscriptions, events, chunk = 17, 5, 4
	owner := w.subscriber()
	for range subscriptions {
		w.subscribe(owner, "*")
	}
	var drafts []sender.Draft
	for range events {
		drafts = append(drafts, w.draft("a.b"))
	}
	w.publish(drafts...)
	made := 0
	for more := true; more; {
		x, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 2, Deliveries: chunk}, dispatch.Batch{})
		w.noError(err, "expanding")
		w.check(x.Deliveries <= 2*chunk, "a call made %d deliveries, about %d were asked for", x.Deliveries, chunk)
		w.check(x.More || x.Deliveries+made == events*subscriptions, "More is not set after %d of %d deliveries", x.Deliveries+made, events*subscriptions)
		made += x.Deliveries
		w.check(made <= events*subscriptions, "%d deliveries were made, want %d", made, events*subscriptions)
		more = x.More
	}
	w.equal(made, events*subscriptions, "deliveries made")
	w.exactlyOnce(drafts, subscriptions)
}

// exactlyOnce ends the test unless each event has one delivery to each of a
// number of subscriptions.
func (w *world) exactlyOnce(drafts []sender.Draft, subscriptions int) {
	w.Helper()
	for _, d := range drafts {
		seen := map[string]bool{}
		for _, delivery := range w.list(history.DeliveryQuery{Event: d.ID}) {
			w.check(!seen[delivery.Subscription], "event %s has two deliveries to %s", d.ID, delivery.Subscription)
			seen[delivery.Subscription] = true
		}
		w.equal(len(seen), subscriptions, "deliveries of event %s", d.ID)
	}
	w.equal(len(w.list(history.DeliveryQuery{})), len(drafts)*subscriptions, "deliveries in all")
}

func expandBetween(w *world) {
	owner := w.subscriber()
	var subs []string
	for range 10 {
		subs = append(subs, w.subscribe(owner, "*"))
	}
	first, second := w.draft("a.b"), w.draft("a.b")
	w.publish(first)
	x, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 3}, dispatch.Batch{})
	w.noError(err, "expanding")
	w.check(x.More, "More is not set after %d of 10 deliveries", x.Deliveries)
	had := map[string]bool{}
	for _, d := range w.list(history.DeliveryQuery{Event: first.ID}) {
		had[d.Subscription] = true
	}
	w.equal(len(had), x.Deliveries, "deliveries listed")
	missing := slices.DeleteFunc(slices.Clone(subs), func(id string) bool { return had[id] })
	for _, id := range missing[1:] {
		w.unsubscribe(id)
	}
	young := w.subscribe(owner, "*")
	w.publish(second)
	w.expandBy(dispatch.ExpandParams{Events: 10, Deliveries: 3})
	w.equal(w.events(young), sorted(second), "events of the subscription made between the chunks")
	w.equal(len(w.list(history.DeliveryQuery{Event: first.ID})), len(had)+1, "deliveries of the event in whose middle subscriptions were deleted")
	w.equal(len(w.list(history.DeliveryQuery{Event: second.ID})), len(had)+2, "deliveries of the later event")
}

func expandConcurrently(w *world) {
	const subscriptions, events, expanders = 10, 40, 8
	owner := w.subscriber()
	for range subscriptions {
		w.subscribe(owner, "*")
	}
	var drafts []sender.Draft
	for range events {
		drafts = append(drafts, w.draft("a.b"))
	}
	w.publish(drafts...)
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	var wg sync.WaitGroup
	var made atomic.Int64
	for range expanders {
		wg.Go(func() {
			// A call that finds another one at work returns zero, so only
			// the count tells the end.
			for made.Load() < events*subscriptions && ctx.Err() == nil {
				x, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 3, Deliveries: 7}, dispatch.Batch{})
				if err != nil {
					w.Errorf("expanding: %v", err)
					stop()
				}
				made.Add(int64(x.Deliveries))
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	w.equal(made.Load()+int64(w.expand()), int64(events*subscriptions), "deliveries that the expanders say they made")
	w.exactlyOnce(drafts, subscriptions)
}

func expandDue(w *world) {
	w.subscribe(w.subscriber(), "*")
	w.publish(w.draft("a.b"), w.draft("a.b"))
	w.expand()
	w.equal(len(w.claim(plenty)), 2, "deliveries claimed, the clock not having moved")
}

func expandInStep(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	all := dispatch.ExpandParams{Events: 10, Deliveries: 10}
	var last []dispatch.Claimed
	for range 3 {
		d := w.draft("a.b")
		w.publish(d)
		b := dispatch.Batch{Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(plenty)}}
		for _, c := range last {
			b.Results = append(b.Results, result(c, sender.ClassNone))
		}
		x, c := w.dispatch(dispatch.ExpandParams{}, dispatch.Batch{Decide: w.decide, Claim: b.Claim})
		w.equal(x, dispatch.Expanded{}, "expansion by a step that is to expand nothing")
		w.equal(len(c.Claimed), 0, "deliveries claimed by a step that is to expand nothing")
		x, c = w.dispatch(all, b)
		w.equal(x, dispatch.Expanded{Events: 1, Deliveries: 1}, "expansion by a step")
		w.equal(len(c.Recorded), len(last), "results recorded by a step")
		w.check(len(last) == 0 || !c.Recorded[0].Lost, "a step has lost a result")
		w.equal(len(c.Claimed), 1, "deliveries claimed by a step")
		w.equal(c.Claimed[0].Event.ID, d.ID, "event of the delivery claimed by a step")
		last = c.Claimed
	}
	delivered := w.list(history.DeliveryQuery{Subscription: sub, Status: sender.StatusDelivered})
	w.equal(len(delivered), 2, "deliveries that are delivered")
}

func expandInStepThatFails(w *world) {
	w.subscribe(w.subscriber(), "*")
	w.publish(w.draft("a.b"))
	w.expand()
	claimed := w.claimOne()
	w.publish(w.draft("a.b"))
	failed := result(claimed, sender.ClassNone)
	_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{
		Results: []dispatch.Result{failed},
		Decide: func(dispatch.Live, sender.Health, dispatch.Result, time.Time) dispatch.Decision {
			return dispatch.Decision{Status: sender.StatusHeld}
		},
	})
	w.errorIs(err, sender.ErrInvalid, "recording under a decision that is none")
	w.equal(w.expand(), 1, "deliveries made by the expansion after it")
	w.record(failed)
}

// dispatch takes a step as a dispatcher does.
func (w *world) dispatch(p dispatch.ExpandParams, b dispatch.Batch) (dispatch.Expanded, dispatch.Claims) {
	w.Helper()
	x, c, err := w.Store.Step(w.ctx, p, b)
	w.noError(err, "a step")
	return x, c
}

func expandNothing(w *world) {
	x, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	w.noError(err, "expanding")
	w.equal(x, dispatch.Expanded{}, "expansion of an empty store")
	w.publish(w.draft("a.b"))
	w.equal(w.expand(), 0, "deliveries of an event that nobody asked for")
	w.subscribe(w.subscriber(), "*")
	x, _, err = w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	w.noError(err, "expanding")
	w.equal(x, dispatch.Expanded{}, "expansion after all was expanded")
}
