package sqlite

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"
	"strings"

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

	// What may be claimed of a subscription, each with its event. One text stands
	// for four, because every column costs; only the last of them may hold a space.
	eventColumns  = `e.seq, e.id || ' ' || e.type || ' ' || e.object_type || ' ' || e.object_id, e.body`
	selectPending = `SELECT ` + eventColumns + `, p.due FROM surehook_pending p JOIN surehook_events e ON e.seq = p.event
		WHERE p.subscription = ? ORDER BY p.event LIMIT ? + 0`
	selectDueWaiting = `SELECT ` + eventColumns + `, w.due, w.number, w.tries, w.first_at, w.single
		FROM surehook_waiting w JOIN surehook_events e ON e.seq = w.event
		WHERE w.subscription = ? AND w.due <= ? ORDER BY w.due LIMIT ? + 0`
	selectLost = `SELECT ` + eventColumns + `, l.until, l.number, l.tries, l.first_at, l.single, l.claimed_at
		FROM surehook_leases l JOIN surehook_events e ON e.seq = l.event
		WHERE l.subscription = ? AND l.until <= ? ORDER BY l.until LIMIT ? + 0`

	// Pending ones are claimed from the first event on.
	leasePending = `INSERT INTO surehook_leases (subscription, event, until, number, tries, first_at, claimed_at, single)
		SELECT subscription, event, ?1, 1, 1, ?2, ?2, 0 FROM surehook_pending WHERE subscription = ?3 AND event <= ?4`
	deletePending = `DELETE FROM surehook_pending WHERE subscription = ? AND event <= ?`
	leaseWaiting  = `INSERT INTO surehook_leases (subscription, event, until, number, tries, first_at, claimed_at, single) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	deleteWaiting = `DELETE FROM surehook_waiting WHERE subscription = ? AND event = ?`

	selectLeastUntil   = `SELECT min(until) FROM surehook_leases WHERE subscription = ?`
	selectLeastWaiting = `SELECT min(due) FROM surehook_waiting WHERE subscription = ?`
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
	due, more, err := b.due(h, most)
	if err != nil {
		return 0, err
	}
	c := claimed{batch: b, h: h, sub: sub, until: b.now + b.Claim.Lease.Microseconds()}
	for i := range due {
		if err := c.claim(&due[i]); err != nil {
			return 0, err
		}
	}
	if err := c.leasePending(); err != nil {
		return 0, err
	}
	h.turn = b.store.turns.Add(1)
	h.nextDue = b.now
	if !more {
		h.nextDue, err = b.leastOf(h.subscription)
	}
	h.nextDue = b.tail(h.nextDue)
	return len(due), err
}

// due returns the first so many of a subscription's due deliveries, and whether
// there are more.
func (b *batch) due(h *head, most int) (due []dueDelivery, more bool, err error) {
	var info string
	var event [9]any
	add := func(scan func(rows *sql.Rows, d *dueDelivery, event []any) error) func(*sql.Rows) (bool, error) {
		return func(rows *sql.Rows) (bool, error) {
			due = append(due, dueDelivery{live: live{subscription: h.subscription}})
			d := &due[len(due)-1]
			event[0], event[1], event[2] = &d.event, &info, &d.body
			if err := scan(rows, d, event[:3]); err != nil {
				return false, err
			}
			d.info = eventInfo(info)
			return true, nil
		}
	}
	err = b.each(add(func(rows *sql.Rows, d *dueDelivery, event []any) error {
		return rows.Scan(append(event, &d.due, &d.number, &d.tries, &d.firstAt, &d.single, &d.claimedAt)...)
	}), selectLost, h.subscription, b.now, most+1)
	if err == nil {
		err = b.each(add(func(rows *sql.Rows, d *dueDelivery, event []any) error {
			return rows.Scan(append(event, &d.due, &d.number, &d.tries, &d.firstAt, &d.single)...)
		}), selectDueWaiting, h.subscription, b.now, most+1)
	}
	other := len(due)
	if err == nil {
		err = b.each(add(func(rows *sql.Rows, d *dueDelivery, event []any) error {
			d.pending = true
			return rows.Scan(append(event, &d.due)...)
		}), selectPending, h.subscription, most+1)
	}
	if err != nil {
		return nil, false, err
	}
	if other > 0 { // otherwise they are in order
		slices.SortStableFunc(due, func(x, y dueDelivery) int { return cmp.Compare(x.due, y.due) })
	}
	return due[:min(most, len(due))], len(due) > most, nil
}

func eventInfo(text string) (e sender.EventInfo) {
	e.ID, text, _ = strings.Cut(text, " ")
	e.Type, text, _ = strings.Cut(text, " ")
	e.Object.Type, e.Object.ID, _ = strings.Cut(text, " ")
	return e
}

// leastOf is when something of a subscription that has nothing due is due next.
func (b *batch) leastOf(subscription int64) (int64, error) {
	until, err := b.least(selectLeastUntil, subscription)
	if err != nil {
		return 0, err
	}
	waiting, err := b.least(selectLeastWaiting, subscription)
	return min(until, waiting), err
}

// claimed is a subscription whose deliveries are being claimed.
type claimed struct {
	*batch
	h      *head
	sub    *subscription
	until  int64
	target *sender.Target
	upTo   int64 // the last pending event to be leased
}

func (c *claimed) claim(d *dueDelivery) error {
	if d.claimedAt != 0 {
		again, err := c.interrupted(c.h, c.sub, d)
		if err != nil || !again {
			return err
		}
	}
	d.number++
	if d.tries++; d.tries == 1 {
		d.firstAt = c.now
	}
	if d.pending {
		c.upTo = d.event
	} else {
		if err := c.execs(deleteWaiting, d.subscription, d.event); err != nil {
			return err
		}
		if err := c.execs(leaseWaiting, d.subscription, d.event, c.until, d.number, d.tries, d.firstAt, c.now, d.single); err != nil {
			return err
		}
	}
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
	if err := c.execs(leasePending, c.until, c.now, c.h.subscription, c.upTo); err != nil {
		return err
	}
	return c.execs(deletePending, c.h.subscription, c.upTo)
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
