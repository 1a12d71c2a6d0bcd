package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// redactReadsRules are about counts, lists and replays after a redaction.
func redactReadsRules() []rule {
	return []rule{
		{"counts", "Deliveries that a redaction has cancelled do not count as live or held any more.", redactCounts},
		{"lists", "A redacted event is listed, and read without a body, as Redacted; its deliveries are listed by what they read as.", redactListed},
		{"replays", "A redacted delivery is in no replay: a preview leaves it out, and one that is redacted meanwhile is skipped and stays what it is.", redactReplayed},
		{"replays, admitted", "A delivery that a replay has admitted is cancelled when its event is redacted; one that was delivered before stays delivered.", redactAdmitted},
		{"retention", "A redacted event is not sent, expanded or not, so it keeps nobody from resuming, not even if an attempt was in flight.", redactRetention},
	}
}

func redactCounts(w *world) {
	type by = map[sender.SubscriptionStatus]int64
	owner := w.subscriber()
	obj := sender.Object{Type: "person", ID: "1"}
	active, held := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	w.publish(w.draftOn("a.b", obj), w.draft("a.b"))
	w.expand()
	at := w.now()
	w.pause(held)
	w.counted(history.Counts{Subscriptions: by{"active": 1, "paused": 1}, Live: 2, Held: 2, OldestDue: at}, "before a redaction")
	w.redact(history.RedactParams{Object: obj})
	w.counted(history.Counts{Subscriptions: by{"active": 1, "paused": 1}, Live: 1, Held: 1, OldestDue: at}, "after it")
	w.equal([]int64{w.read(active).Backlog, w.read(held).Backlog}, []int64{1, 1}, "backlogs")
}

func redactListed(w *world) {
	obj := sender.Object{Type: "person", ID: "1"}
	sub := w.subscribe(w.subscriber(), "*")
	one, inFlight, other := w.draftOn("a.b", obj), w.draftOn("a.b", obj), w.draft("a.b")
	w.publish(inFlight)
	w.expand()
	w.claimOne()
	w.publish(one, other)
	w.expand()
	w.redact(history.RedactParams{Object: obj})
	for _, d := range []sender.Draft{one, inFlight, other} {
		e, err := w.Store.Event(w.ctx, d.ID)
		w.noError(err, "reading an event")
		w.equal([]any{e.Type, e.Object, e.Redacted, e.Body == nil}, []any{d.Type, d.Object, d.Object == obj, d.Object == obj}, "type, object, Redacted and whether there is no body")
	}
	page, _, err := w.Store.Events(w.ctx, history.EventQuery{})
	w.noError(err, "listing events")
	w.equal(len(page), 3, "events listed")
	for _, e := range page {
		w.equal(e.Redacted, e.Object == obj, "Redacted of an event in a list")
	}
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 2, sender.StatusPending: 1}, "statuses")
	for status, want := range map[sender.Status]int{sender.StatusCancelled: 2, sender.StatusPending: 1} {
		w.equal(len(w.list(history.DeliveryQuery{Status: status})), want, "deliveries listed that are %s", status)
		w.equal(len(w.list(history.DeliveryQuery{Status: status, Subscription: sub})), want, "deliveries of the subscription listed that are %s", status)
	}
}

func redactReplayed(w *world) {
	for _, c := range []struct {
		status sender.Status
		class  sender.Class
	}{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}} {
		drafts, sub := w.ended(3, c.class)
		f := replay.Filter{Status: c.status, Subscription: sub}
		w.redact(history.RedactParams{Object: drafts[0].Object})
		p, err := w.Store.PreviewReplay(w.ctx, f, 0)
		w.noError(err, "previewing")
		w.equal(p.Count, int64(2), "%s: Count of a preview beside what is redacted", c.status)
		r := w.replay(f)
		w.equal(r.Matched, int64(2), "%s: Matched beside what is redacted", c.status)
		w.redact(history.RedactParams{Object: drafts[1].Object})
		w.steps(10)
		r = w.readReplay(r.ID)
		w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{replay.Finished, int64(2), int64(1), int64(1)}, "%s: the replay", c.status)
		w.equal(w.claimOne().Event.ID, drafts[2].ID, "%s: event claimed", c.status)
		for _, d := range drafts[:2] {
			w.equal(w.delivery(d.ID, sub).Status, c.status, "status of what is redacted")
		}
	}
}

func redactAdmitted(w *world) {
	for _, c := range []struct {
		status, then sender.Status
		class        sender.Class
	}{{sender.StatusDeadLettered, sender.StatusCancelled, sender.ClassStatus}, {sender.StatusDelivered, sender.StatusDelivered, sender.ClassNone}} {
		drafts, sub := w.ended(1, c.class)
		w.replay(replay.Filter{Status: c.status, Subscription: sub})
		w.equal(w.steps(10).Admitted, 1, "admitted")
		w.equal(w.redact(history.RedactParams{Object: drafts[0].Object}), history.Redacted{Events: 1, Deliveries: 1}, "redacted")
		w.equal(w.delivery(drafts[0].ID, sub).Status, c.then, "status of what was %s, admitted and redacted", c.status)
		w.claimNothing("after what was admitted is redacted")
		s := w.read(sub)
		w.equal([]int64{s.Backlog, s.DeadLettered}, []int64{0, 0}, "backlog and dead letters that the subscription counts")
	}
}

func redactRetention(w *world) {
	sub := w.subscribe(w.subscriber(), "*")
	d, inFlight := w.draft("a.b"), w.draft("a.b")
	w.publish(inFlight)
	w.expand()
	w.claimOne()
	w.publish(d)
	w.pause(sub)
	w.Advance(time.Hour)
	for _, object := range []sender.Object{d.Object, inFlight.Object} {
		w.redact(history.RedactParams{Object: object})
	}
	w.sweep(10)
	w.resume(sub, sender.Resume{NotBefore: w.now()})
	w.expand()
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 1}, "statuses")
}
