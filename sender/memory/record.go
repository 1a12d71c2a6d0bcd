package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/turns"
	"github.com/surehook/surehook/sender"
)

// batch is one RecordAndClaim at work.
type batch struct {
	*sender.Batch
	tx      *Tx
	now     time.Time
	targets map[int64]*sender.Target
	notices []sender.Notice  // stored so far
	rollup  sender.Rollup    // what was done so far
	bytes   *turns.Bytes     // of the bodies of what is claimed
	bodies  map[int64][]byte // of what was claimed, by the events' numbers
	aside   []*subscription  // out of line until the end: other processes hold them
}

// RecordAndClaim implements sender.DispatchStore.
func (s *Store) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	var c sender.Claims
	err := s.inTx(ctx, func(tx *Tx) error {
		w := &batch{Batch: &b, tx: tx, now: s.now(), targets: map[int64]*sender.Target{}, bytes: turns.NewBytes(b.Claim.Bytes), bodies: map[int64][]byte{}}
		c.Now = w.now
		defer func() { // panics included: a rollback knows nothing of them
			for _, sub := range w.aside {
				s.line(sub)
			}
		}()
		tx.turnRollup(w.now)
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
		if w.rollup.Attempts() > 0 {
			tx.tally(&w.rollup)
		}
		return nil
	})
	if err != nil {
		return sender.Claims{}, err
	}
	return c, nil
}

// record stores what came of an attempt, if its lease was not lost.
func (w *batch) record(r sender.Result) (sender.Outcome, error) {
	d := w.tx.store.deliveries[r.Key]
	if d == nil || !d.holds(r.Token) {
		return sender.Outcome{Lost: true}, nil
	}
	recorded, err := w.settle(d, r)
	return recorded.Outcome, err
}

// holds tells whether a delivery is leased under a token. The lease's end does
// not matter as long as nobody else has claimed it.
func (d *delivery) holds(token int64) bool {
	return d.live != nil && !d.live.leased.IsZero() && d.live.token == token
}

// settle stores the attempt in hand of a delivery, and what is decided of it.
func (w *batch) settle(d *delivery, r sender.Result) (sender.Recorded, error) {
	recorded := sender.Recorded{Result: r, Event: d.event.info, Target: d.target(w.targets)}
	row, sub := *d.live, d.sub
	attempt := sender.Attempt{
		Number: row.number, StartedAt: r.StartedAt, Duration: r.Duration,
		StatusCode: r.StatusCode, Class: r.Class, Error: r.Error, Snippet: bytes.Clone(r.Snippet),
	}
	dec, err := w.decide(d, r)
	if err != nil {
		return recorded, err
	}
	recorded.Decision = dec
	w.rollup.AddAttempt(&r, dec.Status, row.single)
	switch dec.Status {
	case sender.StatusAwaitingRetry:
		attempt.NextAttemptAt = dec.Due
		row.due, row.leased = dec.Due, time.Time{}
		row.stood += dec.Stands
		row.spared = dec.Spared
		if dec.Uncounted {
			row.tries--
		}
		w.tx.setLive(d, &row)
	case sender.StatusDelivered, sender.StatusDeadLettered, sender.StatusCancelled:
		w.tx.end(d, dec.Status)
	default:
		return recorded, fmt.Errorf("%w decision: status %q: it must be delivered, awaiting_retry or dead_lettered", sender.ErrInvalid, dec.Status)
	}
	if d.event.redacted {
		attempt.Snippet = nil
	}
	set(w.tx, &d.attempts, append(d.attempts, attempt))
	if dec.Health != sub.Health {
		if int(dec.Health.Lane) >= sender.Lanes {
			return recorded, fmt.Errorf("%w decision: lane %d: there are %d", sender.ErrInvalid, dec.Health.Lane, sender.Lanes)
		}
		w.tx.change(sub, func() { set(w.tx, &sub.Health, dec.Health) })
		delete(w.targets, sub.no) // it can have moved to another lane
	}
	if dec.Disable != "" {
		w.tx.hold(sub, sender.SubscriptionDisabled, dec.Disable, w.now)
	}
	for _, n := range dec.Notices {
		if err := w.notify(n); err != nil {
			return recorded, err
		}
	}
	return recorded, nil
}

// decide asks what becomes of a delivery and of its subscription, and leaves out
// what does not apply to them as they are.
func (w *batch) decide(d *delivery, r sender.Result) (dec sender.Decision, err error) {
	row, sub := d.live, d.sub
	dec.Health = sub.Health
	switch {
	case w.Decide != nil && !sub.deleted:
		dec = w.Decide(sender.Live{
			Key: r.Key, Number: row.number, Tries: row.tries, First: row.first, Single: row.single,
			Stood: row.stood, Notice: d.event.info.Notice, Spared: row.spared,
		}, sub.Health, r, w.now)
	case !d.cancelled():
		return dec, fmt.Errorf("%w batch: it needs Decide", sender.ErrInvalid)
	}
	var dropped []sender.NoticeKind
	if d.cancelled() {
		dec.Status = row.cancelled(r.Class)
		dropped = append(dropped, sender.NoticeDeadLettered)
	}
	if dec.Disable != "" && sub.Status != sender.SubscriptionActive {
		dec.Disable = ""
		dropped = append(dropped, sender.NoticeDisabled)
	}
	given := dec.Notices
	dec.Notices = nil
	for _, n := range given {
		if !slices.Contains(dropped, n.Kind) {
			n.Subscriber = cmp.Or(n.Subscriber, sub.owner.ID)
			n.Subscription, n.Delivery, n.CreatedAt = sub.ID, d.id(), w.now
			dec.Notices = append(dec.Notices, n)
		}
	}
	return dec, nil
}
