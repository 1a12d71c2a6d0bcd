package sqlite

import (
	"database/sql"
	"errors"
	"math"

	"github.com/surehook/surehook/sender"
)

const (
	selectDueTurns = `SELECT subscriber FROM surehook_turns WHERE lane = ? AND next_due <= ? ORDER BY next_due, turn LIMIT ? + 0`
	selectNextTurn = `SELECT min(next_due) FROM surehook_turns WHERE lane = ? AND next_due IS NOT NULL`
	// updateTurns puts subscribers where the first of their subscriptions is; at
	// the tail of those that are due, if that one is.
	updateTurns = `UPDATE surehook_turns SET turn = ?1, next_due = max(?2, (SELECT min(h.next_due) FROM surehook_heads h
			WHERE h.lane = surehook_turns.lane AND h.subscriber = surehook_turns.subscriber AND h.next_due IS NOT NULL))
		WHERE lane = ?3 AND subscriber IN (SELECT value FROM json_each(?4))`

	leasePending = `INSERT INTO surehook_leases (subscription, event, until, number, tries, first_at, stood, claimed_at, single, epoch)
		SELECT subscription, event, ?1, 1, 1, ?2, 0, ?2, 0, ?3 FROM surehook_pending WHERE subscription = ?4 AND event > ?5 AND event <= ?6`
	// Pending ones are claimed from the first event on.
	deletePending = `DELETE FROM surehook_pending WHERE subscription = ? AND event > ? AND event <= ?`
	leaseWaiting  = `INSERT INTO surehook_leases (subscription, event, until, number, tries, first_at, stood, claimed_at, single, epoch)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	deleteWaiting = `DELETE FROM surehook_waiting WHERE subscription = ? AND event = ?`
)

// nextDue is when a claim would find something in these lanes, or never.
func (w *work) nextDue(p *sender.ClaimParams) (int64, error) {
	next := int64(never)
	for lane := range p.Lanes {
		if p.Lanes[lane].Slots <= 0 {
			continue
		}
		var due sql.NullInt64
		if err := w.row(selectNextTurn, lane).Scan(&due); err != nil {
			return 0, err
		}
		if due.Valid {
			next = min(next, due.Int64)
		}
	}
	return next, nil
}

// claim lets the subscribers that are due in a lane take turns, then each one's
// subscriptions. What one leaves of its share goes to those behind it.
func (b *batch) claim(lane sender.Lane) error {
	p := b.Claim.Lanes[lane]
	if p.Slots <= 0 {
		return nil
	}
	// Those without room are at most as many as there are entries.
	due, err := b.numbers(selectDueTurns, lane, b.now, p.Slots+len(p.SubscriberRoom)+len(b.Claim.SubscriptionRoom))
	if err != nil {
		return err
	}
	due = withRoom(due, p.SubscriberRoom, p.PerSubscriber)
	served := due[:0:0]
	for i, subscriber := range due {
		if p.Slots <= 0 {
			break
		}
		most := min(share(p.Slots, len(due)-i), roomOf(subscriber, p.SubscriberRoom, p.PerSubscriber))
		given, err := b.claimSubscriber(lane, subscriber, most, p.PerSubscription)
		if err != nil {
			return err
		}
		p.Slots -= given
		served = append(served, subscriber)
	}
	if len(served) == 0 {
		return nil
	}
	if err := b.heads.store(); err != nil {
		return err
	}
	return b.execs(updateTurns, b.store.turns.Add(1), b.now, lane, list(served))
}

func (b *batch) claimSubscriber(lane sender.Lane, subscriber int64, most, perSubscription int) (given int, err error) {
	var due []*head
	err = b.each(func(rows *sql.Rows) (bool, error) {
		h, err := scanHead(rows)
		if err == nil {
			due = append(due, b.heads.put(h))
		}
		return true, err
	}, selectDueHeads, lane, subscriber, b.now, most+len(b.Claim.SubscriptionRoom))
	if err != nil {
		return 0, err
	}
	left := 0
	for _, h := range due {
		if roomOf(h.subscription, b.Claim.SubscriptionRoom, perSubscription) > 0 {
			left++
		}
	}
	for _, h := range due {
		room := roomOf(h.subscription, b.Claim.SubscriptionRoom, perSubscription)
		if room <= 0 {
			continue
		}
		if given == most {
			break
		}
		n, err := b.claimSubscription(h, min(room, share(most-given, left)))
		if err != nil {
			return given, err
		}
		given += n
		left--
	}
	return given, nil
}

// claimSubscription claims a subscription's oldest due deliveries, and returns how
// many of the slots it has used: a lost attempt that ends its delivery uses one
// too, so that a claim's work is bounded.
func (b *batch) claimSubscription(h *head, most int) (used int, err error) {
	sub, err := b.known.subscription(b.work, h.subscription)
	if err != nil {
		return 0, err
	}
	granted, again := b.within(h, sub, most)
	c := claimed{batch: b, h: h, sub: sub, until: b.now + b.Claim.Lease.Microseconds()}
	if used, err = c.claimLost(granted); err != nil {
		return 0, err
	}
	f := found{more: true}
	if granted > used {
		if f, err = b.due(h, granted-used, c.room()); err != nil {
			return 0, err
		}
	}
	for i := range f.due {
		if err := c.claim(&f.due[i]); err != nil {
			return 0, err
		}
	}
	if err := c.leasePending(); err != nil {
		return 0, err
	}
	used += len(f.due)
	b.spend(h, sub, used)
	h.turn = b.store.turns.Add(1)
	switch {
	case c.room() <= 0:
		h.nextDue = h.leasesEnd // or when one of them is recorded
	case f.more:
		h.nextDue = again
	default:
		h.nextDue, err = b.leastOf(h)
	}
	h.nextDue = b.tail(h.nextDue)
	return used, err
}

// leastOf is when something of a subscription that has nothing due is due next.
func (b *batch) leastOf(h *head) (next int64, err error) {
	next = never
	if h.leased > 0 {
		next = h.leasesEnd
	}
	if h.waiting > 0 {
		waiting, err := b.least(selectLeastWaiting, h.subscription, h.epoch)
		if err != nil {
			return 0, err
		}
		next = min(next, waiting)
	}
	return next, nil
}

// claimed is a subscription whose deliveries are being claimed.
type claimed struct {
	*batch
	h      *head
	sub    *subscription
	until  int64
	target *sender.Target
	upTo   int64 // the last pending event to be leased
	fresh  int64 // how many pending ones are
}

// room is how many more its Settings.MaxInFlight leaves.
func (c *claimed) room() int {
	if limit := c.sub.Settings.MaxInFlight; limit > 0 {
		return limit - int(c.h.leased)
	}
	return math.MaxInt
}

// claimLost records attempts whose leases have ended, up to a number, and claims
// again those of their deliveries that are to be attempted now.
func (c *claimed) claimLost(most int) (used int, err error) {
	lost, err := c.lost(c.h, most)
	if err != nil {
		return 0, err
	}
	for i := range lost {
		again, err := c.interrupted(c.h, c.sub, &lost[i])
		if err != nil {
			return 0, err
		}
		// The others that are lost take no room.
		if again && c.h.open && c.room()+len(lost)-i-1 > 0 {
			if err := c.claim(&lost[i]); err != nil {
				return 0, err
			}
		}
	}
	return len(lost), nil
}

func (c *claimed) claim(d *dueDelivery) error {
	if d.redacted {
		return c.cancel(c.h, []live{d.live})
	}
	if !c.h.open { // what was found lost has disabled it
		return nil
	}
	d.number++
	d.tries++
	if d.firstAt == 0 {
		d.firstAt = c.now
	}
	if d.pending {
		c.upTo = d.event
		c.fresh++
	} else {
		if err := c.execs(deleteWaiting, d.subscription, d.event); err != nil {
			return err
		}
		c.h.waiting--
		if err := c.execs(leaseWaiting, d.subscription, d.event, c.until, d.number, d.tries, d.firstAt, d.stood, c.now, d.single, c.h.epoch); err != nil {
			return err
		}
	}
	c.h.lease(c.until)
	if c.target == nil {
		t := c.sub.Target
		t.Lane = c.h.lane
		c.target = &t
	}
	c.out.Claimed = append(c.out.Claimed, sender.Claimed{
		Key: d.key(), Token: int64(d.number), Number: d.number, Target: c.target, Event: d.info, Body: d.body, At: timeOf(c.now),
	})
	return nil
}

func (c *claimed) leasePending() error {
	if c.upTo == 0 {
		return nil
	}
	if err := c.execs(leasePending, c.until, c.now, c.h.epoch, c.h.subscription, c.h.leftTo, c.upTo); err != nil {
		return err
	}
	c.h.pending -= c.fresh
	return c.execs(deletePending, c.h.subscription, c.h.leftTo, c.upTo)
}

// lease counts a lease that ends at until.
func (h *head) lease(until int64) {
	if h.leased == 0 || until < h.leasesEnd {
		h.leasesEnd = until
	}
	h.leased++
}

// tail is where something stands after it was served: at the tail of those that
// are due, if it is due still.
func (b *batch) tail(least int64) int64 { return max(least, b.now) }

// least is the query's one number, or never.
func (w *work) least(query string, args ...any) (int64, error) {
	var n sql.NullInt64
	if err := w.row(query, args...).Scan(&n); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	if !n.Valid {
		return never, nil
	}
	return n.Int64, nil
}

func (w *work) numbers(query string, args ...any) (all []int64, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var n int64
		err := rows.Scan(&n)
		all = append(all, n)
		return true, err
	}, query, args...)
	return all, err
}

// share is a fair part of slots for the first of so many.
func share(slots, of int) int { return (slots + of - 1) / of }

func roomOf(no int64, rooms map[int64]int, otherwise int) int {
	if room, ok := rooms[no]; ok {
		return room
	}
	return otherwise
}

func withRoom(all []int64, rooms map[int64]int, otherwise int) []int64 {
	some := all[:0]
	for _, no := range all {
		if roomOf(no, rooms, otherwise) > 0 {
			some = append(some, no)
		}
	}
	return some
}
