package sqlite

import (
	"context"
	"database/sql"
	"maps"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	selectUnexpanded = `SELECT x.event < coalesce((SELECT max(seq) FROM surehook_events), 0) FROM surehook_expanded x`
	selectExpanded   = `SELECT event, subscription FROM surehook_expanded`
	updateExpanded   = `UPDATE surehook_expanded SET event = ?, subscription = ?`
	selectNewEvents  = `SELECT seq, type, subscriber, subscription, length(body) = 0, about FROM surehook_events WHERE seq > ? ORDER BY seq LIMIT ? + 0`
	asksByName       = `SELECT EXISTS (SELECT 1 FROM surehook_patterns WHERE pattern = ?1 AND subscription = ?2 AND since < ?3 AND ?3 <= until)`
)

// newPending inserts many rows.
var newPending = newManyRows(`INSERT OR FAIL INTO surehook_pending (subscription, event, due) VALUES `, `(?, ?, ?)`)

// expansion is one Expand at work.
type expansion struct {
	*batch
	p sender.ExpandParams
	x sender.Expanded

	event        int64 // the last one that is expanded whole
	subscription int64 // how far the next one is

	made    []any         // rows of newPending,
	due     any           // of all of them
	touched map[int64]int // how many each subscription got
}

// Expand implements sender.DispatchStore.
func (s *Store) Expand(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
	x, _, err := s.Step(ctx, p, sender.Batch{})
	return x, err
}

// unexpanded tells whether there is something to expand.
func (w *work) unexpanded() (some bool, err error) {
	err = w.row(selectUnexpanded).Scan(&some)
	return some, err
}

// expand makes the deliveries of new events.
func (b *batch) expand(p sender.ExpandParams) error {
	if p.Events <= 0 {
		return nil
	}
	e := expansion{batch: b, p: p, due: b.now, touched: map[int64]int{}}
	if err := e.run(); err != nil {
		return err
	}
	b.expanded = e.x
	b.rollup.AddExpanded(e.x)
	return nil
}

// newEvent is what decides who gets an event.
type newEvent struct {
	seq          int64
	eventType    string
	subscriber   int64
	subscription int64
	redacted     bool
	about        int64
}

func (e *expansion) run() error {
	if err := e.row(selectExpanded).Scan(&e.event, &e.subscription); err != nil {
		return err
	}
	events := make([]newEvent, 0, min(e.p.Events, 1024)+1)
	var ev newEvent
	var eventType sql.RawBytes
	columns := []any{&ev.seq, &eventType, &ev.subscriber, &ev.subscription, &ev.redacted, &ev.about}
	err := e.each(func(rows *sql.Rows) (bool, error) {
		err := rows.Scan(columns...)
		if n := len(events); n > 0 && events[n-1].eventType == string(eventType) {
			ev.eventType = events[n-1].eventType
		} else {
			ev.eventType = string(eventType)
		}
		events = append(events, ev)
		return true, err
	}, selectNewEvents, e.event, e.p.Events+1)
	if err != nil || len(events) == 0 {
		return err
	}
	e.made = make([]any, 0, len(events)*newPending.columns)
	for _, ev := range events {
		if e.x.Events == e.p.Events || e.x.Deliveries >= e.p.Deliveries {
			e.x.More = true
			break
		}
		whole, err := e.expandOne(ev)
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

// expandOne makes an event's deliveries from e.subscription on, and returns false if
// there may be more of them.
func (e *expansion) expandOne(ev newEvent) (whole bool, err error) {
	if ev.redacted {
		return true, nil
	}
	found, upTo, err := e.matches(ev)
	if err != nil {
		return false, err
	}
	for _, a := range found {
		gets := a.since < ev.seq && ev.seq <= a.until
		if gets && a.subscription == ev.about && ev.subscription == 0 {
			if gets, err = e.asksByName(ev); err != nil {
				return false, err
			}
		}
		if gets {
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
		if err != nil || sub.gone() || sub.status == statusMissing || ev.subscription <= e.subscription {
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

// asksByName tells whether the subscription that an event tells of asks for exactly its
// type.
func (e *expansion) asksByName(ev newEvent) (asks bool, err error) {
	err = e.row(asksByName, ev.eventType, ev.about, ev.seq).Scan(&asks)
	return asks, err
}

func (e *expansion) deliver(event, subscription int64) {
	e.made = append(e.made, subscription, event, e.due)
	e.touched[subscription]++
	e.x.Deliveries++
}

func (e *expansion) store() error {
	if err := e.execMany(newPending, e.made); err != nil {
		return err
	}
	if err := e.heads.load(slices.Sorted(maps.Keys(e.touched))); err != nil {
		return err
	}
	for no, n := range e.touched {
		h := e.heads.by[no]
		h.pending += int64(n)
		h.lower(e.now)
	}
	return e.execs(updateExpanded, e.event, e.subscription)
}
