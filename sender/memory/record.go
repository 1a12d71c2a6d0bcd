package memory

import (
	"bytes"
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// batch is the work of a method that claims, records or replays, in one transaction.
type batch struct {
	*dispatch.Batch
	tx      *Tx
	now     time.Time
	targets map[int64]*dispatch.Target
	notices []sender.Notice  // stored so far
	rollup  history.Rollup   // what was done so far
	bytes   *rules.Bytes     // of the bodies of what is claimed
	bodies  map[int64][]byte // of what was claimed, by the numbers of the events
	aside   aside            // the subscriptions that other processes hold
}

// Step implements dispatch.Store.
func (s *Store) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (x dispatch.Expanded, c dispatch.Claims, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		w := &batch{Batch: &b, tx: tx, now: s.now(), targets: map[int64]*dispatch.Target{}, bytes: rules.NewBytes(b.Claim.Bytes), bodies: map[int64][]byte{}, aside: aside{store: s}}
		c.Now = w.now
		defer w.aside.comeBack()
		tx.beginMinute(w.now)
		if p.Events > 0 {
			x = tx.expand(p, w.now)
			rules.CountExpanded(&w.rollup, x)
		}
		for _, r := range b.Results {
			outcome, err := w.record(r)
			if err != nil {
				return err
			}
			c.Recorded = append(c.Recorded, outcome)
		}
		for lane := range b.Claim.Lanes {
			if err := w.claim(sender.Lane(lane), &c); err != nil {
				return err
			}
		}
		if b.Claim.By.Beat != 0 && len(c.Claimed) > 0 {
			setKey(tx, s.processes, b.Claim.By.Process, b.Claim.By.Beat)
		}
		for _, n := range b.Notices {
			if err := w.notify(n); err != nil {
				return err
			}
		}
		c.Notices, c.NextDue = w.notices, s.nextDue()
		if w.rollup.Attempts() > 0 || x.Events+x.Deliveries > 0 {
			tx.tally(&w.rollup)
		}
		return nil
	})
	if err != nil {
		return dispatch.Expanded{}, dispatch.Claims{}, err
	}
	return x, c, nil
}

// record stores the result of an attempt, unless its lease was lost.
func (w *batch) record(r dispatch.Result) (dispatch.Outcome, error) {
	d := w.tx.store.deliveries[r.Key]
	if d == nil || !d.holds(r.Token) {
		return dispatch.Outcome{Lost: true}, nil
	}
	recorded, err := w.settle(d, r)
	return recorded.Outcome, err
}

// holds tells whether a delivery is leased under a token. The lease's end does
// not matter as long as nobody else has claimed it.
func (d *delivery) holds(token int64) bool {
	return d.live != nil && !d.live.leased.IsZero() && d.live.token == token
}

// settle stores the attempt in hand of a delivery, and what the rules decide of it.
func (w *batch) settle(d *delivery, r dispatch.Result) (dispatch.Recorded, error) {
	recorded := dispatch.Recorded{Result: r, Event: d.event.info, Target: d.target(w.targets)}
	row, sub := *d.live, d.sub
	line := d.line()
	v, err := rules.Settle(d.forDecision(), sub.Health, r, rules.Standing{
		Claimed: row.leased, Gone: sub.deleted, Skipped: row.dropped, Redacted: d.event.redacted,
		Settings: &sub.Settings, Newer: line.Overtaken(sub.Settings.Order, d.event.no), Resumed: row.resumed,
		Active: sub.Status == sender.SubscriptionActive && !sub.deleted, Closing: sub.Status == sender.SubscriptionClosing,
	}, w.Decide, w.now)
	if err != nil {
		return recorded, err
	}
	recorded.Decision, recorded.Single = v.Decision, row.single
	attempt := sender.Attempt{
		Number: row.number, StartedAt: r.StartedAt, Duration: r.Duration,
		StatusCode: r.StatusCode, Class: r.Class, Error: r.Error, Snippet: bytes.Clone(v.Snippet), Headers: v.Headers,
	}
	ended := rules.Ended{Result: &r, Became: v.Status, Single: row.single, Lane: sub.Health.Lane}
	rules.CountAttempt(&w.rollup, ended)
	w.tx.countHour(w.now, sub.no, func(r *history.SubscriptionRollup) { rules.CountSubscriptionAttempt(r, ended) })
	if v.Status == sender.StatusAwaitingRetry {
		attempt.NextAttemptAt = v.Due
		row.due, row.leased = v.Due, time.Time{}
		row.take(&v.Live)
		w.tx.goOn(d, &row, line)
	} else {
		w.tx.end(d, v.Status)
	}
	set(w.tx, &d.attempts, append(d.attempts, attempt))
	if v.Health != sub.Health {
		w.tx.change(sub, func() { set(w.tx, &sub.Health, v.Health) })
		delete(w.targets, sub.no) // it can have moved to another lane
	}
	if v.Disable != "" {
		w.tx.hold(sub, sender.SubscriptionDisabled, v.Disable, w.now)
	}
	for _, n := range rules.Notices(&v.Decision, sub.owner.ID, sub.ID) {
		n.Delivery = d.id()
		if err := w.notify(n); err != nil {
			return recorded, err
		}
	}
	return recorded, nil
}
