package storetest

import (
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func lineExpireRules() []rule {
	return []rule{
		{"too old to go on", "What is behind a dead letter that holds back nothing any more, and was published before NotBefore, is dead-lettered by a sweep and not sent, and one notice tells of it; what was published later goes on. By force it can be sent again.", lineTooOld},
		{"too old to go on, in parts", "If more is too old behind a dead letter than a sweep may end, nothing goes on before other sweeps have ended the rest.", lineTooOldInParts},
		{"too old to go on, of the latest order", "Of what is too old behind a dead letter, the latest order has all superseded that a newer version follows, and the newest dead-lettered.", lineTooOldLatest},
		{"too old to go on, delivered before", "What is too old behind a dead letter, and was delivered before, stays delivered, and no notice tells of it.", lineTooOldSingle},
		{"too old to go on, held", "A sweep ends nothing for its age while the subscription is paused.", lineTooOldHeld},
		{"too old to go on, of several dead letters", "What is too old behind several dead letters ends once none of them holds back any more; what another one still holds back stays.", lineTooOldBehindSeveral},
		{"too old to go on, beside a deletion", "A subscription that is deleted with more than a sweep may end does not hold up those whose lines wait for a sweep.", lineTooOldBesideDeletion},
	}
}

// freeing are the ways in which a dead letter comes to hold nothing back.
func (w *world) freeing() map[string]func(sub string) {
	return map[string]func(sub string){
		"without HoldDead":   func(sub string) { w.set(sub, byObject) },
		"with another order": func(sub string) { w.set(sub, sender.Settings{}) },
		"closing":            func(sub string) { w.close(sub) },
		"with its dead letter pruned": func(string) {
			w.Advance(time.Hour)
			got := w.prune(ages{dead: time.Minute, events: time.Minute})
			w.check(got.DeadLetters > 0 && got.Events == got.DeadLetters, "%d dead letters were pruned, and the events of %d", got.DeadLetters, got.Events)
		},
	}
}

// heldBack makes a dead letter that holds back some versions.
func (w *world) heldBack(versions int) (owner, sub string, events []string) {
	w.Helper()
	owner, sub = w.ordered(holding)
	events = w.versions(owner, sub, "a")
	w.die(w.claims("at first", events[0])[0])
	for range versions {
		events = append(events, w.versions(owner, sub, "a")...)
	}
	return owner, sub, events
}

// tooOld sweeps with a NotBefore that is later than all that was published so far.
func (w *world) tooOld(limit int) dispatch.Swept {
	w.Helper()
	w.Advance(time.Second)
	return w.sweepBy(dispatch.SweepParams{Limit: limit, NotBefore: w.now()})
}

func lineTooOld(w *world) {
	for name, free := range w.freeing() {
		owner, sub, e := w.heldBack(2)
		first := w.delivery(e[1], sub)
		w.Advance(time.Second)
		e = append(e, w.versions(owner, sub, "a")...)
		free(sub)
		notBefore := w.delivery(e[3], sub).CreatedAt
		var told sender.Notice
		swept := w.sweepBy(dispatch.SweepParams{Limit: plenty, NotBefore: notBefore, Announce: func(n sender.Notice) (sender.Draft, bool) {
			told = n
			return sender.Draft{}, false
		}})
		w.equal(swept.Ended, 2, "ended by the sweep, %s", name)
		w.equal(len(swept.Notices), 1, "notices, %s", name)
		n := swept.Notices[0]
		w.equal([]any{n.Kind, n.Subscriber, n.Subscription, n.Delivery, n.Detail != ""}, []any{sender.NoticeDeadLettered, owner, sub, first.ID, true}, "the notice, %s", name)
		w.equal(told, n, "the notice of which an event may be made, %s", name)
		w.equal(w.listNotices(history.NoticeQuery{Subscription: sub}), []string{n.ID}, "notices stored, %s", name)
		w.equal([]any{w.delivery(e[1], sub).Status, w.delivery(e[2], sub).Status}, []any{sender.StatusDeadLettered, sender.StatusDeadLettered}, "what is too old, %s", name)
		w.check(!w.facts(e[1], sub).HoldsBack, "what was too old holds back others, %s", name)
		w.record(result(w.claims("after the sweep, "+name, e[3])[0], sender.ClassNone))
		if name == "closing" {
			w.endsSwept()
			w.gone(sub, "at its end")
			continue
		}
		w.errorIs(w.Store.Redeliver(w.ctx, first.ID, notBefore), sender.ErrRetention, "redelivering what is too old, %s", name)
		w.redeliver(first.ID)
		w.record(result(w.claims("by force, "+name, e[1])[0], sender.ClassNone))
	}
}

func lineTooOldInParts(w *world) {
	owner, sub, e := w.heldBack(5)
	w.Advance(time.Second)
	e = append(e, w.versions(owner, sub, "a")...)
	w.set(sub, byObject)
	p := dispatch.SweepParams{Limit: 2, NotBefore: w.delivery(e[6], sub).CreatedAt}
	for _, ends := range []int{2, 2, 1} {
		w.claimNothing("while something is left that is too old")
		swept, err := w.Store.Sweep(w.ctx, p)
		w.noError(err, "sweeping")
		w.equal([]int{swept.Ended, swept.Freed, len(swept.Notices)}, []int{ends, 2 - ends, 1}, "ended by a sweep of up to 2, dead letters freed, and notices")
	}
	w.record(result(w.claims("at last", e[6])[0], sender.ClassNone))
	w.equal(w.statuses(sub), map[sender.Status]int{sender.StatusDeadLettered: 6, sender.StatusDelivered: 1}, "statuses at the end")
	w.equal([]int64{w.read(sub).DeadLettered, w.read(sub).Backlog}, []int64{6, 0}, "DeadLettered and Backlog")
}

func lineTooOldLatest(w *world) {
	_, sub, e := w.heldBack(3)
	w.set(sub, latest)
	w.equal(len(w.tooOld(plenty).Notices), 1, "notices")
	for i, want := range []sender.Status{sender.StatusDeadLettered, sender.StatusSuperseded, sender.StatusSuperseded, sender.StatusDeadLettered} {
		w.status(e[i], sub, want, "at the end")
	}
	w.claimNothing("of what is too old")
}

func lineTooOldSingle(w *world) {
	owner, sub, e := w.heldBack(1)
	dead := w.delivery(e[0], sub).ID
	w.noError(w.Store.PassOver(w.ctx, dead, time.Time{}), "passing over a dead letter")
	w.record(result(w.claims("after it was passed over", e[1])[0], sender.ClassNone))
	w.redeliver(dead)
	w.die(w.claims("the first one, redelivered", e[0])[0])
	w.redeliver(w.delivery(e[1], sub).ID)
	w.claimNothing("behind a dead letter")
	w.set(sub, byObject)
	w.equal(w.tooOld(plenty), dispatch.Swept{Ended: 1, Freed: 1}, "swept")
	w.status(e[1], sub, sender.StatusDelivered, "after the sweep")
	w.record(result(w.claims("another one", w.versions(owner, sub, "a")...)[0], sender.ClassNone))
}

func lineTooOldHeld(w *world) {
	_, sub, e := w.heldBack(1)
	w.pause(sub)
	w.set(sub, byObject)
	w.equal(w.tooOld(plenty), dispatch.Swept{Freed: 1}, "swept")
	w.status(e[1], sub, sender.StatusHeld, "after the sweep")
	w.errorIs(w.tryResume(sub, sender.Resume{NotBefore: w.now()}), sender.ErrRetention, "resuming with what is too old")
	w.resume(sub, takeAll)
	w.record(result(w.claims("after a resume by force", e[1])[0], sender.ClassNone))
}

func lineTooOldBehindSeveral(w *world) {
	for name, free := range w.freeing() {
		owner, sub, e := w.heldBack(1)
		dead := w.delivery(e[0], sub).ID
		w.noError(w.Store.PassOver(w.ctx, dead, time.Time{}), "passing over a dead letter")
		w.die(w.claims("after it was passed over", e[1])[0])
		pruned := name == "with its dead letter pruned"
		if pruned {
			w.Advance(2 * time.Hour) // the later one goes first
		}
		w.redeliver(dead)
		w.die(w.claims("the first one, redelivered", e[0])[0])
		e = append(e, w.versions(owner, sub, "a")...)
		if pruned {
			w.check(w.prune(ages{dead: time.Hour, events: time.Hour}).DeadLetters > 0, "nothing was pruned")
			w.equal(w.tooOld(plenty), dispatch.Swept{Freed: 1}, "swept behind one that still holds back others")
			w.claimNothing("behind one that still holds back others")
		}
		free(sub)
		w.equal(w.tooOld(plenty).Ended, 1, "ended, %s", name)
		w.status(e[2], sub, sender.StatusDeadLettered, "after the sweep, "+name)
		w.claimNothing("of what is too old, %s", name)
	}
}

func lineTooOldBesideDeletion(w *world) {
	owner, sub, e := w.heldBack(1)
	w.Advance(time.Second)
	e = append(e, w.versions(owner, sub, "a")...)
	w.set(sub, byObject)
	deleted := w.subscribe(owner, "only.addressed")
	w.backlog(owner, deleted, 20)
	w.unsubscribe(deleted)
	p := dispatch.SweepParams{Limit: 8, NotBefore: w.delivery(e[2], sub).CreatedAt}
	swept, err := w.Store.Sweep(w.ctx, p)
	w.noError(err, "sweeping")
	w.check(swept.Ended <= p.Limit, "a sweep of up to %d ended %d", p.Limit, swept.Ended)
	w.status(e[1], sub, sender.StatusDeadLettered, "after one sweep")
	w.record(result(w.claims("after one sweep", e[2])[0], sender.ClassNone))
	w.sweepBy(p)
	w.equal(w.statuses(deleted), map[sender.Status]int{sender.StatusCancelled: 20}, "statuses of the deleted one at the end")
}
