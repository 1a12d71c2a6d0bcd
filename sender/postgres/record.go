package postgres

import (
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

func (b *batch) recordAll() error {
	if len(b.Results) == 0 {
		return nil
	}
	b.out.Recorded = make([]dispatch.Outcome, len(b.Results))
	// The expansion of this step may have ended deliveries before.
	b.attempts = slices.Grow(b.attempts, len(b.Results))
	b.fresh = slices.Grow(b.fresh, len(b.Results))
	var failed []dispatch.DeliveryKey
	for i := range b.Results {
		if r := &b.Results[i]; r.Class != sender.ClassNone && b.leases[r.Key] != nil {
			failed = append(failed, r.Key)
		}
	}
	if err := b.readLinesOf(failed); err != nil {
		return err
	}
	for i := range b.Results {
		r, out := &b.Results[i], &b.out.Recorded[i]
		l := b.leases[r.Key]
		if l == nil || l.token != r.Token {
			out.Lost = true
			continue
		}
		delete(b.leases, r.Key) // a second result of one attempt comes too late
		h := b.heads.by[l.subscription]
		out.Single = l.single
		var err error
		if out.Decision, err = b.settle(h, b.subs[l.subscription], l, r); err != nil {
			return err
		}
	}
	return nil
}

// interrupted settles an attempt whose lease ended without a result.
func (b *batch) interrupted(h *head, sub *subscription, l *live, info sender.EventInfo) error {
	r := rules.Lost(l.forDecision(), l.token, l.claimedAt.time(), info.CreatedAt, b.Claim.Chance)
	decision, err := b.settle(h, sub, l, &r)
	if err != nil {
		return err
	}
	target := *sub.Target
	target.Lane = h.health.Lane
	b.out.Interrupted = append(b.out.Interrupted, dispatch.Recorded{Outcome: dispatch.Outcome{Decision: decision, Single: l.single}, Target: &target, Event: info, Result: r})
	return nil
}

// settle stores an attempt whose lease was taken away, and applies what the rules decide
// about it.
func (b *batch) settle(h *head, sub *subscription, l *live, r *dispatch.Result) (dispatch.Decision, error) {
	skipped, err := b.skipped(sub, l)
	if err != nil {
		return dispatch.Decision{}, err
	}
	v, err := rules.Settle(l.forDecision(), h.health, *r, rules.Standing{
		Claimed: l.claimedAt.time(), Gone: sub.gone(), Skipped: skipped, Redacted: l.redacted,
		Settings: sub.Settings, Newer: b.inLines[l.key()].Overtaken(sub.Settings.Order, l.event),
		Resumed: l.epoch < h.epoch, Active: sub.status == statusActive, Closing: sub.status == statusClosing,
	}, b.Decide, b.now.time())
	if err != nil {
		return v.Decision, err
	}
	done := rules.Ended{Result: r, Became: v.Status, Single: l.single, Lane: h.health.Lane}
	h.health = v.Health
	next := none
	if v.Status == sender.StatusAwaitingRetry {
		l.take(&v.Live)
		next = timestampOf(v.Due)
		b.goOn(h, l, next)
	} else {
		b.end(h, l, v.Status, r.Class)
		b.leave(h, sub, l, v.Status)
	}
	rules.CountAttempt(&b.rollup, done)
	b.done = append(b.done, done)
	b.attempts = append(b.attempts, attempt{l, r, v.Snippet, v.Headers, next})
	if sub.Settings.MaxInFlight > 0 && h.pending+h.waiting > 0 {
		h.lower(b.now) // its lease may have kept them back
	}
	if sub.status != statusMissing {
		err = b.consequences(h, sub, l, &v.Decision)
	}
	return v.Decision, err
}

// Ranks of waiting deliveries: see surehook_waiting.
const (
	rankFresh  = 0
	rankReplay = 1
)

// wait puts a delivery that is in no table among the waiting ones.
func (b *batch) wait(h *head, l *live, due timestamp, rank int, replay int64) {
	b.waitAs(h, waits{*l, due, rank, replay})
}

func (b *batch) waitAs(h *head, w waits) {
	h.waiting++
	h.waitingFrom = min(h.waitingFrom, w.due)
	h.lower(w.due)
	w.epoch = h.epoch
	b.waits = append(b.waits, w)
}

// waitResumed makes a delivery without an attempt wait among those of before the last resume,
// which a claim takes first, in the order of the events. It may have looked at them up to there.
func (b *batch) waitResumed(h *head, l *live) {
	h.waiting++
	h.resumedTo = min(h.resumedTo, l.event-1)
	h.lower(b.now)
	w := waits{*l, b.now, rankFresh, 0}
	w.epoch = h.epoch - 1
	b.waits = append(b.waits, w)
}

const selectLastClass = `SELECT class FROM surehook_attempts WHERE event = $1 AND subscription = $2 ORDER BY number DESC LIMIT 1`

// lastClass reads how the last attempt of a delivery ended.
func (b *batch) lastClass(l *live) (class sender.Class, err error) {
	if l.number > 0 {
		err = b.row(selectLastClass, l.event, l.subscription).Scan(&class)
	}
	return class, err
}

// end ends a delivery that is in no table. A delivery that became delivered is noted for
// the replays of delivered ones: it came too late for their sets. See insertLate.
func (b *batch) end(h *head, l *live, status sender.Status, class sender.Class) {
	switch status {
	case sender.StatusDelivered:
		b.fresh = append(b.fresh, l.key())
		return
	case sender.StatusDeadLettered:
		h.dead++
	}
	b.ends = append(b.ends, ended{l.event, l.subscription, status, class})
}
