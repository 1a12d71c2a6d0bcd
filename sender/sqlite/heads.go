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
	nextDue      int64
	turn         int64
	health       sender.Health
}

const headColumns = `subscription, subscriber, lane, coalesce(next_due, 9223372036854775807), turn, streak, failing_since, last_success, last_failure`

const (
	selectHeads    = `SELECT ` + headColumns + ` FROM surehook_heads WHERE subscription IN (SELECT value FROM json_each(?))`
	selectDueHeads = `SELECT ` + headColumns + ` FROM surehook_heads
		WHERE lane = ? AND subscriber = ? AND next_due <= ? ORDER BY next_due, turn LIMIT ? + 0`
	// updateHeads takes rows of [subscription, next_due or null, turn].
	updateHeads = `UPDATE surehook_heads SET next_due = j.value ->> 1, turn = j.value ->> 2
		FROM json_each(?) j WHERE subscription = j.value ->> 0`
	updateHealth = `UPDATE surehook_heads SET lane = ?, streak = ?, failing_since = ?, last_success = ?, last_failure = ? WHERE subscription = ?`
	lowerTurn    = `UPDATE surehook_turns SET next_due = ?1 WHERE lane = ?2 AND subscriber = ?3 AND (next_due IS NULL OR next_due > ?1)`
)

func scanHead(rows *sql.Rows) (h head, err error) {
	var failingSince, lastSuccess, lastFailure int64
	err = rows.Scan(&h.subscription, &h.subscriber, &h.lane, &h.nextDue, &h.turn, &h.health.Streak, &failingSince, &lastSuccess, &lastFailure)
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

// lower makes a subscription due no later than at.
func (h *head) lower(at int64) { h.nextDue = min(h.nextDue, at) }

// store writes what has changed. The subscribers' turns become due no later than
// their subscriptions.
func (hs *heads) store() error {
	var changed []int64
	for no, h := range hs.by {
		if *h != hs.stored[no] {
			changed = append(changed, no)
		}
	}
	slices.Sort(changed)
	rows := []byte{'['}
	for _, no := range changed {
		h, was := hs.by[no], hs.stored[no]
		if h.health != was.health {
			h.lane = h.health.Lane
			err := hs.w.execs(updateHealth, h.lane, h.health.Streak, micros(h.health.FailingSince),
				micros(h.health.LastSuccess), micros(h.health.LastFailure), no)
			if err != nil {
				return err
			}
		}
		if h.nextDue != was.nextDue || h.turn != was.turn {
			rows = h.appendRow(rows)
		}
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
	return hs.w.execs(updateHeads, string(append(rows, ']')))
}

func (h *head) appendRow(b []byte) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = strconv.AppendInt(append(b, '['), h.subscription, 10)
	if h.nextDue == never {
		b = append(b, ",null,"...)
	} else {
		b = append(strconv.AppendInt(append(b, ','), h.nextDue, 10), ',')
	}
	return append(strconv.AppendInt(b, h.turn, 10), ']')
}
