package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// boundedRules apply to stores whose Harness says BoundedWork.
func boundedRules() []rule {
	all := []rule{
		{"lists", "A list looks at history.MaxExamined candidates; a later call, with the cursor, returns the matches beyond them. A query with an event's id, or with a time minutes earlier, does not look at other events.", boundedLists},
		{"turns of subscribers", "If many subscribers have work, a claim gives a few of them turns with several deliveries each. All get their turns in the end.", boundedTurnsOfSubscribers},
		{"turns of subscriptions", "The same holds of many subscriptions of one subscriber.", boundedTurnsOfSubscriptions},
	}
	for i, r := range all {
		all[i].run = func(w *world) {
			if !w.BoundedWork {
				w.Log("NOT TESTED: the store does not bound its work")
				return
			}
			r.run(w)
		}
	}
	return all
}

func boundedLists(w *world) {
	owners, subs := w.crowd(2, 0)
	rare := w.addressed(owners[0], subs[0])
	rare.Type = "rare"
	w.publish(rare)
	w.Advance(time.Minute)
	later := w.now()
	w.Advance(time.Minute)
	for i, owner := range owners {
		w.backlog(owner, subs[i], history.MaxExamined/len(owners))
	}

	next := w.page(history.DeliveryQuery{EventType: "rare"}, 0)
	w.check(next != "", "a list of deliveries has no cursor where it stopped")
	next = w.page(history.DeliveryQuery{EventType: "rare", Cursor: next}, 1)
	w.equal(next, "", "cursor after the last delivery")
	next = w.eventPage(history.EventQuery{Type: "rare"}, 0)
	w.check(next != "", "a list of events has no cursor where it stopped")
	next = w.eventPage(history.EventQuery{Type: "rare", Cursor: next}, 1)
	w.equal(next, "", "cursor after the last event")

	w.equal(w.page(history.DeliveryQuery{EventType: "rare", Until: later}, 1), "", "cursor after the deliveries of a time")
	w.equal(w.eventPage(history.EventQuery{Type: "rare", Until: later}, 1), "", "cursor after the events of a time")
	w.equal(w.page(history.DeliveryQuery{EventType: "rare", Event: rare.ID}, 1), "", "cursor after the deliveries of an event")
	boundedNotices(w, owners[0], subs[0])
}

// boundedNotices looks for a notice beyond many others, by each index.
func boundedNotices(w *world, owner, sub string) {
	notices := []sender.Notice{{Kind: sender.NoticeNetwork, Subscriber: owner, Subscription: sub, CreatedAt: w.now()}}
	for range history.MaxExamined {
		notices = append(notices, sender.Notice{Kind: sender.NoticeDeadLettered, Subscriber: owner, Subscription: sub, CreatedAt: w.now()})
	}
	w.batch(dispatch.Batch{Decide: noticing, Notices: notices})
	for _, q := range []history.NoticeQuery{{}, {Unread: true}, {Subscriber: owner}, {Subscription: sub, Unread: true}} {
		q.Kind = sender.NoticeNetwork
		for _, want := range []int{0, 1} {
			page, next, err := w.Store.Notices(w.ctx, q)
			w.noError(err, "listing notices")
			w.equal(len(page), want, "notices of a kind in a page of %+v", q)
			w.check((next != "") == (want == 0), "a list of notices has the cursor %q after %d of %+v", next, want, q)
			q.Cursor = next
		}
	}
}

// page asks for one page of deliveries, and ends the test unless it has n of them.
func (w *world) page(q history.DeliveryQuery, n int) (next string) {
	w.Helper()
	page, next, err := w.Store.Deliveries(w.ctx, q)
	w.noError(err, "listing deliveries")
	w.equal(len(page), n, "deliveries that %+v lists", q)
	return next
}

// eventPage is page for events.
func (w *world) eventPage(q history.EventQuery, n int) (next string) {
	w.Helper()
	page, next, err := w.Store.Events(w.ctx, q)
	w.noError(err, "listing events")
	w.equal(len(page), n, "events that %+v lists", q)
	return next
}

func boundedTurnsOfSubscribers(w *world) { w.wholeTurns(100, 1) }

func boundedTurnsOfSubscriptions(w *world) { w.wholeTurns(1, 100) }

// wholeTurns ends the test unless turns are of several deliveries, also when recorded
// deliveries were due again.
func (w *world) wholeTurns(subscribers, each int) {
	const slots, due = 64, 40
	w.Helper()
	w.decide = dispatch.Policy{}.Decide
	var owners []string
	for range subscribers {
		owner := w.subscriber()
		for range each {
			w.subscribe(owner, "*")
		}
		owners = append(owners, owner)
	}
	var drafts []sender.Draft
	for range due {
		for _, owner := range owners {
			d := w.draft("a.b")
			d.Subscriber = owner
			drafts = append(drafts, d)
		}
	}
	for chunk := range slices.Chunk(drafts, 500) {
		w.publish(chunk...)
	}
	w.expand()

	var results []dispatch.Result
	seen := map[string]bool{}
	for range 16 {
		w.Advance(time.Millisecond)
		_, c, err := w.Store.Step(w.ctx, dispatch.ExpandParams{}, dispatch.Batch{
			Results: results, Decide: w.decide, Claim: dispatch.ClaimParams{Lease: lease, Token: w.token(), Lanes: lanes(slots)},
		})
		w.noError(err, "recording and claiming")
		w.check(len(c.Claimed) >= slots, "%d deliveries were claimed, with %d slots in a lane", len(c.Claimed), slots)
		of := map[string]bool{}
		results = nil
		for _, c := range c.Claimed {
			of[c.Target.Subscription], seen[c.Target.Subscription] = true, true
			results = append(results, result(c, sender.ClassNone))
		}
		w.check(2*len(of) <= len(c.Claimed), "%d deliveries of %d subscriptions were claimed: a turn is more than one", len(c.Claimed), len(of))
	}
	w.equal(len(seen), subscribers*each, "subscriptions that had turns")
}
