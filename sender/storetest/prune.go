package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func pruneRules() []rule {
	rules := []rule{
		{"delivered", "The record of a delivered delivery goes once its last attempt is older than its time, with its attempts; other deliveries of the event stay.", pruneDelivered},
		{"cancelled", "The record of a cancelled delivery goes once it ended longer ago than its time.", pruneCancelled},
		{"dead letters", "A dead letter goes by its own time, counted from its end, and until then is kept whole.", pruneDead},
		{"live ones stay", "A delivery that is pending, held, waiting or in flight stays whatever its age, with its attempts and its event, and goes on as without the pruning.", pruneLive},
		{"sent again", "A record whose delivery was sent again counts from its last attempt.", pruneSentAgain},
		{"events", "An event goes once it is older than its time and nothing of it is left, with its idempotency key; versions stay.", pruneEvents},
		{"not expanded", "An event that is not expanded stays, and is delivered.", pruneUnexpanded},
		{"held backlogs", "A held backlog stays, and does not keep the events of others.", pruneBesideHeld},
		{"subscriptions", "A deleted subscription goes once it was swept longer ago than events are kept, and nothing of it is live or on record; its subscriber's id is not used again.", pruneSubscriptions},
		{"objects", "An object's last version is forgotten once its event was removed longer ago than its time, if nothing was published about it since; what is published about it then gets a version above all that it had.", pruneObjects},
		{"objects for ever", "Without a time for objects, and of those with high versions, the last version is remembered when the event is removed.", pruneNoObjects},
		{"objects in lines", "A version waits for an earlier one of its object that has a line, also if the object has no other event any more.", pruneObjectsInLines},
		{"notices", "Acknowledged notices go once that is older than their time; others stay.", pruneNotices},
		{"ended replays", "A replay goes once it was finished or cancelled longer ago than events are kept; its id is that of no replay then. One that is running or paused stays.", pruneReplays},
		{"times apart", "Each time removes only what it is of; a zero one removes nothing.", pruneTimes},
		{"bounded", "A batch removes up to Limit, and passes over a few times Limit; a pass goes on where the last batch ended.", pruneBounded},
		{"malformed", "A malformed cursor and a limit below 1 are ErrInvalid.", pruneMalformed},
		{"numbers", "Pruning does not make numbers be used again: a subscription that is made after it gets later events, and one that is closed after it gets none of them.", pruneNumbers},
		{"beside redeliveries", "A delivery that is redelivered while records are pruned is either ErrNotFound or sent, with its body and all its attempts.", pruneBesideRedeliveries},
	}
	return append(rules, pruneReadsRules()...)
}

// ages has the times of dispatch.PruneParams as ages; zero: nothing of the kind is pruned.
type ages struct{ delivered, dead, events, notices, objects time.Duration }

// never: nothing of a kind is pruned.
const never = time.Duration(0)

func (w *world) pruneParams(a ages, limit int) dispatch.PruneParams {
	w.Helper()
	now := w.now()
	before := func(age time.Duration) time.Time {
		if age == never {
			return time.Time{}
		}
		return now.Add(-age)
	}
	return dispatch.PruneParams{
		Delivered: before(a.delivered), DeadLetters: before(a.dead), Events: before(a.events), Notices: before(a.notices), Objects: before(a.objects), Limit: limit,
	}
}

// prune makes a whole pass and returns the sums of its batches.
func (w *world) prune(a ages) dispatch.Pruned {
	w.Helper()
	sum, _ := w.pruneBy(w.pruneParams(a, 7))
	return sum
}

func (w *world) pruneBy(p dispatch.PruneParams) (sum dispatch.Pruned, batches int) {
	w.Helper()
	for batches = 1; batches < plenty; batches++ {
		got, err := w.Store.Prune(w.ctx, p)
		w.noError(err, "pruning")
		n := got.Deliveries + got.DeadLetters + got.Events + got.Notices + got.Rollups + got.Subscriptions + got.Replays + got.Objects
		w.check(n <= p.Limit, "a batch of up to %d has removed %d", p.Limit, n)
		sum.Deliveries += got.Deliveries
		sum.DeadLetters += got.DeadLetters
		sum.Events += got.Events
		sum.Notices += got.Notices
		sum.Rollups += got.Rollups
		sum.Subscriptions += got.Subscriptions
		sum.Replays += got.Replays
		sum.Objects += got.Objects
		if got.Cursor == "" {
			return sum, batches
		}
		p.Cursor = got.Cursor
	}
	w.Fatal("a pass of pruning does not come to an end")
	return sum, batches
}

// all is one age for everything except objects.
func all(age time.Duration) ages { return ages{delivered: age, dead: age, events: age, notices: age} }

// pruned ends the test if a delivery is found or listed.
func (w *world) pruned(id string) {
	w.Helper()
	_, err := w.Store.Delivery(w.ctx, id, whole)
	w.errorIs(err, sender.ErrNotFound, "reading a delivery that was pruned")
	w.errorIs(w.Store.Redeliver(w.ctx, id, time.Time{}), sender.ErrNotFound, "redelivering a delivery that was pruned")
	for _, d := range w.list(history.DeliveryQuery{}) {
		w.check(d.ID != id, "delivery %s is listed, and was pruned", id)
	}
}

func pruneNotices(w *world) {
	var noted []sender.Notice
	for range 3 {
		noted = append(noted, w.note(sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})...)
	}
	w.Advance(50 * time.Hour)
	_, err := w.Store.AcknowledgeNotice(w.ctx, noted[0].ID, "")
	w.noError(err, "acknowledging")
	w.Advance(9 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{}, "pruned 9 h after a notice was acknowledged")
	w.Advance(2 * time.Hour)
	w.equal(w.prune(all(10*time.Hour)), dispatch.Pruned{Notices: 1}, "pruned 11 h after a notice was acknowledged")
	w.equal(w.listNotices(history.NoticeQuery{}), []string{noted[2].ID, noted[1].ID}, "notices")
	page, next, err := w.Store.Notices(w.ctx, history.NoticeQuery{Limit: 1})
	w.noError(err, "listing notices")
	w.equal(page[0].ID, noted[2].ID, "first notice")
	page, _, err = w.Store.Notices(w.ctx, history.NoticeQuery{Limit: 1, Cursor: next})
	w.noError(err, "listing notices")
	w.equal(page[0].ID, noted[1].ID, "second notice")
}

func pruneTimes(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "only.addressed")
	w.backlog(owner, sub, 2)
	claimed := w.claim(plenty)
	w.record(result(claimed[0], sender.ClassNone))
	for n := range maxTries {
		w.record(result(claimed[1], sender.ClassStatus))
		w.Advance(retryDelay(maxTries))
		if n+1 < maxTries {
			claimed[1] = w.claimOne()
		}
	}
	w.publish(w.draft("nobody.asks"))
	w.expand()
	n := w.note(sender.Notice{Kind: sender.NoticeNetwork, Subscriber: sender.Operator})
	_, err := w.Store.AcknowledgeNotice(w.ctx, n[0].ID, "")
	w.noError(err, "acknowledging")
	w.Advance(100 * time.Hour)
	for _, c := range []struct {
		ages ages
		want dispatch.Pruned
	}{
		{ages{}, dispatch.Pruned{}},
		{ages{events: time.Hour}, dispatch.Pruned{Events: 1}},
		{ages{delivered: time.Hour}, dispatch.Pruned{Deliveries: 1}},
		{ages{notices: time.Hour}, dispatch.Pruned{Notices: 1}},
		{ages{dead: time.Hour}, dispatch.Pruned{DeadLetters: 1}},
		{ages{events: time.Hour}, dispatch.Pruned{Events: 2}},
	} {
		w.equal(w.prune(c.ages), c.want, "pruned by %+v", c.ages)
	}
}

func pruneBounded(w *world) {
	const limit, each = 5, 30
	owner := w.subscriber()
	goes, stays := w.subscribe(owner, "only.addressed"), w.subscribe(owner, "only.addressed")
	w.backlog(owner, stays, each)
	w.backlog(owner, goes, each)
	w.pause(stays)
	for _, c := range w.claim(plenty) {
		w.record(result(c, sender.ClassNone))
	}
	w.Advance(100 * time.Hour)
	first, err := w.Store.Prune(w.ctx, w.pruneParams(all(time.Hour), limit))
	w.noError(err, "pruning")
	w.check(first.Cursor != "", "a pass over more than a batch ends with the first")
	sum, _ := w.pruneBy(w.pruneParams(all(time.Hour), limit))
	w.equal([]int{first.Deliveries + sum.Deliveries, first.Events + sum.Events}, []int{each, each}, "records and events that went")
	sum, batches := w.pruneBy(w.pruneParams(all(time.Hour), limit))
	w.equal(sum, dispatch.Pruned{}, "pruned by another pass")
	w.check(batches <= each/limit+5, "a pass over %d events that stay, with a limit of %d, takes %d batches", each, limit, batches)
}

func pruneMalformed(w *world) {
	w.one()
	for _, p := range []dispatch.PruneParams{{Limit: 0}, {Limit: -1}, {Limit: 1, Cursor: "x"}, {Limit: 1, Cursor: "-1"}, {Limit: 1, Cursor: "9999.9999.9999.9999"}} {
		_, err := w.Store.Prune(w.ctx, p)
		w.errorIs(err, sender.ErrInvalid, "pruning with %+v", p)
	}
}
