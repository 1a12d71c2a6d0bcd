package memory

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

// batch is one RecordAndClaim at work.
type batch struct {
	*sender.Batch
	tx      *Tx
	now     time.Time
	targets map[int64]*sender.Target
}

// RecordAndClaim implements sender.DispatchStore.
func (s *Store) RecordAndClaim(ctx context.Context, b sender.Batch) (sender.Claims, error) {
	var c sender.Claims
	err := s.inTx(ctx, func(tx *Tx) error {
		w := &batch{Batch: &b, tx: tx, now: s.now(), targets: map[int64]*sender.Target{}}
		c.Now = w.now
		for _, r := range b.Results {
			recorded, err := w.record(r)
			if err != nil {
				return err
			}
			c.Recorded = append(c.Recorded, recorded)
		}
		for lane := range b.Claim.Lanes {
			if err := w.claim(sender.Lane(lane), &c); err != nil {
				return err
			}
		}
		c.NextDue = s.nextDue()
		return nil
	})
	if err != nil {
		return sender.Claims{}, err
	}
	return c, nil
}

// record stores what came of an attempt, if its lease was not lost.
func (w *batch) record(r sender.Result) (sender.Recorded, error) {
	d := w.tx.store.deliveries[r.Key]
	if d == nil {
		return sender.Recorded{Lost: true, Result: r}, nil
	}
	if !d.holds(r.Token) {
		return sender.Recorded{Lost: true, Result: r, Event: d.event.info, Target: d.target(w.targets)}, nil
	}
	return w.settle(d, r)
}

// holds tells whether a delivery is leased under a token. The lease's end does
// not matter as long as nobody else has claimed it.
func (d *delivery) holds(token int64) bool {
	return d.live != nil && !d.live.leased.IsZero() && int64(d.live.number) == token
}

// settle stores the attempt in hand of a delivery, and what is decided of it.
func (w *batch) settle(d *delivery, r sender.Result) (sender.Recorded, error) {
	recorded := sender.Recorded{Result: r, Event: d.event.info, Target: d.target(w.targets)}
	row, sub := *d.live, d.sub
	attempt := sender.Attempt{
		Number: row.number, StartedAt: r.StartedAt, Duration: r.Duration,
		StatusCode: r.StatusCode, Class: r.Class, Error: r.Error, Snippet: bytes.Clone(r.Snippet),
	}
	dec := sender.Decision{Health: sub.health}
	if sub.deleted {
		dec.Status = ofDeleted(&row, r.Class)
	} else if w.Decide == nil {
		return recorded, fmt.Errorf("%w batch: it needs Decide", sender.ErrInvalid)
	} else {
		dec = w.Decide(sender.Live{Key: r.Key, Number: row.number, Tries: row.tries, First: row.first, Single: row.single}, sub.health, r, w.now)
	}
	recorded.Decision = dec
	switch dec.Status {
	case sender.StatusAwaitingRetry:
		attempt.NextAttemptAt = dec.Due
		row.due, row.leased = dec.Due, time.Time{}
		w.tx.setLive(d, &row)
	case sender.StatusDelivered:
		w.tx.setLive(d, nil)
	case sender.StatusDeadLettered, sender.StatusCancelled:
		w.tx.setLive(d, nil)
		set(w.tx, &d.ended, dec.Status)
	default:
		return recorded, fmt.Errorf("%w decision: status %q: it must be delivered, awaiting_retry or dead_lettered", sender.ErrInvalid, dec.Status)
	}
	set(w.tx, &d.attempts, append(d.attempts, attempt))
	if dec.Health != sub.health {
		if int(dec.Health.Lane) >= sender.Lanes {
			return recorded, fmt.Errorf("%w decision: lane %d: there are %d", sender.ErrInvalid, dec.Health.Lane, sender.Lanes)
		}
		w.tx.change(sub, func() { set(w.tx, &sub.health, dec.Health) })
		delete(w.targets, sub.no) // it can have moved to another lane
	}
	return recorded, nil
}

// ofDeleted is what an attempt makes of a delivery whose subscription is gone.
func ofDeleted(row *live, class sender.Class) sender.Status {
	if class == sender.ClassNone || row.single {
		return sender.StatusDelivered
	}
	return sender.StatusCancelled
}
