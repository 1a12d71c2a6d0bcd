package storetest

import (
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// pruneReadsRules are about counts, lists and replays after pruning.
func pruneReadsRules() []rule {
	return []rule{
		{"counts", "Counts are right after pruning: fewer dead letters, no fewer unread notices, and nothing to be expanded.", pruneCounts},
		{"rollups", "The figures of a minute go once it is older than their time; others stay.", pruneRollups},
		{"replays", "A member of a replay that is pruned is skipped, and the others are sent.", pruneReplayed},
		{"lists", "Events that were pruned are not found, nor listed, and pages lead over them.", pruneListed},
	}
}

func pruneCounts(w *world) {
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
	w.counted(history.Counts{Subscriptions: by{"active": 2}, DeadLettered: 6, Notices: 1}, "before pruning")
	w.equal(w.prune(ages{dead: time.Hour, notices: time.Hour}), dispatch.Pruned{DeadLetters: 5, Notices: 1}, "pruned")
	w.counted(history.Counts{Subscriptions: by{"active": 2}, DeadLettered: 1, Notices: 1}, "after pruning")
	w.Advance(10 * time.Hour)
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{DeadLetters: 1, Events: 6, Subscriptions: 1}, "pruned of everything")
	w.counted(history.Counts{Subscriptions: by{"active": 2}, Notices: 1}, "after pruning everything")
	w.publish(w.draft("nobody.asks"))
	w.counted(history.Counts{Subscriptions: by{"active": 2}, Notices: 1, Unexpanded: 1}, "with an event after it")
	w.equal(w.read(kept).DeadLettered, int64(0), "dead letters that the subscription counts")
}

func pruneRollups(w *world) {
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
	p := dispatch.PruneParams{Rollups: start.Add(2 * time.Minute), Limit: 1}
	sum, batches := w.pruneBy(p)
	w.equal(sum, dispatch.Pruned{Rollups: 2}, "pruned")
	w.check(batches >= 2, "a pass over two minutes with a limit of 1 takes one batch")
	w.equal(minutes(), []time.Duration{2 * time.Minute, 3 * time.Minute}, "minutes with figures after pruning")
	w.equal(w.prune(all(time.Hour)), dispatch.Pruned{}, "pruned without a time for figures")
	w.ended(1, sender.ClassNone)
	w.equal(minutes(), []time.Duration{2 * time.Minute, 3 * time.Minute, 4 * time.Minute}, "minutes with figures in the end")

	// The hours that minutes make up go with them.
	w.Advance(2 * time.Hour)
	w.ended(1, sender.ClassNone)
	w.sweep(10)
	hours := func() int {
		all, err := w.Store.HourRollups(w.ctx, start.Truncate(time.Hour), w.now().Truncate(time.Hour).Add(time.Hour))
		w.noError(err, "reading rollups of hours")
		return len(all)
	}
	w.check(hours() > 1, "hours with figures: %d", hours())
	w.pruneBy(dispatch.PruneParams{Rollups: w.now().Add(-30 * time.Minute), Limit: 10})
	w.equal(hours(), 1, "hours with figures after pruning")
}

func pruneReplayed(w *world) {
	for _, c := range []struct {
		status sender.Status
		class  sender.Class
	}{{sender.StatusDeadLettered, sender.ClassStatus}, {sender.StatusDelivered, sender.ClassNone}} {
		w.ended(3, c.class)
		w.Advance(10 * time.Hour)
		later, _ := w.ended(2, c.class)
		r := w.replay(replay.Filter{Status: c.status})
		w.equal(r.Matched, int64(5), "%s: Matched", c.status)
		w.equal(w.step(1).Admitted, 1, "%s: admitted first", c.status)
		w.prune(all(time.Hour))
		w.steps(10)
		r = w.readReplay(r.ID)
		w.equal([]any{r.Status, r.Matched, r.Admitted, r.Skipped}, []any{replay.Finished, int64(5), int64(3), int64(2)}, "%s: the replay", c.status)
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
		w.equal(len(w.list(history.DeliveryQuery{})), 0, "%s: deliveries left in the end", c.status)
	}
}

func pruneListed(w *world) {
	early, _ := w.ended(3, sender.ClassNone)
	_, held := w.ended(1, sender.ClassStatus)
	w.Advance(10 * time.Hour)
	late, _ := w.ended(2, sender.ClassNone)
	dead := w.list(history.DeliveryQuery{Subscription: held})[0].Event.ID
	first, next, err := w.Store.Events(w.ctx, history.EventQuery{Limit: 3})
	w.noError(err, "listing events")
	w.equal(len(first), 3, "events of the first page")
	w.equal(w.prune(ages{delivered: time.Hour, events: time.Hour}), dispatch.Pruned{Deliveries: 3, Events: 3}, "pruned")
	rest, _, err := w.Store.Events(w.ctx, history.EventQuery{Limit: 3, Cursor: next})
	w.noError(err, "listing events after a page whose next ones were pruned")
	w.equal(len(rest), 0, "events of the second page")
	var ids []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		w.check(pages < plenty, "a list of events does not come to an end")
		page, next, err := w.Store.Events(w.ctx, history.EventQuery{Limit: 1, Cursor: cursor})
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
