package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// What counts, lists and replays make of what was pruned.
func prunedRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"counts", "Counts are right after pruning: fewer dead letters, no fewer unread notices, and nothing to be expanded.", pruneCounts[Tx]},
		{"rollups", "The figures of a minute go once it is older than their time; others stay.", pruneRollups[Tx]},
		{"replays", "A member of a replay that is pruned is skipped, and the others are sent.", pruneReplayed[Tx]},
		{"lists", "Events that were pruned are not found, nor listed, and pages lead over them.", pruneListed[Tx]},
	}
}

// What counts, lists and replays make of what was redacted.
func redactedRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"counts", "What a redaction has cancelled does not count as live or held any more.", redactCounts[Tx]},
		{"lists", "A redacted event is listed, and read without a body, as Redacted; its deliveries are listed by what they read as.", redactListed[Tx]},
		{"replays", "A redacted delivery is in no replay: a preview leaves it out, and one that is redacted meanwhile is skipped and stays what it is.", redactReplayed[Tx]},
		{"replays, admitted", "What a replay has admitted is cancelled when it is redacted; what was delivered before stays delivered.", redactAdmitted[Tx]},
		{"retention", "A redacted event that is not expanded is not sent, so it keeps nobody from resuming.", redactRetention[Tx]},
	}
}

func pruneCounts[Tx any](w *world[Tx]) {
	type by = map[sender.SubscriptionStatus]int64
	_, gone := w.ended(2, sender.ClassStatus)
	w.ended(3, sender.ClassStatus)
	w.unsubscribe(gone)
	w.sweep(10)
	noted := w.note(sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator}, sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})
	_, err := w.Store.AcknowledgeNotice(w.ctx, noted[0].ID, "")
	w.noError(err, "acknowledging")
	w.Advance(10 * time.Hour)
	_, kept := w.ended(1, sender.ClassStatus)
	w.counted(sender.Counts{Subscriptions: by{"active": 2}, DeadLettered: 6, Notices: 1}, "before pruning")
	w.equal(w.prune(ages{dead: time.Hour, notices: time.Hour}), sender.Pruned{DeadLetters: 5, Notices: 1}, "pruned")
	w.counted(sender.Counts{Subscriptions: by{"active": 2}, DeadLettered: 1, Notices: 1}, "after pruning")
	w.Advance(10 * time.Hour)
	w.equal(w.prune(all(time.Hour)), sender.Pruned{DeadLetters: 1, Events: 6, Subscriptions: 1}, "pruned of everything")
	w.counted(sender.Counts{Subscriptions: by{"active": 2}, Notices: 1}, "after pruning everything")
	w.publish(w.draft("nobody.asks"))
	w.counted(sender.Counts{Subscriptions: by{"active": 2}, Notices: 1, Unexpanded: 1}, "with an event after it")
	w.equal(w.read(kept).DeadLettered, int64(0), "dead letters that the subscription counts")
}

func pruneRollups[Tx any](w *world[Tx]) {
	w.Advance(w.now().Truncate(time.Minute).Add(time.Minute).Sub(w.now()))
	start := w.now()
	for range 4 {
		w.ended(1, sender.ClassNone)
		w.sweep(10)
		w.Advance(time.Minute)
	}
	minutes := func() (all []time.Duration) {
		for _, r := range w.rollups() {
			all = append(all, r.Minute.Sub(start))
		}
		return all
	}
	w.equal(minutes(), []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}, "minutes with figures")
	p := sender.PruneParams{Rollups: start.Add(2 * time.Minute), Limit: 1}
	sum, batches := w.pruneBy(p)
	w.equal(sum, sender.Pruned{Rollups: 2}, "pruned")
	w.check(batches >= 2, "a pass over two minutes with a limit of 1 takes one batch")
	w.equal(minutes(), []time.Duration{2 * time.Minute, 3 * time.Minute}, "minutes with figures after pruning")
	w.equal(w.prune(all(time.Hour)), sender.Pruned{}, "pruned without a time for figures")
	w.ended(1, sender.ClassNone)
	w.equal(minutes(), []time.Duration{2 * time.Minute, 3 * time.Minute, 4 * time.Minute}, "minutes with figures in the end")
}

func pruneReplayed[Tx any](w *world[Tx]) {
	for _, c := range []struct {
		status sender.Status
		class  sender.Class
	}{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}} {
		w.ended(3, c.class)
		w.Advance(10 * time.Hour)
		later, _ := w.ended(2, c.class)
		r := w.replay(sender.ReplayFilter{Status: c.status})
		w.equal(r.Matched, int64(5), "%s: Matched", c.status)
		w.equal(w.step(1).Admitted, 1, "%s: admitted first", c.status)
		w.prune(all(time.Hour))
		w.steps(10)
		r = w.readReplay(r.ID)
		w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{sender.ReplayFinished, int64(5), int64(3), int64(2)}, "%s: the replay", c.status)
		claimed, ids := w.claimedEvents()
		w.equal(len(ids), 3, "%s: events claimed", c.status)
		for _, d := range later {
			w.check(slices.Contains(ids, d.ID), "%s: an event that stays was not sent again", c.status)
		}
		for _, d := range claimed {
			w.check(len(d.Body) > 0, "%s: event %s has no body", c.status, d.Event.ID)
			w.record(result(d, sender.ClassNone))
		}
		w.Advance(100 * time.Hour)
		w.prune(all(time.Hour))
		w.equal(len(w.list(sender.DeliveryQuery{})), 0, "%s: deliveries left in the end", c.status)
	}
}

func pruneListed[Tx any](w *world[Tx]) {
	early, _ := w.ended(3, sender.ClassNone)
	_, held := w.ended(1, sender.ClassStatus)
	w.Advance(10 * time.Hour)
	late, _ := w.ended(2, sender.ClassNone)
	dead := w.list(sender.DeliveryQuery{Subscription: held})[0].Event.ID
	first, next, err := w.Store.Events(w.ctx, sender.EventQuery{Limit: 3})
	w.noError(err, "listing events")
	w.equal(len(first), 3, "events of the first page")
	w.equal(w.prune(ages{delivered: time.Hour, events: time.Hour}), sender.Pruned{Deliveries: 3, Events: 3}, "pruned")
	rest, _, err := w.Store.Events(w.ctx, sender.EventQuery{Limit: 3, Cursor: next})
	w.noError(err, "listing events after a page whose next ones were pruned")
	w.equal(len(rest), 0, "events of the second page")
	var ids []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		w.check(pages < plenty, "a list of events does not come to an end")
		page, next, err := w.Store.Events(w.ctx, sender.EventQuery{Limit: 1, Cursor: cursor})
		w.noError(err, "listing events")
		for _, e := range page {
			ids = append(ids, e.ID)
		}
		cursor = next
	}
	w.equal(ids, []string{late[1].ID, late[0].ID, dead}, "events listed")
	_, err = w.Store.Event(w.ctx, early[0].ID)
	w.errorIs(err, sender.ErrNotFound, "reading an event that was pruned")
}

func redactCounts[Tx any](w *world[Tx]) {
	type by = map[sender.SubscriptionStatus]int64
	owner := w.subscriber()
	obj := sender.Object{Type: "person", ID: "1"}
	active, held := w.subscribe(owner, "*"), w.subscribe(owner, "*")
	w.publish(w.draftOn("a.b", obj), w.draft("a.b"))
	w.expand()
	at := w.now()
	w.pause(held)
	w.counted(sender.Counts{Subscriptions: by{"active": 1, "paused": 1}, Live: 2, Held: 2, OldestDue: at}, "before a redaction")
	w.redact(sender.RedactParams{Object: obj})
	w.counted(sender.Counts{Subscriptions: by{"active": 1, "paused": 1}, Live: 1, Held: 1, OldestDue: at}, "after it")
	w.equal([]int64{w.read(active).Backlog, w.read(held).Backlog}, []int64{1, 1}, "backlogs")
}

func redactListed[Tx any](w *world[Tx]) {
	obj := sender.Object{Type: "person", ID: "1"}
	sub := w.subscribe(w.subscriber(), "*")
	one, inFlight, other := w.draftOn("a.b", obj), w.draftOn("a.b", obj), w.draft("a.b")
	w.publish(inFlight)
	w.expand()
	w.claimOne()
	w.publish(one, other)
	w.expand()
	w.redact(sender.RedactParams{Object: obj})
	for _, d := range []sender.Draft{one, inFlight, other} {
		e, err := w.Store.Event(w.ctx, d.ID)
		w.noError(err, "reading an event")
		w.equal([]any{e.Type, e.Object, e.Redacted, e.Body == nil}, []any{d.Type, d.Object, d.Object == obj, d.Object == obj}, "type, object, Redacted and whether there is no body")
	}
	page, _, err := w.Store.Events(w.ctx, sender.EventQuery{})
	w.noError(err, "listing events")
	w.equal(len(page), 3, "events listed")
	for _, e := range page {
		w.equal(e.Redacted, e.Object == obj, "Redacted of an event in a list")
	}
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusCancelled: 2, sender.StatusPending: 1}, "statuses")
	for status, want := range map[sender.Status]int{sender.StatusCancelled: 2, sender.StatusPending: 1} {
		w.equal(len(w.list(sender.DeliveryQuery{Status: status})), want, "deliveries listed that are %s", status)
		w.equal(len(w.list(sender.DeliveryQuery{Status: status, Subscription: sub})), want, "deliveries of the subscription listed that are %s", status)
	}
}

func redactReplayed[Tx any](w *world[Tx]) {
	for _, c := range []struct {
		status sender.Status
		class  sender.Class
	}{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}} {
		drafts, sub := w.ended(3, c.class)
		f := sender.ReplayFilter{Status: c.status, Subscription: sub}
		w.redact(sender.RedactParams{Object: drafts[0].Object})
		p, err := w.Store.PreviewReplay(w.ctx, f)
		w.noError(err, "previewing")
		w.equal(p.Count, int64(2), "%s: Count of a preview beside what is redacted", c.status)
		r := w.replay(f)
		w.equal(r.Matched, int64(2), "%s: Matched beside what is redacted", c.status)
		w.redact(sender.RedactParams{Object: drafts[1].Object})
		w.steps(10)
		r = w.readReplay(r.ID)
		w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{sender.ReplayFinished, int64(2), int64(1), int64(1)}, "%s: the replay", c.status)
		w.equal(w.claimOne().Event.ID, drafts[2].ID, "%s: event claimed", c.status)
		for _, d := range drafts[:2] {
			w.equal(w.delivery(d.ID, sub).Status, c.status, "status of what is redacted")
		}
	}
}

func redactAdmitted[Tx any](w *world[Tx]) {
	for _, c := range []struct {
		status, then sender.Status
		class        sender.Class
	}{{sender.StatusDeadLettered, sender.StatusCancelled, sender.ClassStatus}, {sender.StatusDelivered, sender.StatusDelivered, sender.ClassNone}} {
		drafts, sub := w.ended(1, c.class)
		w.replay(sender.ReplayFilter{Status: c.status, Subscription: sub})
		w.equal(w.steps(10).Admitted, 1, "admitted")
		w.equal(w.redact(sender.RedactParams{Object: drafts[0].Object}), sender.Redacted{Events: 1, Deliveries: 1}, "redacted")
		w.equal(w.delivery(drafts[0].ID, sub).Status, c.then, "status of what was %s, admitted and redacted", c.status)
		w.claimNothing("after what was admitted is redacted")
		s := w.read(sub)
		w.equal([]int64{s.Backlog, s.DeadLettered}, []int64{0, 0}, "backlog and dead letters that the subscription counts")
	}
}

func redactRetention[Tx any](w *world[Tx]) {
	sub := w.subscribe(w.subscriber(), "*")
	d := w.draft("a.b")
	w.publish(d)
	w.pause(sub)
	w.Advance(time.Hour)
	w.redact(sender.RedactParams{Object: d.Object})
	w.resume(sub, sender.Resume{NotBefore: w.now()})
	w.expand()
	w.equal(w.statuses(sub), map[sender.Status]int{}, "statuses")
}
