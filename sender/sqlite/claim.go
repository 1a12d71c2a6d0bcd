package sqlite

import (
	"database/sql"
	"errors"

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
	selectLaterDue      = `SELECT min(due) FROM surehook_deliveries WHERE subscription = ? AND due > ?`
	selectDueDeliveries = `SELECT d.event, d.due, d.number, d.tries, d.first_at, d.claimed_at, d.single,
			e.id, e.type, e.object_type, e.object_id, e.body
		FROM surehook_deliveries d JOIN surehook_events e ON e.seq = d.event
		WHERE d.subscription = ? AND d.due <= ? ORDER BY d.due LIMIT ? + 0`
)

// leaseLive leases deliveries: until, since, since.
var leaseLive = overKeys(`UPDATE surehook_deliveries SET due = ?, claimed_at = ?, number = number + 1, tries = tries + 1,
	first_at = CASE tries WHEN 0 THEN ? ELSE first_at END`)

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
	var due []dueDelivery
	err = b.each(func(rows *sql.Rows) (bool, error) {
		d := dueDelivery{live: live{subscription: h.subscription}}
		var e sender.EventInfo
		err := rows.Scan(&d.event, &d.due, &d.number, &d.tries, &d.firstAt, &d.claimedAt, &d.single, &e.ID, &e.Type, &e.Object.Type, &e.Object.ID, &d.body)
		d.info = e
		due = append(due, d)
		return true, err
	}, selectDueDeliveries, h.subscription, b.now, most+1)
	if err != nil {
		return 0, err
	}
	least := int64(never)
	if len(due) > most {
		least, due = due[most].due, due[:most]
	} else if least, err = b.least(selectLaterDue, h.subscription, b.now); err != nil {
		return 0, err
	}
	var target *sender.Target
	end := b.now + b.Claim.Lease.Microseconds()
	h.nextDue = never
	for i := range due {
		d := &due[i]
		if d.claimedAt != 0 {
			again, err := b.interrupted(h, sub, d)
			if err != nil {
				return 0, err
			}
			if !again {
				continue
			}
		}
		if target == nil {
			t := sub.Target
			t.Lane = h.lane
			target = &t
		}
		number := d.number + 1
		b.leased = append(b.leased, d.event, d.subscription)
		b.out.Claimed = append(b.out.Claimed, sender.Claimed{
			Key: d.key(), Token: int64(number), Number: number, Target: target, Event: d.info, Body: d.body, At: timeOf(b.now),
		})
		least = min(least, end)
	}
	// An interrupted one that waits has lowered the head; what was claimed since
	// is due at the end of its lease.
	h.nextDue, h.turn = b.tail(min(least, h.nextDue)), b.store.turns.Add(1)
	return len(due), nil
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
