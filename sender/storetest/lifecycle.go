package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

func lifeRules() []rule {
	return slices.Concat(updateRules(), figureRules(), holdRules(), resumeRules(), resumeInFlightRules(), retentionRules(), disableRules(), ownPolicyRules(), closeRules(), deleteSubscriberRules(), eraseRules())
}

// try runs fn in a transaction and returns fn's error.
func (w *world) try(fn func(tx any) error) error {
	return w.Store.InTx(w.ctx, fn)
}

// undone runs fn in a transaction that rolls back.
func (w *world) undone(fn func(tx any) error) {
	w.Helper()
	failed := errors.New("the caller failed")
	err := w.try(func(tx any) error { return errors.Join(failed, fn(tx)) })
	w.equal(err.Error(), failed.Error(), "error of a transaction that the caller rolls back")
}

// read returns a subscription that must be there.
func (w *world) read(id string) (s sender.Subscription) {
	w.Helper()
	w.inTx(func(tx any) (err error) {
		s, err = w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: id})
		return err
	})
	return s
}

// gone ends the test if a subscription is found or listed.
func (w *world) gone(id, when string) {
	w.Helper()
	w.inTx(func(tx any) error {
		_, err := w.Store.SubscriptionTx(w.ctx, tx, sender.SubscriptionKey{ID: id})
		w.errorIs(err, sender.ErrNotFound, "reading a subscription %s", when)
		all, err := w.Store.SubscriptionsTx(w.ctx, tx, "", "", plenty)
		w.noError(err, "listing subscriptions")
		w.check(!slices.ContainsFunc(all, func(s sender.Subscription) bool { return s.ID == id }), "a subscription is listed %s", when)
		return nil
	})
}

func (w *world) update(s sender.Subscription) {
	w.Helper()
	w.inTx(func(tx any) error { return w.Store.UpdateSubscriptionTx(w.ctx, tx, s) })
}

// ask changes a subscription's filter.
func (w *world) ask(id string, types ...string) {
	w.Helper()
	s := w.read(id)
	s.EventTypes = types
	w.update(s)
}

func (w *world) tryHold(id string, status sender.SubscriptionStatus) error {
	return w.try(func(tx any) error {
		return w.Store.HoldSubscriptionTx(w.ctx, tx, id, status, "because of "+string(status))
	})
}

func (w *world) pause(id string) {
	w.Helper()
	w.noError(w.tryHold(id, sender.SubscriptionPaused), "pausing")
}

func (w *world) disable(id string) {
	w.Helper()
	w.noError(w.tryHold(id, sender.SubscriptionDisabled), "disabling")
}

func (w *world) tryResume(id string, r sender.Resume) error {
	return w.try(func(tx any) error { return w.Store.ResumeSubscriptionTx(w.ctx, tx, id, r) })
}

func (w *world) resume(id string, r sender.Resume) {
	w.Helper()
	w.noError(w.tryResume(id, r), "resuming")
}

func (w *world) tryClose(id string) error {
	return w.try(func(tx any) error { return w.Store.CloseSubscriptionTx(w.ctx, tx, id) })
}

func (w *world) close(id string) {
	w.Helper()
	w.noError(w.tryClose(id), "closing")
}

// addressed makes an event that one subscription alone gets.
func (w *world) addressed(owner, sub string) sender.Draft {
	d := w.draft("a.b")
	d.Subscriber, d.Subscription = owner, sub
	return d
}

// endsSwept sweeps until no delivery remains. A store may have done any part of that
// before.
func (w *world) endsSwept() {
	w.Helper()
	w.sweep(100)
}

// claimsOf ends the test unless a claim of all that is due has exactly those
// numbers of deliveries by subscription.
func (w *world) claimsOf(want map[string]int, when string, args ...any) []dispatch.Claimed {
	w.Helper()
	got := map[string]int{}
	claimed := w.claim(plenty)
	for _, c := range claimed {
		got[c.Target.Subscription]++
	}
	w.check(len(got) == len(want), "%s: subscriptions with deliveries claimed: got %v, want %v", when, got, want)
	for sub, n := range want {
		w.equal(got[sub], n, when+": deliveries of "+sub+" claimed", args...)
	}
	return claimed
}

func figureRules() []rule {
	return []rule{
		{"figures", "A subscription is read, alone and in lists, with its Health, how many of its deliveries have not ended, and how many are dead-lettered.", lifeFigures},
		{"id of an addressed event's delivery", "Ref.Delivery is the id that the delivery of an event to a single subscription will have, also in a duplicate's Ref; other events have none.", lifeRefDelivery},
	}
}

func lifeFigures(w *world) {
	owners, subs := w.crowd(2, 4)
	sub := subs[0]
	figures := func(backlog, dead int64, when string) {
		w.Helper()
		got := w.read(sub)
		w.equal([]int64{got.Backlog, got.DeadLettered}, []int64{backlog, dead}, "Backlog and DeadLettered %s", when)
		w.inTx(func(tx any) error {
			list, err := w.Store.SubscriptionsTx(w.ctx, tx, owners[0], "", 10)
			w.noError(err, "listing subscriptions")
			w.equal(list, []sender.Subscription{got}, "subscription in a list, against the one read alone")
			return nil
		})
		w.equal(w.read(subs[1]).Backlog+w.read(subs[1]).DeadLettered, int64(4), "Backlog and DeadLettered of another subscription")
	}
	figures(4, 0, "before the first attempt")
	w.equal(w.read(sub).Health, sender.Health{}, "Health before the first attempt")
	var claimed []dispatch.Claimed
	for _, c := range w.claim(plenty) {
		if c.Target.Subscription == sub {
			claimed = append(claimed, c)
		}
	}
	figures(4, 0, "while all are in flight")
	w.decide = func(l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		if r.Class == sender.ClassStatus {
			dec.Status = sender.StatusDeadLettered
		}
		dec.Health.Warned = 75
		return dec
	}
	since := w.now()
	w.record(result(claimed[0], sender.ClassTimeout), result(claimed[1], sender.ClassStatus), result(claimed[2], sender.ClassStatus))
	figures(2, 2, "after a failure and two dead letters")
	h := w.read(sub).Health
	w.sameTime(h.FailingSince, since, "FailingSince")
	w.sameTime(h.LastFailure, since, "LastFailure")
	w.equal([]any{h.Lane, h.Streak, h.Warned, h.LastSuccess.IsZero()}, []any{sender.LaneProbation, 3, 75, true}, "lane, streak, warned, and no last success")

	dead := w.list(history.DeliveryQuery{Subscription: sub, Status: sender.StatusDeadLettered})
	w.redeliver(dead[0].ID)
	figures(3, 1, "after one dead letter was redelivered")
	w.record(result(claimed[3], sender.ClassNone))
	figures(2, 1, "after a success")
	w.redeliver(w.list(history.DeliveryQuery{Subscription: sub, Status: sender.StatusDelivered})[0].ID)
	figures(3, 1, "after a delivered one was redelivered")
}

func lifeRefDelivery(w *world) {
	owner := w.subscriber()
	sub := w.subscribe(owner, "*")
	d := w.addressed(owner, sub)
	d.Key = "key"
	first := w.publish(d, w.draft("a.b"))
	w.equal(first[1].Delivery, "", "Delivery of an event that is not addressed to a single subscription")
	again := w.addressed(owner, sub)
	again.Key = "key"
	w.equal(w.publish(again)[0], sender.Ref{ID: d.ID, Version: 1, Duplicate: true, Delivery: first[0].Delivery}, "Ref of a duplicate")
	w.expand()
	w.equal(w.delivery(d.ID, sub).ID, first[0].Delivery, "id of the delivery")
}
