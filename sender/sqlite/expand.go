package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	selectUnexpanded = `SELECT x.event < coalesce((SELECT max(seq) FROM surehook_events), 0) FROM surehook_expanded x`
	selectExpanded   = `SELECT event, subscription FROM surehook_expanded`
	updateExpanded   = `UPDATE surehook_expanded SET event = ?, subscription = ?`
	selectNewEvents  = `SELECT seq, type, subscriber, subscription, length(body) = 0 FROM surehook_events WHERE seq > ? ORDER BY seq LIMIT ? + 0`
	// addPending takes rows of [subscription, how many], and returns whose turn it
	// may be.
	addPending = `UPDATE surehook_heads SET pending = pending + (j.value ->> 1),
			next_due = CASE WHEN open = 0 THEN NULL WHEN next_due IS NULL OR next_due > ?1 THEN ?1 ELSE next_due END
		FROM json_each(?2) j WHERE subscription = j.value ->> 0 RETURNING lane, subscriber, open, subscription`
	lowerTurns = `UPDATE surehook_turns SET next_due = ?1
		WHERE lane = ?2 AND subscriber IN (SELECT value FROM json_each(?3)) AND (next_due IS NULL OR next_due > ?1)`
)

// newPending inserts many rows.
var newPending = manyRows{
	head: `INSERT INTO surehook_pending (subscription, event, due) VALUES `, row: `(?, ?, ?)`, columns: 3,
}

// expansion is one Expand at work.
type expansion struct {
	*work
	known *known
	p     sender.ExpandParams
	x     sender.Expanded
	now   int64

	event        int64 // the last one that is expanded whole
	subscription int64 // how far the next one is

	made    []any         // rows of newPending
	touched map[int64]int // how many each subscription got
}

// Expand implements sender.DispatchStore.
func (s *Store) Expand(ctx context.Context, p sender.ExpandParams) (x sender.Expanded, err error) {
	var some bool
	if err := s.db.QueryRowContext(ctx, selectUnexpanded).Scan(&some); err != nil {
		return x, fail("looking for new events", err)
	}
	if !some {
		return x, nil
	}
	err = s.write(ctx, func(w *work) error {
		k, err := s.registry(w)
		if err != nil {
			return fail("expanding", err)
		}
		e := expansion{work: w, known: k, p: p, now: s.now(), touched: map[int64]int{}}
		if err = s.turnRollup(w, e.now); err == nil {
			err = e.run()
		}
		if x = e.x; err == nil && x.Events+x.Deliveries > 0 {
			var done sender.Rollup
			done.AddExpanded(x)
			err = s.tally(w, e.now, &done)
		}
		return fail("expanding", err)
	})
	if err != nil {
		return sender.Expanded{}, err
	}
	return x, nil
}

// newEvent is what decides who gets an event.
type newEvent struct {
	seq          int64
	eventType    string
	subscriber   int64
	subscription int64
	redacted     bool
}

func (e *expansion) run() error {
	if err := e.row(selectExpanded).Scan(&e.event, &e.subscription); err != nil {
		return err
	}
	var events []newEvent
	var eventType sql.RawBytes
	err := e.each(func(rows *sql.Rows) (bool, error) {
		var ev newEvent
		err := rows.Scan(&ev.seq, &eventType, &ev.subscriber, &ev.subscription, &ev.redacted)
		if n := len(events); n > 0 && events[n-1].eventType == string(eventType) {
			ev.eventType = events[n-1].eventType
		} else {
			ev.eventType = string(eventType)
		}
		events = append(events, ev)
		return true, err
	}, selectNewEvents, e.event, e.p.Events+1)
	if err != nil {
		return err
	}
	for _, ev := range events {
		if e.x.Events == e.p.Events || e.x.Deliveries >= e.p.Deliveries {
			e.x.More = true
			break
		}
		whole, err := e.expand(ev)
		if err != nil {
			return err
		}
		if !whole {
			e.x.More = true
			break
		}
		e.event, e.subscription = ev.seq, 0
		e.x.Events++
	}
	return e.store()
}

// expand makes an event's deliveries from e.subscription on, and returns false if
// there may be more of them.
func (e *expansion) expand(ev newEvent) (whole bool, err error) {
	if ev.redacted {
		return true, nil
	}
	found, upTo, err := e.matches(ev)
	if err != nil {
		return false, err
	}
	for _, a := range found {
		if a.since < ev.seq && ev.seq <= a.until {
			if e.x.Deliveries >= e.p.Deliveries {
				return false, nil
			}
			e.deliver(ev.seq, a.subscription)
		}
		e.subscription = a.subscription
	}
	if upTo < math.MaxInt64 {
		e.subscription = upTo
		return false, nil
	}
	return true, nil
}

// matches is sender.Matches, answered by the tables.
func (e *expansion) matches(ev newEvent) (found []asker, upTo int64, err error) {
	if ev.subscription != 0 {
		sub, err := e.known.subscription(e.work, ev.subscription)
		if err != nil || sub.gone() || ev.subscription <= e.subscription {
			return nil, math.MaxInt64, err
		}
		// An event is addressed to what is not closing; so it came before.
		return []asker{{subscription: ev.subscription, until: everything}}, math.MaxInt64, nil
	}
	limit := e.p.Deliveries + 1
	found, upTo, err = e.known.askers(e.work, asked{ev.eventType, ev.subscriber}, e.subscription, limit)
	if err != nil || ev.subscriber == 0 || e.known.operator == 0 || ev.subscriber == e.known.operator {
		return found, upTo, err
	}
	operators, alsoUpTo, err := e.known.askers(e.work, asked{ev.eventType, e.known.operator}, e.subscription, limit)
	if err != nil || len(operators) == 0 && alsoUpTo == math.MaxInt64 {
		return found, upTo, err
	}
	upTo = min(upTo, alsoUpTo)
	return sorted(slices.Concat(found, operators), upTo), upTo, nil
}

func (e *expansion) deliver(event, subscription int64) {
	e.made = append(e.made, subscription, event, e.now)
	e.touched[subscription]++
	e.x.Deliveries++
}

func (e *expansion) store() error {
	if err := e.execMany(&newPending, e.made); err != nil {
		return err
	}
	if err := e.wakeHeads(); err != nil {
		return err
	}
	return e.execs(updateExpanded, e.event, e.subscription)
}

// wakeHeads counts the deliveries that subscriptions have got, and makes those due
// that are not held, and their subscribers.
func (e *expansion) wakeHeads() error {
	if len(e.touched) == 0 {
		return nil
	}
	var owners [sender.Lanes][]int64
	rows := []byte{'['}
	for _, no := range slices.Sorted(maps.Keys(e.touched)) {
		if len(rows) > 1 {
			rows = append(rows, ',')
		}
		rows = fmt.Appendf(rows, "[%d,%d]", no, e.touched[no])
	}
	var counted change
	err := e.each(func(rows *sql.Rows) (bool, error) {
		var lane sender.Lane
		var owner, no int64
		var open bool
		err := rows.Scan(&lane, &owner, &open, &no)
		switch {
		case err != nil:
		case open:
			owners[lane] = append(owners[lane], owner)
			counted.live += int64(e.touched[no])
		default: // what is deleted gets nothing
			counted.held += int64(e.touched[no])
		}
		return true, err
	}, addPending, e.now, string(append(rows, ']')))
	if err != nil {
		return err
	}
	if err := counted.store(e.work); err != nil {
		return err
	}
	for lane := range owners {
		if len(owners[lane]) == 0 {
			continue
		}
		slices.SortFunc(owners[lane], cmp.Compare)
		if err := e.execs(lowerTurns, e.now, lane, list(slices.Compact(owners[lane]))); err != nil {
			return err
		}
	}
	return nil
}
