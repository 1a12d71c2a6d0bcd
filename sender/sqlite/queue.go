package sqlite

import (
	"database/sql"

	"github.com/surehook/surehook/sender"
)

const (
	selectQueue   = `SELECT event, made_at, events FROM surehook_queues WHERE subscription = ? AND event > ? ORDER BY event`
	selectWaiting = `SELECT event, due, number, tries, first, single FROM surehook_waiting
		WHERE subscription = ?1 AND (due, event) > (?2, ?3) ORDER BY due, event LIMIT ?4`
	deleteWaiting = `DELETE FROM surehook_waiting WHERE subscription = ? AND event IN (SELECT value FROM json_each(?))`
)

// queue is a subscription in its turns. What is due of it comes from three
// sources, each of them oldest first.
type queue struct {
	head   *head
	room   int
	looked bool

	lost []sender.DeliveryKey // leases that have ended

	fresh   []waiting // never claimed
	read    int64     // the event up to which they were read
	noFresh bool      // there are no more

	waits   []waiting
	waited  place // how far they were read; turn is the event
	noWaits bool  // no more are due
	next    int64 // when the first is that is not due; never if there is none

	taken []int64 // the events of those waits that were claimed
}

func newQueue(h *head, room int, lost []sender.DeliveryKey) *queue {
	return &queue{head: h, room: room, lost: lost, read: h.claimed, waited: beginning, next: never}
}

// fill reads on from the sources that have nothing left in memory, about n from
// each, and tells whether anything is due.
func (c *claim) fill(q *queue, n int) (some bool, err error) {
	for len(q.lost) > 0 {
		if le := c.leases.find(q.lost[0]); le != nil && le.end <= c.now {
			break
		}
		q.lost = q.lost[1:] // it was claimed again, in another lane
	}
	if len(q.fresh) == 0 && !q.noFresh {
		if err := c.fillFresh(q, n); err != nil {
			return false, err
		}
	}
	if len(q.waits) == 0 && !q.noWaits {
		if err := c.fillWaits(q, n); err != nil {
			return false, err
		}
	}
	return len(q.lost)+len(q.fresh)+len(q.waits) > 0, nil
}

func (c *claim) fillFresh(q *queue, n int) error {
	q.fresh, q.noFresh = q.fresh[:0], true
	var packed sql.RawBytes
	var events []queued
	return c.each(func(rows *sql.Rows) (bool, error) {
		if len(q.fresh) >= n {
			q.noFresh = false
			return false, nil
		}
		var last, madeAt int64
		if err := rows.Scan(&last, &madeAt, &packed); err != nil {
			return false, err
		}
		var err error
		if events, err = unpackEvents(events[:0], packed, q.read); err != nil {
			return false, err
		}
		for _, e := range events {
			if len(q.fresh) >= n {
				q.noFresh = false
				return false, nil
			}
			q.read = e.event
			switch {
			case !e.left:
				key := sender.DeliveryKey{Event: e.event, Subscription: q.head.subscription}
				// What was made after now, by a clock that went back, is due as well.
				q.fresh = append(q.fresh, waiting{key: key, due: min(madeAt, c.now)})
			case len(q.fresh) == 0: // there is nothing before it, so it need not be read again
				q.head.claimed = e.event
			}
		}
		return true, nil
	}, selectQueue, q.head.subscription, q.read)
}

func (c *claim) fillWaits(q *queue, n int) error {
	if q.head.waitingDue > c.now {
		q.noWaits, q.next = true, min(q.next, q.head.waitingDue)
		return nil
	}
	q.waits = q.waits[:0]
	read := 0
	err := c.each(func(rows *sql.Rows) (bool, error) {
		read++
		row := waiting{key: sender.DeliveryKey{Subscription: q.head.subscription}}
		if err := rows.Scan(&row.key.Event, &row.due, &row.number, &row.tries, &row.first, &row.single); err != nil {
			return false, err
		}
		if row.due > c.now {
			q.noWaits, q.next = true, min(q.next, row.due)
			return false, nil
		}
		q.waits = append(q.waits, row)
		q.waited = place{due: row.due, turn: row.key.Event}
		return true, nil
	}, selectWaiting, q.head.subscription, q.waited.due, q.waited.turn, n)
	if read < n {
		q.noWaits = true
	}
	return err
}

// take leases what is due first of a queue that has something, unless the end of
// its last attempt, if that was lost, is also the delivery's, or puts it off.
func (c *claim) take(q *queue) (claimed bool, err error) {
	row, ok, err := c.first(q)
	if err != nil || !ok {
		return false, err
	}
	le := lease{
		key: row.key, claimedAt: c.now, end: c.now + c.Claim.Lease.Microseconds(),
		number: row.number + 1, tries: row.tries + 1, first: row.first, single: row.single,
	}
	if le.first == 0 {
		le.first = c.now
	}
	c.leases.add(le)
	sub, err := c.known.subscription(c.work, row.key.Subscription)
	if err != nil {
		return false, err
	}
	c.claims.Claimed = append(c.claims.Claimed, sender.Claimed{
		Key: row.key, Token: le.number, Number: int(le.number), Target: c.target(sub, q.head), At: c.claims.Now,
	})
	return true, nil
}

// first takes what is due first out of its source. ok is false if that was a lost
// attempt, and the last for now.
func (c *claim) first(q *queue) (row waiting, ok bool, err error) {
	var le *lease
	end := int64(never)
	if len(q.lost) > 0 {
		le = c.leases.find(q.lost[0])
		end = le.end
	}
	switch {
	case len(q.waits) > 0 && q.waits[0].due <= end && (len(q.fresh) == 0 || !q.fresh[0].before(&q.waits[0])):
		row, q.waits = q.waits[0], q.waits[1:]
		q.taken = append(q.taken, row.key.Event)
		return row, true, nil
	case len(q.fresh) > 0 && q.fresh[0].due <= end:
		row, q.fresh = q.fresh[0], q.fresh[1:]
		q.head.claimed = row.key.Event
		return row, true, nil
	}
	q.lost = q.lost[1:]
	row = waiting{key: le.key, number: le.number, tries: le.tries, first: le.first, single: le.single}
	dec, err := c.interrupt(q.head, le)
	if err != nil || dec.Status != sender.StatusAwaitingRetry {
		return row, false, err
	}
	if due := dec.Due.UnixMicro(); due > c.now {
		q.next = min(q.next, due)
		return row, false, nil
	}
	return row, true, nil
}

func (w *waiting) before(other *waiting) bool {
	return w.due < other.due || w.due == other.due && w.key.Event < other.key.Event
}

// interrupt records an attempt whose lease has ended.
func (c *claim) interrupt(h *head, le *lease) (sender.Decision, error) {
	sub, err := c.known.subscription(c.work, le.key.Subscription)
	if err != nil {
		return sender.Decision{}, err
	}
	r, t := interrupted(le, c.Claim.Chance), c.target(sub, h)
	dec, err := c.settle(le, &r, true)
	c.claims.Interrupted = append(c.claims.Interrupted, sender.Recorded{Decision: dec, Target: t, Result: r})
	return dec, err
}

// endQueue removes what was taken and says when the subscription is due next: at
// once, at the tail, if there is more.
func (c *claim) endQueue(q *queue) error {
	h := q.head
	switch {
	case len(q.waits) > 0:
		h.waitingDue = q.waits[0].due
	case !q.noWaits:
		h.waitingDue = q.waited.due
	default:
		h.waitingDue = q.next
	}
	h.nextDue = q.next
	if len(q.lost)+len(q.fresh)+len(q.waits) > 0 || !q.noFresh || !q.noWaits {
		h.nextDue = c.now
	}
	if len(q.taken) == 0 {
		return nil
	}
	return c.execs(deleteWaiting, h.subscription, list(q.taken))
}
