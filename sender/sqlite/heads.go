package sqlite

import (
	"database/sql"
	"math"
	"slices"
	"strconv"

	"github.com/surehook/surehook/sender"
)

// never is when what has nothing to do is due. In the tables it is NULL.
const never = math.MaxInt64

// head is what a subscription's row says of how far its work is, and how it does.
type head struct {
	subscription int64
	subscriber   int64
	lane         sender.Lane
	open         bool
	nextDue      int64
	turn         int64

	pending, waiting, leased, dead int64

	leasesEnd int64
	epoch     int64
	resumedAt int64
	resumedTo int64 // -1: nothing waits since an earlier epoch
	leftTo    int64
	rateAt    int64
	health    sender.Health
}

const headColumns = `subscription, subscriber, lane, open, coalesce(next_due, 9223372036854775807), turn, pending, waiting, leased, dead,
	leases_end, epoch, resumed_at, coalesce(resumed_to, -1), left_to, rate_at, streak, failing_since, last_success, last_failure, warned`

const (
	selectHeads    = `SELECT ` + headColumns + ` FROM surehook_heads WHERE subscription IN (SELECT value FROM json_each(?))`
	selectDueHeads = `SELECT ` + headColumns + ` FROM surehook_heads
		WHERE lane = ? AND subscriber = ? AND next_due <= ? ORDER BY next_due, turn LIMIT ? + 0`
	// updateHeads takes rows as appendRow makes them.
	updateHeads = `UPDATE surehook_heads SET next_due = j.value ->> 1, turn = j.value ->> 2, pending = j.value ->> 3, waiting = j.value ->> 4,
			leased = j.value ->> 5, dead = j.value ->> 6, leases_end = j.value ->> 7, resumed_to = j.value ->> 8, rate_at = j.value ->> 9
		FROM json_each(?) j WHERE subscription = j.value ->> 0`
	updateHealth = `UPDATE surehook_heads SET lane = ?, streak = ?, failing_since = ?, last_success = ?, last_failure = ?, warned = ? WHERE subscription = ?`
	lowerTurn    = `UPDATE surehook_turns SET next_due = ?1 WHERE lane = ?2 AND subscriber = ?3 AND (next_due IS NULL OR next_due > ?1)`
)

func scanHead(rows *sql.Rows) (h head, err error) {
	var failingSince, lastSuccess, lastFailure int64
	err = rows.Scan(&h.subscription, &h.subscriber, &h.lane, &h.open, &h.nextDue, &h.turn, &h.pending, &h.waiting, &h.leased, &h.dead,
		&h.leasesEnd, &h.epoch, &h.resumedAt, &h.resumedTo, &h.leftTo, &h.rateAt,
		&h.health.Streak, &failingSince, &lastSuccess, &lastFailure, &h.health.Warned)
	h.health.Lane = h.lane
	h.health.FailingSince, h.health.LastSuccess, h.health.LastFailure = timeOf(failingSince), timeOf(lastSuccess), timeOf(lastFailure)
	return h, err
}

// heads are those that a transaction works with: as they are stored, and as they
// are to be.
type heads struct {
	w      *work
	by     map[int64]*head
	stored map[int64]head
}

func newHeads(w *work) *heads {
	return &heads{w: w, by: map[int64]*head{}, stored: map[int64]head{}}
}

// load reads those that are not here yet.
func (hs *heads) load(subscriptions []int64) error {
	var missing []int64
	for _, no := range subscriptions {
		if hs.by[no] == nil {
			missing = append(missing, no)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return hs.w.each(func(rows *sql.Rows) (bool, error) {
		h, err := scanHead(rows)
		if err == nil {
			hs.put(h)
		}
		return true, err
	}, selectHeads, list(missing))
}

// one reads a head that must be there.
func (hs *heads) one(subscription int64) (*head, error) {
	if err := hs.load([]int64{subscription}); err != nil {
		return nil, err
	}
	if h := hs.by[subscription]; h != nil {
		return h, nil
	}
	return nil, sql.ErrNoRows
}

// put returns the head that is here already, if there is one: it can be newer than
// what was read.
func (hs *heads) put(h head) *head {
	if here := hs.by[h.subscription]; here != nil {
		return here
	}
	hs.stored[h.subscription] = h
	hs.by[h.subscription] = &h
	return &h
}

// lower makes a subscription due no later than at, if anything of it may be
// claimed.
func (h *head) lower(at int64) {
	if h.open {
		h.nextDue = min(h.nextDue, at)
	}
}

// live is how many deliveries have not ended.
func (h *head) live() int64 { return h.pending + h.waiting + h.leased }

// store writes what has changed. The subscribers' turns become due no later than
// their subscriptions.
func (hs *heads) store() error {
	var changed []int64
	for no, h := range hs.by {
		if !h.open {
			h.nextDue = never
		}
		if *h != hs.stored[no] {
			changed = append(changed, no)
		}
	}
	slices.Sort(changed)
	var counted change
	rows := []byte{'['}
	for _, no := range changed {
		h, was := hs.by[no], hs.stored[no]
		if err := counted.add(hs.w, h, &was); err != nil {
			return err
		}
		if h.health != was.health {
			h.lane = h.health.Lane
			err := hs.w.execs(updateHealth, h.lane, h.health.Streak, micros(h.health.FailingSince),
				micros(h.health.LastSuccess), micros(h.health.LastFailure), h.health.Warned, no)
			if err != nil {
				return err
			}
		}
		rows = h.appendRow(rows)
		if h.nextDue != never && (h.nextDue < was.nextDue || h.lane != was.lane) {
			if err := hs.w.execs(lowerTurn, h.nextDue, h.lane, h.subscriber); err != nil {
				return err
			}
		}
		hs.stored[no] = *h
	}
	if len(rows) == 1 {
		return nil
	}
	if err := counted.store(hs.w); err != nil {
		return err
	}
	return hs.w.execs(updateHeads, string(append(rows, ']')))
}

func (h *head) appendRow(b []byte) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = strconv.AppendInt(append(b, '['), h.subscription, 10)
	for _, n := range [...]int64{h.nextDue, h.turn, h.pending, h.waiting, h.leased, h.dead, h.leasesEnd, h.resumedTo, h.rateAt} {
		b = append(b, ',')
		if n == never || n == -1 {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return append(b, ']')
}
