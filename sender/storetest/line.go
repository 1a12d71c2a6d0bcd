package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

func lineRules() []rule {
	return append(lineExpireRules(), []rule{
		{"in order", "Under the order of objects a version is claimed only when each earlier one of its object has ended; other objects do not wait.", lineInOrder},
		{"in order, among others", "What comes out of a line goes to its own place among the deliveries of other objects, is due since it was made, and counts once.", lineAmongOthers},
		{"beside others", "What comes out of a line is claimed in the order of the events with what is pending besides, however little of that is claimed at a time.", lineBeside},
		{"a dead letter", "Under the order of objects a dead letter lets the later versions of its object go on.", lineDead},
		{"bounds", "A decision is told the bounds of the order of objects, and of no other.", lineBounds},
		{"a dead letter that holds", "With HoldDead a dead letter holds back the later versions of its object, those that come later too, until it is redelivered and has ended, or passed over; that is refused if the next version was published before NotBefore.", lineHolds},
		{"a dead letter that holds no more", "A dead letter holds nothing back once a sweep has found it pruned, or its subscription closing, or without HoldDead.", lineHoldsNoMore},
		{"sent again", "A version that is sent again goes before later ones that are not in flight, and waits for those that are.", lineSentAgain},
		{"sent again, beside another line", "When deliveries end in one step, the next of each of their lines comes out, whether it was sent again or never claimed.", lineSentAgainBeside},
		{"replayed", "What a replay admits in one step keeps the order of its objects, and lets go on what it has held back as dead letters.", lineReplayed},
		{"replayed, with a fresh one behind", "What a replay has admitted goes after all else only while nothing waits for it: a later version of its object does not wait for the deliveries of other objects.", lineRank},
		{"lost and released", "A version whose attempt was lost, or was released, still goes before later ones.", lineLost},
		{"resumed", "A resume skips what waits behind others as it skips the rest, and what it takes stays in order.", lineResumed},
		{"ended otherwise", "A redaction, or the end of the subscription, ends what waits behind others.", lineEnded},
		{"redacted in flight", "What comes after a version that was redacted while it was in flight waits for the end of that attempt.", lineRedacted},
		{"reads", "A delivery that waits behind another is pending, counts in the backlog, and says what it waits for.", lineReads},
		{"latest", "Under the latest order a newer version ends the earlier ones of its object that are not in flight, as superseded; one in flight goes on to its end.", lineLatest},
		{"latest, failed", "Under the latest order an attempt that fails, is lost or is given back, and has a newer version behind it, ends as superseded.", lineLatestFailed},
		{"latest, in one step", "Under the latest order a version whose attempt has failed is superseded by one that is made in the same step.", lineLatestInOneStep},
		{"latest, of a replay", "What was delivered, is sent again and superseded by a version that is made in a step that records, has left the sets of replays.", lineLatestLeavesSet},
		{"latest, held", "A held backlog of the latest order is bounded by its objects.", lineLatestHeld},
		{"latest, sent again", "What is superseded can be redelivered and replayed, and is superseded again if a newer version waits.", lineLatestAgain},
		{"another order", "A change of the order is for what is expanded from then on; what waits behind others still comes to its end.", lineChanged},
		{"settings that cannot be read", "What is expanded while the settings of a subscription cannot be read keeps the order of its objects.", lineUnreadable},
		{"changed to the latest", "Under the latest order nothing but the newest version comes out of a line, and ends those before it, which came under another order; dead letters among them hold nothing back, and stay as they are.", lineChangedToLatest},
		{"cancelled, not superseded", "What is cancelled while it waits for others stays cancelled, also if its subscription has come to want the latest alone.", lineCancelled},
		{"skipped in part", "What a resume skips is cancelled, also if a newer version is taken and its subscription has come to want the latest alone.", lineSkippedInPart},
		{"changed to the latest, long", "However many versions wait in a line when the order becomes the latest, none of them is claimed once the newest was, however that comes to overtake them, and sweeps end them all.", lineLatestLong},
		{"superseded, pruned", "The records of superseded deliveries are pruned as those of cancelled ones.", linePruned},
	}...)
}

// ordered registers a subscription with an order.
func (w *world) ordered(set sender.Settings) (owner, sub string) {
	w.Helper()
	owner = w.subscriber()
	s := w.subscription(owner, "only.addressed")
	s.Settings = set
	w.inTx(func(tx any) error { return w.Store.CreateSubscriptionTx(w.ctx, tx, s) })
	return owner, s.ID
}

// versions publishes and expands events about objects to a subscription.
func (w *world) versions(owner, sub string, objects ...string) (events []string) {
	w.Helper()
	var drafts []sender.Draft
	for _, id := range objects {
		d := w.draftOn("a.b", sender.Object{Type: "thing", ID: id})
		d.Subscriber, d.Subscription = owner, sub
		drafts = append(drafts, d)
		events = append(events, d.ID)
	}
	w.publish(drafts...)
	w.expand()
	return events
}

// claims claims all that is due, and ends the test unless it is of these events.
func (w *world) claims(when string, events ...string) []dispatch.Claimed {
	w.Helper()
	claimed, ids := w.claimedEvents()
	w.equal(len(ids), len(events), "deliveries claimed, %s", when)
	want := map[string]bool{}
	for _, id := range events {
		want[id] = true
	}
	for _, id := range ids {
		w.check(want[id], "%s: a delivery of event %s was claimed, want %v", when, id, events)
	}
	return claimed
}

// die fails an attempt whose delivery is dead-lettered by that.
func (w *world) die(c dispatch.Claimed) {
	w.Helper()
	before := w.decide
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		d := before(l, h, r, now)
		d.Status = sender.StatusDeadLettered
		return d
	}
	w.record(result(c, sender.ClassStatus))
	w.decide = before
}

func (w *world) status(event, sub string, want sender.Status, when string) {
	w.Helper()
	w.equal(w.delivery(event, sub).Status, want, "status of %s, %s", event, when)
}

var byObject = sender.Settings{Order: sender.OrderObject}

func lineInOrder(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "b", "a")
	e = append(e, w.versions(owner, sub, "b", "c c", "a")...) // 4: b, 5: c, 6: a
	first := w.claims("at first", e[0], e[2], e[5])
	by := func(claimed []dispatch.Claimed, event string) dispatch.Claimed {
		for _, c := range claimed {
			if c.Event.ID == event {
				return c
			}
		}
		w.Fatalf("event %s was not claimed", event)
		return dispatch.Claimed{}
	}
	w.record(result(by(first, e[0]), sender.ClassStatus), result(by(first, e[2]), sender.ClassNone))
	w.record(result(w.claims("after a failure of a and a success of b", e[4])[0], sender.ClassNone), result(by(first, e[5]), sender.ClassNone))
	w.claimNothing("while a version of a waits for its retry")
	w.equal(w.read(sub).Backlog, int64(4), "Backlog")
	w.Advance(retryDelay(1))
	for _, next := range []int{0, 1, 3, 6} {
		w.record(result(w.claims("in order", e[next])[0], sender.ClassNone))
	}
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 7}, "statuses at the end")
	w.equal(w.read(sub).Backlog, int64(0), "Backlog at the end")
	if w.Settled != nil {
		w.Settled(w.T)
	}
}

func lineDead(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "a")
	w.die(w.claims("at first", e[0])[0])
	w.record(result(w.claims("after a dead letter", e[1])[0], sender.ClassNone))
	w.record(result(w.claims("after a success", e[2])[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDeadLettered: 1, sender.StatusDelivered: 2}, "statuses at the end")
}

func lineBounds(w *world) {
	live := w.watch()
	for _, set := range []sender.Settings{{Order: sender.OrderObject, HoldTries: 3, HoldFor: time.Hour}, {}, {Order: sender.OrderLatest}} {
		owner, sub := w.ordered(set)
		e := w.versions(owner, sub, "a")
		w.record(result(w.claims("at first", e...)[0], sender.ClassNone))
		w.equal([]any{live.HoldTries, live.HoldFor}, []any{set.HoldTries, set.HoldFor}, "bounds at the decision, order %q", set.Order)
	}
}

func lineUnreadable(w *world) {
	for _, set := range []sender.Settings{byObject, {Order: sender.OrderLatest}} {
		owner, sub := w.ordered(set)
		w.set(sub, sender.ReadSettings([]byte(`[]`)))
		e := w.versions(owner, sub, "a", "a")
		w.set(sub, set)
		w.record(result(w.claims("of order "+string(set.Order), e[0])[0], sender.ClassNone))
		w.record(result(w.claims("after its success", e[1])[0], sender.ClassNone))
	}
}

var holding = sender.Settings{Order: sender.OrderObject, HoldDead: true}

func lineHolds(w *world) {
	owner, sub := w.ordered(holding)
	e := w.versions(owner, sub, "a", "a")
	dead := w.delivery(e[0], sub).ID
	w.errorIs(w.Store.PassOver(w.ctx, dead, time.Time{}), sender.ErrStatus, "passing over what is not dead")
	w.errorIs(w.Store.PassOver(w.ctx, "dlv_none_1", time.Time{}), sender.ErrNotFound, "passing over what is not there")
	w.die(w.claims("at first", e[0])[0])
	w.claimNothing("behind a dead letter")
	w.check(w.facts(e[0], sub).HoldsBack, "a dead letter does not say that it holds others back")
	f := w.facts(e[1], sub)
	w.equal([]any{f.Behind, f.BehindDead, f.Delivery.Status, f.Delivery.NextAttemptAt.IsZero()}, []any{dead, true, sender.StatusPending, true}, "what the next version waits for")
	w.redeliver(dead)
	again := w.claims("after the redelivery", e[0])[0]
	w.record(result(again, sender.ClassStatus))
	w.Advance(retryDelay(1))
	w.die(w.claims("the retry", e[0])[0])
	w.claimNothing("behind a dead letter that died again")
	w.redeliver(dead)
	w.record(result(w.claims("after another redelivery", e[0])[0], sender.ClassNone))
	w.die(w.claims("after its success", e[1])[0])

	// Nothing is behind it yet.
	e = append(e, w.versions(owner, sub, "a", "b")...)
	w.record(result(w.claims("of another object", e[3])[0], sender.ClassNone))
	dead, published := w.delivery(e[1], sub).ID, w.delivery(e[2], sub).CreatedAt
	w.errorIs(w.Store.PassOver(w.ctx, dead, published.Add(time.Microsecond)), sender.ErrRetention, "letting go on what is too old")
	w.claimNothing("behind a dead letter that was not passed over")
	w.noError(w.Store.PassOver(w.ctx, dead, published), "passing over a dead letter")
	w.errorIs(w.Store.PassOver(w.ctx, dead, time.Time{}), sender.ErrStatus, "passing over it again")
	w.status(e[1], sub, sender.StatusDeadLettered, "passed over")
	w.check(!w.facts(e[1], sub).HoldsBack, "a dead letter that was passed over says that it holds others back")
	w.record(result(w.claims("after it was passed over", e[2])[0], sender.ClassNone))
	w.redeliver(w.delivery(e[1], sub).ID)
	w.record(result(w.claims("what was passed over, redelivered", e[1])[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 4}, "statuses at the end")
}

func lineHoldsNoMore(w *world) {
	for name, free := range w.freeing() {
		owner, sub := w.ordered(holding)
		e := w.versions(owner, sub, "a", "a")
		w.die(w.claims("at first, "+name, e[0])[0])
		w.sweep(plenty)
		w.claimNothing("behind a dead letter that was not freed, %s", name)
		free(sub)
		w.sweep(plenty)
		w.record(result(w.claims("after the sweep, "+name, e[1])[0], sender.ClassNone))
		if name == "closing" {
			w.endsSwept()
			w.gone(sub, "at its end")
		}
	}
}

func lineSentAgain(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "a")
	w.die(w.claims("at first", e[0])[0])
	dead := w.delivery(e[0], sub).ID
	w.redeliver(dead)
	w.redeliver(dead) // it is live now
	w.die(w.claims("the earlier one, though the later one was due before", e[0])[0])
	second := w.claims("the later one", e[1])[0]
	w.redeliver(dead)
	w.claimNothing("while the later one is in flight")
	w.equal(w.facts(e[0], sub).Behind, w.delivery(e[1], sub).ID, "what it waits for")
	w.record(result(second, sender.ClassStatus))
	w.die(w.claims("the earlier one, as the later one failed", e[0])[0])
	w.claimNothing("before the retry of the later one")
	w.Advance(retryDelay(1))
	second = w.claims("the retry", e[1])[0]
	w.equal(second.Number, 2, "number of the retry")
	w.redeliver(dead)
	w.record(result(second, sender.ClassNone))
	w.record(result(w.claims("the earlier one, as the later one has ended", e[0])[0], sender.ClassNone))
	third := w.claims("the last one", e[2])[0]

	// A single attempt of one that was delivered keeps the order too, and so does a replay.
	w.redeliver(w.delivery(e[1], sub).ID)
	w.replay(replay.Filter{Status: sender.StatusDelivered, Subscription: sub})
	w.steps(plenty)
	w.claimNothing("while the last one is in flight, again")
	w.equal(w.read(sub).Backlog, int64(3), "Backlog")
	w.record(result(third, sender.ClassNone))
	w.record(result(w.claims("the first one, replayed", e[0])[0], sender.ClassNone))
	w.record(result(w.claims("the second one, redelivered", e[1])[0], sender.ClassStatus))
	w.claimNothing("at the end")
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 3}, "statuses at the end")
}

func lineReplayed(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "b", "a", "a", "b")
	other, held := w.ordered(holding)
	h := w.versions(other, held, "a", "a", "b")
	for range 3 {
		for _, c := range w.claim(plenty) {
			w.die(c)
		}
	}
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDeadLettered: 5}, "statuses before the replay")
	w.equal(w.statuses(held), map[sender.Status]int{sender.StatusDeadLettered: 2, sender.StatusPending: 1}, "statuses before the replay, where dead letters hold")
	w.replay(replay.Filter{})
	w.equal(w.step(plenty).Admitted, 7, "admitted")
	for _, events := range [][]string{{e[0], e[1], h[0], h[2]}, {e[2], e[4], h[1]}, {e[3]}} {
		for _, c := range w.claims("in order", events...) {
			w.record(result(c, sender.ClassNone))
		}
	}
	w.claimNothing("at the end")
}

func lineLost(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a")
	w.claims("at first", e[0])
	w.Advance(lease + time.Second)
	again := w.claims("once its lease has ended", e[0])
	w.equal(again[0].Number, 2, "number")
	w.giveBack(again...)
	again = w.claims("once it was released", e[0])
	w.record(result(again[0], sender.ClassNone))
	w.claims("then", e[1])

	w.redeliver(w.delivery(e[0], sub).ID)
	w.claimNothing("while the later one is in flight")
	w.Advance(lease + time.Second)
	again = w.claims("the earlier one, as the later one is lost", e[0])
	w.claimNothing("while the earlier one is in flight")
	w.record(result(again[0], sender.ClassNone))
	w.record(result(w.claims("at last", e[1])[0], sender.ClassNone))
}

func lineResumed(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "a", "b")
	flying := w.claims("at first", e[0], e[3])
	w.record(result(flying[0], sender.ClassStatus), result(flying[1], sender.ClassStatus))
	w.pause(sub)
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusHeld: 4}, "statuses while it is paused")
	w.resume(sub, takeAll)
	for _, c := range w.claims("after a resume that takes all", e[0], e[3]) {
		w.record(result(c, sender.ClassNone))
	}
	w.record(result(w.claims("after that", e[1])[0], sender.ClassStatus))

	w.pause(sub)
	w.Advance(time.Second)
	since := w.now()
	e = append(e, w.versions(owner, sub, "a", "b")...)
	w.resume(sub, sender.Resume{Since: since})
	w.status(e[2], sub, sender.StatusCancelled, "after a resume since a time")
	w.endsSwept()
	for _, c := range w.claims("after a resume since a time", e[4], e[5]) {
		w.record(result(c, sender.ClassNone))
	}

	e = w.versions(owner, sub, "a", "a", "a")
	flying = w.claims("in flight at a resume", e[0])
	w.pause(sub)
	w.resume(sub, takeNone)
	later := w.versions(owner, sub, "a")
	w.claimNothing("while one that the resume has skipped is in flight")
	w.record(result(flying[0], sender.ClassStatus))
	w.endsSwept()
	w.record(result(w.claims("what came after the resume", later[0])[0], sender.ClassNone))

	e = w.versions(owner, sub, "a", "a", "a")
	w.record(result(w.claims("the first of three", e[0])[0], sender.ClassNone))
	flying = w.claims("the second of three", e[1])
	w.pause(sub)
	w.resume(sub, takeNone)
	w.redeliver(w.delivery(e[0], sub).ID)
	w.endsSwept()
	w.claimNothing("when the third has ended, while the second is in flight")
	w.record(result(flying[0], sender.ClassNone))
	w.record(result(w.claims("the first of three again", e[0])[0], sender.ClassNone))

	e = w.versions(owner, sub, "a", "a")
	w.record(result(w.claims("the first of two", e[0])[0], sender.ClassNone))
	w.record(result(w.claims("the second of two", e[1])[0], sender.ClassStatus))
	w.redeliver(w.delivery(e[0], sub).ID)
	w.pause(sub)
	w.resume(sub, takeAll)
	w.record(result(w.claims("one that was sent again before the resume", e[0])[0], sender.ClassNone))
	w.record(result(w.claims("one that gave way to it, and waited for a retry", e[1])[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 9, sender.StatusCancelled: 6}, "statuses at the end")
	w.equal(w.read(sub).Backlog, int64(0), "Backlog at the end")

	// A delivery that comes out is due, even if a resume has skipped all other pending ones.
	owner, sub = w.ordered(byObject)
	e = w.versions(owner, sub, "a", "b")
	flying = w.claim(1)
	w.equal(eventsOf(flying), e[:1], "the first")
	w.Advance(time.Second)
	since = w.now()
	e = append(e, w.versions(owner, sub, "a")...)
	w.pause(sub)
	w.resume(sub, sender.Resume{Since: since})
	w.claimNothing("while the first is in flight, and b was skipped")
	w.record(result(flying[0], sender.ClassNone))
	w.record(result(w.claims("what came out, with one that was skipped", e[2])[0], sender.ClassNone))
	w.endsSwept()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 2, sender.StatusCancelled: 1}, "statuses at the end")
}

func lineEnded(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "b", "b")
	var a dispatch.Claimed
	for _, c := range w.claims("at first", e[0], e[2]) {
		if c.Event.ID == e[0] {
			a = c
		} else {
			w.giveBack(c)
		}
	}
	redacted := w.redact(history.RedactParams{Object: sender.Object{Type: "thing", ID: "b"}, Limit: 10})
	w.equal(redacted.Deliveries, 2, "deliveries that the redaction has cancelled")
	w.claimNothing("after the redaction")
	later := w.versions(owner, sub, "b")
	w.record(result(w.claims("after the redaction", later[0])[0], sender.ClassNone))
	w.unsubscribe(sub)
	w.status(e[1], sub, sender.StatusCancelled, "after the end of its subscription")
	w.endsSwept()
	w.record(result(a, sender.ClassStatus))
	w.endsSwept()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDelivered: 1, sender.StatusCancelled: 4}, "statuses at the end")
	counts, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	w.equal([]int64{counts.Live, counts.Held}, []int64{0, 0}, "live and held ones")
}

func lineRedacted(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a")
	first := w.claims("at first", e[0])[0]
	w.redact(history.RedactParams{Object: sender.Object{Type: "thing", ID: "a"}, Limit: 10})
	w.status(e[1], sub, sender.StatusCancelled, "after the redaction")
	e = append(e, w.versions(owner, sub, "a")...)
	w.claimNothing("while the first version is in flight")
	w.record(result(first, sender.ClassStatus))
	w.status(e[0], sub, sender.StatusCancelled, "at the end of its attempt")
	w.claims("after it", e[2])
}

func lineReads(w *world) {
	owner, sub := w.ordered(byObject)
	e := w.versions(owner, sub, "a", "a", "b")
	first := w.delivery(e[0], sub)
	f := w.facts(e[1], sub)
	w.equal([]any{f.Behind, f.BehindDead, f.Ahead}, []any{first.ID, false, 0}, "what the second version waits for")
	w.check(f.Delivery.NextAttemptAt.IsZero(), "one that waits behind another has a time of its next attempt")
	w.equal(w.facts(e[2], sub).Behind, "", "what another object waits for")
	w.equal(len(w.list(history.DeliveryQuery{Status: sender.StatusPending})), 3, "pending deliveries")
	w.equal(len(w.list(history.DeliveryQuery{Status: sender.StatusPending, Subscription: sub})), 3, "pending deliveries of the subscription")
	w.equal(len(w.list(history.DeliveryQuery{Event: e[1]})), 1, "deliveries of the event")
	counts, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	w.equal([]int64{counts.Live, counts.Lanes[sender.LaneNew].Live}, []int64{3, 3}, "live deliveries")
	w.pause(sub)
	counts, err = w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	w.equal([]int64{counts.Live, counts.Held}, []int64{0, 3}, "live and held deliveries of a paused subscription")
	w.equal(len(w.list(history.DeliveryQuery{Status: sender.StatusHeld})), 3, "held deliveries")
}

var latest = sender.Settings{Order: sender.OrderLatest}

func linePruned(w *world) {
	owner, sub := w.ordered(latest)
	e := w.versions(owner, sub, "a", "a")
	id := w.delivery(e[0], sub).ID
	w.Advance(time.Hour)
	at := w.now()
	w.pruneBy(dispatch.PruneParams{Delivered: at.Add(-2 * time.Hour), Events: at, Limit: 1})
	w.status(e[0], sub, sender.StatusSuperseded, "before its time")
	w.pruneBy(dispatch.PruneParams{Delivered: at, Limit: 1})
	w.pruned(id)
	w.record(result(w.claims("the newer one", e[1])[0], sender.ClassNone))
}
