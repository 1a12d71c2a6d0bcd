package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	// selectNext is what is due next in each lane, and the leases' next end.
	selectNext = `SELECT
		coalesce((SELECT min(next_due) FROM surehook_turns WHERE lane = 0 AND next_due IS NOT NULL), 9223372036854775807),
		coalesce((SELECT min(next_due) FROM surehook_turns WHERE lane = 1 AND next_due IS NOT NULL), 9223372036854775807),
		coalesce((SELECT min(next_due) FROM surehook_turns WHERE lane = 2 AND next_due IS NOT NULL), 9223372036854775807),
		next_end FROM surehook_leases`
	selectLeases = `SELECT turn, leases FROM surehook_leases`
	updateLeases = `UPDATE surehook_leases SET next_end = ?, turn = ?, leases = ?`

	insertWaiting = `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first, single) VALUES (?, ?, ?, ?, ?, ?, ?)`
	insertEnded   = `INSERT INTO surehook_ended (subscription, event, status) VALUES (?, ?, ?)`
)

// batch is one RecordAndClaim, or a part of it, at work.
type batch struct {
	*work
	*sender.Batch
	now      int64
	known    *known
	heads    *heads
	leases   *leases
	turn     int64 // turns so far
	attempts map[int64][]attempt
	targets  map[int64]*sender.Target
	claims   sender.Claims
}

// newBatch reads what all batches need.
func (s *Store) newBatch(w *work, b *sender.Batch) (*batch, error) {
	k, err := s.registry(w)
	if err != nil {
		return nil, err
	}
	out := &batch{work: w, Batch: b, now: s.now(), known: k, heads: newHeads(w), attempts: map[int64][]attempt{}, targets: map[int64]*sender.Target{}}
	var packed []byte
	if err := w.row(selectLeases).Scan(&out.turn, &packed); err != nil {
		return nil, err
	}
	if out.leases, err = unpackLeases(packed); err != nil {
		return nil, err
	}
	out.claims.Now = timeOf(out.now)
	return out, nil
}

// store writes what the batch has changed.
func (b *batch) store() error {
	if err := b.heads.store(); err != nil {
		return err
	}
	for subscription, all := range b.attempts {
		if err := b.storeAttempts(subscription, all); err != nil {
			return err
		}
	}
	if !b.leases.dirty {
		return nil
	}
	packed := b.leases.pack()
	return b.execs(updateLeases, b.leases.nextEnd(), b.turn, packed)
}

// RecordAndClaim implements sender.DispatchStore.
func (s *Store) RecordAndClaim(ctx context.Context, in sender.Batch) (sender.Claims, error) {
	const doing = "recording and claiming"
	if len(in.Results) == 0 {
		if c, idle, err := s.idle(ctx, &in.Claim); err != nil || idle {
			return c, fail(doing, err)
		}
	}
	var c sender.Claims
	err := s.write(ctx, func(w *work) error {
		b, err := s.newBatch(w, &in)
		if err == nil {
			err = b.run()
		}
		if err != nil {
			return fail(doing, err)
		}
		c = b.claims
		return nil
	})
	if err != nil {
		return sender.Claims{}, err
	}
	return c, nil
}

// idle tells that there is nothing to claim, without waiting for the writer.
func (s *Store) idle(ctx context.Context, p *sender.ClaimParams) (c sender.Claims, idle bool, err error) {
	now := s.now()
	n, err := scanNext(s.db.QueryRowContext(ctx, selectNext))
	if err != nil {
		return c, false, err
	}
	for lane := range p.Lanes {
		if p.Lanes[lane].Slots > 0 && min(n.lanes[lane], n.end) <= now {
			return c, false, nil
		}
	}
	return sender.Claims{Now: timeOf(now), NextDue: n.due()}, true, nil
}

// next is when something is due next.
type next struct {
	lanes [3]int64
	end   int64 // of a lease
}

// A lane more or less is one in selectNext too.
var _ = next{lanes: [sender.Lanes]int64{}}

func scanNext(row *sql.Row) (n next, err error) {
	err = row.Scan(&n.lanes[0], &n.lanes[1], &n.lanes[2], &n.end)
	if n.end == 0 {
		n.end = never
	}
	return n, err
}

func (n next) due() time.Time {
	if due := min(slices.Min(n.lanes[:]), n.end); due != never {
		return timeOf(due)
	}
	return time.Time{}
}

func (b *batch) run() error {
	if err := b.recordAll(); err != nil {
		return err
	}
	if err := b.heads.store(); err != nil { // claims read what recordings changed
		return err
	}
	b.targets = map[int64]*sender.Target{} // they may have moved some to another lane
	if err := b.claimAll(); err != nil {
		return err
	}
	if err := b.store(); err != nil {
		return err
	}
	n, err := scanNext(b.row(selectNext))
	b.claims.NextDue = n.due()
	return err
}

// target is shared by the deliveries of a batch.
func (b *batch) target(sub *subscription, h *head) *sender.Target {
	t := b.targets[sub.SubscriptionNo]
	if t == nil {
		c := sub.Target
		c.Lane = h.health.Lane
		t = &c
		b.targets[sub.SubscriptionNo] = t
	}
	return t
}

// waiting is a row of a delivery that was in flight before, or was sent again.
type waiting struct {
	key    sender.DeliveryKey
	due    int64
	number int64
	tries  int64
	first  int64
	single bool
}

// wait puts a delivery aside until it is due. It leaves it to the caller to make
// its subscription due: a deleted one never is.
func (b *batch) wait(h *head, row waiting) error {
	h.waitingDue = min(h.waitingDue, row.due)
	return b.execs(insertWaiting, row.key.Subscription, row.key.Event, row.due, row.number, row.tries, row.first, row.single)
}

// end stores that a delivery ended otherwise than delivered.
func (b *batch) end(key sender.DeliveryKey, status sender.Status) error {
	return b.execs(insertEnded, key.Subscription, key.Event, string(status))
}

// headOf returns that of a subscription which must have one.
func (b *batch) headOf(subscription int64) (*head, error) {
	if h := b.heads.by[subscription]; h != nil {
		return h, nil
	}
	if err := b.heads.load([]int64{subscription}); err != nil {
		return nil, err
	}
	if h := b.heads.by[subscription]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("subscription number %d has no head: %w", subscription, sql.ErrNoRows)
}
