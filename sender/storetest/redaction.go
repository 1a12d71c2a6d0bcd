package storetest

import (
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func redactionRules() []rule {
	return append([]rule{
		{"of an object", "The bodies of the events about an object go, and the snippets and headers of their attempts; all else of them stays, and so do other events.", redactObject},
		{"of a subscriber", "The bodies of the events that are addressed to a subscriber go, also once it is deleted; those of others and of everyone's stay.", redactSubscriber},
		{"live ones are cancelled", "Live deliveries of a redacted event read as cancelled from the commit on, held ones too, and are not claimed, nor once they are resumed.", redactLive},
		{"in flight", "An attempt that was in flight at the redaction is recorded without a snippet and headers: it delivers its delivery if it succeeds, and else leaves it cancelled.", redactInFlight},
		{"redeliver", "No delivery of a redacted event is sent again: ErrRedacted, or ErrCancelled if it is cancelled. What it is, it stays.", redactRedeliver},
		{"delivered, to be sent again", "One that was delivered, and was to be sent again, stays delivered and is not sent.", redactSentAgain},
		{"not expanded", "An event that was redacted before it was expanded, or in the middle of it, gets no more deliveries.", redactUnexpanded},
		{"in batches", "A redaction goes on where the last batch ended; what is committed after its beginning does not count; another finds nothing.", redactBatches},
		{"refused", "A subscriber that never was is ErrNotFound, a malformed cursor and a limit below 1 ErrInvalid.", redactRefused},
		{"pruned", "Redacted events are pruned like all others.", redactPruned},
	}, redactReadsRules()...)
}

// redact redacts until no event remains.
func (w *world) redact(p history.RedactParams) (sum history.Redacted) {
	w.Helper()
	p.Limit = 3
	for range plenty {
		got, err := w.Store.Redact(w.ctx, p)
		w.noError(err, "redacting")
		w.check(got.Events <= p.Limit, "a batch of up to %d events has redacted %d", p.Limit, got.Events)
		sum.Events += got.Events
		sum.Deliveries += got.Deliveries
		if got.Cursor == "" {
			return sum
		}
		p.Cursor = got.Cursor
	}
	w.Fatal("redacting does not come to an end")
	return sum
}

// redacted is a delivery as it should read once its event is redacted.
func redacted(d sender.Delivery) sender.Delivery {
	d.Redacted, d.Body = true, nil
	attempts := d.Attempts
	d.Attempts = nil
	for _, a := range attempts {
		a.Snippet, a.Headers = nil, ""
		d.Attempts = append(d.Attempts, a)
	}
	return d
}

// reads ends the test unless two deliveries are equal, where nil and empty bytes are
// the same.
func (w *world) reads(want sender.Delivery, when string) {
	w.Helper()
	got := w.get(want.ID)
	w.equal(got.Redacted, want.Redacted, "%s: Redacted of %s", when, want.ID)
	if want.Redacted {
		w.check(got.Body == nil, "%s: %s has a body", when, want.ID)
		for _, a := range got.Attempts {
			w.check(len(a.Snippet) == 0 && a.Headers == "", "%s: %s has a snippet or headers", when, want.ID)
		}
		got = redacted(got)
	}
	w.equal(got, want, "%s: a delivery", when)
	for _, listed := range w.list(history.DeliveryQuery{Event: want.Event.ID, Subscription: want.Subscription}) {
		w.equal(listed.Redacted, want.Redacted, "%s: Redacted of %s in a list", when, want.ID)
	}
}

func redactObject(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	obj := sender.Object{Type: "person", ID: "1"}
	var about []sender.Draft
	for _, o := range []sender.Object{obj, {Type: "person", ID: "12"}, obj, {Type: "thing", ID: "1"}} {
		about = append(about, w.draftOn("a.b", o))
	}
	w.publish(about...)
	w.expand()
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassStatus))
	}
	w.Advance(retryDelay(1))
	for _, c := range w.claim(plenty) {
		r := result(c, sender.ClassNone)
		r.Headers = headers
		w.record(r)
	}
	var want []sender.Delivery
	for _, d := range about {
		before := w.delivery(d.ID, sub)
		w.check(!before.Redacted && len(before.Attempts[0].Snippet) > 0, "a delivery reads as redacted before it is, or has no snippet")
		w.equal([]sender.Headers{before.Attempts[0].Headers, before.Attempts[1].Headers}, []sender.Headers{headers, headers}, "headers")
		if d.Object == obj {
			before = redacted(before)
		}
		want = append(want, before)
	}
	w.equal(w.redact(history.RedactParams{Object: obj}), history.Redacted{Events: 2}, "redacted")
	for _, d := range want {
		w.reads(d, "after a redaction of the object of some")
	}
	w.equal(w.publish(w.draftOn("a.b", obj))[0].Version, int64(3), "version of the next event of the object")
	w.equal(w.redact(history.RedactParams{Object: sender.Object{Type: "person", ID: "unknown"}}), history.Redacted{}, "redacted of an object that never was")
}

func redactSubscriber(w *world) {
	one, other := w.subscriber(), w.subscriber()
	subs := []string{w.subscribe(one, "*"), w.subscribe(other, "*")}
	for _, to := range []string{one, other, ""} {
		d := w.draft("a.b")
		d.Subscriber = to
		w.publish(d)
	}
	only := w.addressed(one, subs[0])
	w.publish(only)
	w.expand()
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	w.inTx(func(tx any) error { return w.Store.DeleteSubscriberTx(w.ctx, tx, one) })
	w.equal(w.redact(history.RedactParams{Subscriber: one}), history.Redacted{Events: 2}, "redacted")
	n := map[bool]int{}
	for _, d := range w.list(history.DeliveryQuery{}) {
		n[d.Redacted]++
		w.equal(w.get(d.ID).Body == nil, d.Redacted, "whether a redacted delivery has no body")
	}
	w.equal(n, map[bool]int{true: 2, false: 3}, "deliveries by Redacted")
}

func redactLive(w *world) {
	owner := w.subscriber()
	obj := sender.Object{Type: "person", ID: "1"}
	active, held := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	first := w.draftOn("a.b", obj)
	w.publish(first)
	w.expand()
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassTimeout))
	}
	w.pause(held)
	second, other := w.draftOn("a.b", obj), w.draft("a.b")
	w.publish(second, other)
	w.expand()
	w.equal(w.redact(history.RedactParams{Object: obj}), history.Redacted{Events: 2, Deliveries: 4}, "redacted")
	for _, d := range []sender.Draft{first, second} {
		for _, sub := range []string{active, held} {
			read := w.delivery(d.ID, sub)
			w.equal([]any{read.Status, read.NextAttemptAt.IsZero(), read.InFlight, read.Redacted}, []any{sender.StatusCancelled, true, false, true}, "status, no next attempt, in flight and redacted of a delivery of %s", d.ID)
		}
	}
	w.resume(held, sender.Resume{})
	w.Advance(retryDelay(maxTries))
	for _, c := range w.claimsOf(map[string]int{active: 1, held: 1}, "after a redaction") {
		w.equal(c.Event.ID, other.ID, "event claimed")
		w.record(result(c, sender.ClassNone))
	}
	w.equal([]int64{w.read(active).Backlog, w.read(held).Backlog}, []int64{0, 0}, "backlogs")
}

func redactInFlight(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	obj := sender.Object{Type: "person", ID: "1"}
	w.publish(w.draftOn("a.b", obj), w.draftOn("a.b", obj), w.draftOn("a.b", obj), w.draftOn("a.b", obj))
	w.expand()
	claimed := w.claim(plenty)
	w.check(len(claimed[0].Body) > 0, "no body")
	w.equal(w.redact(history.RedactParams{Object: obj}), history.Redacted{Events: 4}, "redacted, with all deliveries in flight")
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: claimed[3].Key, Token: claimed[3].Token}}), "releasing")
	w.claimNothing("after a redacted delivery was released")
	succeeded := result(claimed[0], sender.ClassNone)
	succeeded.Headers = headers
	w.record(succeeded, result(claimed[1], sender.ClassStatus))
	for i, want := range []sender.Status{sender.StatusDelivered, sender.StatusCancelled, sender.StatusCancelled, sender.StatusCancelled} {
		d := w.delivery(claimed[i].Event.ID, sub)
		w.equal(d.Status, want, "status of delivery %d", i+1)
		for _, a := range d.Attempts {
			w.check(len(a.Snippet) == 0 && a.Headers == "", "an attempt that was in flight at the redaction has a snippet or headers")
		}
	}
	w.Advance(lease + time.Hour)
	counts, err := w.Store.Counts(w.ctx)
	w.noError(err, "counting")
	w.check(counts.OldestDue.IsZero(), "a redacted delivery is due since %v, after its lease has ended", counts.OldestDue)
	w.claimNothing("after the leases of redacted deliveries have ended")
	w.sweep(10)
	w.claimNothing("after a sweep")
	w.equal(w.delivery(claimed[2].Event.ID, sub).AttemptCount, 1, "attempts of the one that was lost")
	w.equal(w.read(sub).Backlog, int64(0), "backlog")
}

func redactRedeliver(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	obj := sender.Object{Type: "person", ID: "1"}
	w.publish(w.draftOn("a.b", obj), w.draftOn("a.b", obj), w.draftOn("a.b", obj))
	w.expand()
	claimed := w.claim(plenty)
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		if dec.Status == sender.StatusAwaitingRetry {
			dec = dispatch.Decision{Status: sender.StatusDeadLettered, Health: h}
		}
		return dec
	}
	w.record(result(claimed[0], sender.ClassNone), result(claimed[1], sender.ClassStatus))
	w.noError(w.Store.Release(w.ctx, []dispatch.Release{{Key: claimed[2].Key, Token: claimed[2].Token}}), "releasing")
	w.redact(history.RedactParams{Object: obj})
	for i, c := range []struct {
		status  sender.Status
		refusal error
	}{{sender.StatusDelivered, sender.ErrRedacted}, {sender.StatusDeadLettered, sender.ErrRedacted}, {sender.StatusCancelled, sender.ErrCancelled}} {
		id := w.delivery(claimed[i].Event.ID, sub).ID
		w.errorIs(w.Store.Redeliver(w.ctx, id, time.Time{}), c.refusal, "redelivering what is %s and redacted", c.status)
		w.equal(w.get(id).Status, c.status, "status")
	}
	w.claimNothing("after a redaction")
	w.equal(w.read(sub).DeadLettered, int64(1), "dead letters that the subscription counts")
}

func redactSentAgain(w *world) {
	d, sub := w.one()
	w.record(result(w.claimOne(), sender.ClassNone))
	id := w.delivery(d.ID, sub).ID
	w.redeliver(id)
	w.redact(history.RedactParams{Object: d.Object})
	w.equal(w.get(id).Status, sender.StatusDelivered, "status")
	w.Advance(time.Hour)
	w.claimNothing("after a redaction")
	w.equal([]any{w.get(id).Status, w.get(id).AttemptCount}, []any{sender.StatusDelivered, 1}, "status and attempts")
}

func redactUnexpanded(w *world) {
	owner := w.subscriber()
	w.subscribe(owner, "*")
	w.subscribe(owner, "*")
	obj := sender.Object{Type: "person", ID: "1"}
	half, whole, other := w.draftOn("a.b", obj), w.draftOn("a.b", obj), w.draft("a.b")
	w.publish(half, whole, other)
	_, _, err := w.Store.Step(w.ctx, dispatch.ExpandParams{Events: 1, Deliveries: 1}, dispatch.Batch{})
	w.noError(err, "expanding half of an event")
	w.equal(w.redact(history.RedactParams{Object: obj}).Events, 2, "events redacted")
	w.expand()
	for _, c := range w.claim(plenty) {
		w.equal(c.Event.ID, other.ID, "event claimed")
	}
	for _, d := range w.list(history.DeliveryQuery{}) {
		w.check(d.Event.ID == other.ID || d.Status == sender.StatusCancelled && d.Event.ID == half.ID, "a redacted event has a delivery that is %s", d.Status)
	}
	w.equal(len(w.list(history.DeliveryQuery{Event: other.ID})), 2, "deliveries of the other event")
}

func redactBatches(w *world) {
	obj := sender.Object{Type: "person", ID: "1"}
	sub := w.subscribe(w.subscriber(), "*")
	w.publish(w.draftOn("a.b", obj), w.draft("a.b"), w.draftOn("a.b", obj), w.draftOn("a.b", obj))
	p := history.RedactParams{Object: obj, Limit: 2}
	first, err := w.Store.Redact(w.ctx, p)
	w.noError(err, "redacting")
	w.check(first.Events == 2 && first.Cursor != "", "a batch of two of three events: %+v", first)
	later := w.draftOn("a.b", obj)
	w.publish(later)
	p.Cursor = first.Cursor
	second, err := w.Store.Redact(w.ctx, p)
	w.noError(err, "redacting")
	w.equal(second, history.Redacted{Events: 1}, "second batch")
	w.expand()
	w.check(!w.delivery(later.ID, sub).Redacted, "what was committed after a redaction began is redacted")
	w.equal(w.redact(history.RedactParams{Object: obj}), history.Redacted{Events: 1, Deliveries: 1}, "redacted by another")
	w.equal(w.redact(history.RedactParams{Object: obj}), history.Redacted{}, "redacted by a third")
}

func redactRefused(w *world) {
	owner := w.subscriber()
	_, err := w.Store.Redact(w.ctx, history.RedactParams{Subscriber: "sub_unknown", Limit: 1})
	w.errorIs(err, sender.ErrNotFound, "redacting what is addressed to nobody")
	for _, p := range []history.RedactParams{{Subscriber: owner}, {Subscriber: owner, Limit: 1, Cursor: "x"}, {Subscriber: owner, Limit: 1, Cursor: "3.1"}, {Subscriber: owner, Limit: 1, Cursor: "1.2 "}} {
		_, err := w.Store.Redact(w.ctx, p)
		w.errorIs(err, sender.ErrInvalid, "redacting with %+v", p)
	}
}

func redactPruned(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	for i := range 3 {
		w.publish(w.draftOn("a.b", sender.Object{Type: "person", ID: fmt.Sprint(i)}))
	}
	w.expand()
	w.record(result(w.claim(1)[0], sender.ClassNone))
	for i := range 3 {
		w.redact(history.RedactParams{Object: sender.Object{Type: "person", ID: fmt.Sprint(i)}})
	}
	w.Advance(100 * time.Hour)
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{Deliveries: 3, Events: 3}, "pruned")
	w.equal(w.statuses(sub), map[sender.Status]int{}, "statuses")
}
