package sqlite

import (
	"database/sql"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/fanout"
	"github.com/surehook/surehook/sender/rules"
)

const (
	selectAnyUnexpanded = `SELECT x.event < coalesce((SELECT max(seq) FROM surehook_events), 0) FROM surehook_expanded x`
	selectExpanded      = `SELECT event, seen FROM surehook_expanded`
	updateExpanded      = `UPDATE surehook_expanded SET event = ?, seen = ?`
	expandColumns       = `e.seq, e.type, e.subscriber, e.subscription, length(e.body), e.about`
	newEvents           = ` FROM surehook_events e WHERE e.seq > ? ORDER BY e.seq LIMIT ? + 0`
	selectNewEvents     = `SELECT ` + expandColumns + newEvents
	selectNewBodies     = `SELECT ` + expandColumns + `, iif(length(e.body) <= 2048, e.body, NULL)` + newEvents // see smallBody
	selectUnexpanded    = `SELECT ` + expandColumns + `, u.after FROM surehook_unexpanded u CROSS JOIN surehook_events e WHERE e.seq = u.event ORDER BY u.event`
	selectObject        = `SELECT object_type, object_id FROM surehook_events WHERE seq = ?`
	upsertUnexpanded    = `INSERT INTO surehook_unexpanded (event, after) VALUES (?, ?) ON CONFLICT (event) DO UPDATE SET after = excluded.after`
	deleteUnexpanded    = `DELETE FROM surehook_unexpanded WHERE event = ?`
	asksByName          = `SELECT EXISTS (SELECT 1 FROM surehook_patterns WHERE pattern = ?1 AND subscription = ?2 AND since < ?3 AND ?3 <= until)`
)

// newPending inserts many rows.
var newPending = newManyRows(`INSERT OR FAIL INTO surehook_pending (due, subscription, event) VALUES `, `(?1, ?, ?)`)

// expansion is the part of a step that makes deliveries.
type expansion struct {
	*batch
	p dispatch.ExpandParams
	x dispatch.Expanded

	plan  *fanout.Plan
	seen  int64       // the last event that was looked at
	all   []*newEvent // the events up to seen that are not expanded, in the order of the plan
	left  []*newEvent // the events behind them that were read
	waits bool        // the first of those must wait for the next step
	asked int         // of how many of all filters were asked about the body

	candidate fanout.Candidate // one for all events, as there are many
	adding    int64            // the event that it stands for

	early sync.WaitGroup // those who ask filters while events are still read
	asks  []askedOf      // what the next of them will be given

	made    []any         // rows of newPending
	touched map[int64]int // how many each subscription gets
}

// unexpanded tells whether there is something to expand.
func (w *work) unexpanded() (some bool, err error) {
	err = w.row(selectAnyUnexpanded).Scan(&some)
	return some, err
}

// expand makes the deliveries of new events.
func (b *batch) expand(p dispatch.ExpandParams) error {
	if p.Events <= 0 {
		return nil
	}
	e := expansion{batch: b, p: p, touched: map[int64]int{}}
	if err := e.run(); err != nil {
		return err
	}
	b.expanded = e.x
	rules.CountExpanded(&b.rollup, e.x)
	b.madeFor = e.touched
	return nil
}

// newEvent is an event to be expanded: the columns that decide who gets it, and how far
// it is.
type newEvent struct {
	seq          int64
	eventType    string
	subscriber   int64
	subscription int64
	size         int64          // of its body; 0: it was redacted
	body         []byte         // if it was read
	content      *rules.Content // the same for filters, if some were asked
	decided      bool           // filters are asked early
	wanted       uint64         // then a bit for each of found tells whether its filter matches
	about        int64
	after        int64 // the last subscription that has its delivery

	stored bool    // it is in surehook_unexpanded
	found  []match // the subscriptions that get it next
	upTo   int64   // the subscription up to which found is complete
	whole  bool    // all its deliveries are made
	moved  bool    // this step has expanded it further
}

func (e *expansion) run() error {
	var whole int64
	if err := e.row(selectExpanded).Scan(&whole, &e.seen); err != nil {
		return err
	}
	e.plan, e.candidate.Object = fanout.New(e.p), e.object
	e.batch.store.filtered = e.batch.store.filtered[:0]
	defer e.early.Wait()
	if whole < e.seen {
		if err := e.read(true, selectUnexpanded); err != nil {
			return err
		}
	}
	if len(e.all)+len(e.left) < fanout.Waiting+fanout.Begun {
		query := selectNewEvents
		if e.batch.store.filtersAsk {
			query = selectNewBodies
		}
		if err := e.read(false, query, e.seen, e.p.Events+1); err != nil {
			return err
		}
	}
	if len(e.all)+len(e.left) == 0 {
		return nil
	}
	if err := e.decide(); err != nil {
		return err
	}
	e.batch.store.filtersAsk = 2*e.asked > len(e.all)
	return e.store()
}

// read adds events that are not expanded to the plan, as they are read. Other statements run
// meanwhile, so it scans no sql.RawBytes: rows with these cannot be closed when the context
// ends. The rollback would wait for them, and the next statement for the rollback.
func (e *expansion) read(stored bool, query string, args ...any) error {
	var ev newEvent
	columns := []any{numberOf(&ev.seq), &ev.eventType, numberOf(&ev.subscriber), numberOf(&ev.subscription), numberOf(&ev.size), numberOf(&ev.about)}
	var block []newEvent // one allocation for each event would cost more than reading it
	switch {
	case stored:
		columns = append(columns, numberOf(&ev.after))
	case query == selectNewBodies:
		columns = append(columns, newBody{e, &ev.body})
	}
	ev.stored = stored
	return e.each(func(rows *sql.Rows) (bool, error) {
		if err := rows.Scan(columns...); err != nil {
			return false, err
		}
		if len(block) == cap(block) {
			block = make([]newEvent, 0, min(2*cap(block)+8, 64))
		}
		block = append(block, ev)
		return e.add(&block[len(block)-1])
	}, query, args...)
}

// add adds an event to the plan, or to those that are left. It tells whether more events
// are to be read.
func (e *expansion) add(ev *newEvent) (more bool, err error) {
	if len(e.left) > 0 {
		e.left = append(e.left, ev)
		return e.waits || ev.stored, nil
	}
	if err := e.match(ev, e.plan.Look()); err != nil {
		return false, err
	}
	wait, err := e.mustWait(ev)
	if err != nil {
		return false, err
	}
	if wait {
		e.waits, e.left = true, append(e.left, ev)
		return true, nil
	}
	e.candidate.Count, e.candidate.All, e.adding = len(ev.found), ev.upTo == math.MaxInt64, ev.seq
	full, err := e.plan.Add(&e.candidate)
	if err != nil {
		return false, err
	}
	if full {
		e.left = append(e.left, ev)
		return ev.stored, nil // store must know all that are
	}
	e.all = append(e.all, ev)
	e.seen = max(e.seen, ev.seq)
	if e.plan.Large(&e.candidate) {
		return true, nil
	}
	return true, e.askEarly(ev)
}

func (e *expansion) object() (o sender.Object, err error) {
	err = e.row(selectObject, e.adding).Scan(&o.Type, &o.ID)
	return o, err
}

// decide makes the deliveries of the plan.
func (e *expansion) decide() error {
	if e.waits {
		if err := e.leave(); err != nil {
			return err
		}
	}
	e.plan.Share()
	e.x.More = e.plan.More || len(e.left) > 0
	e.made = make([]any, 0, len(e.all)*newPending.columns)
	if err := e.readBodies(e.plan.Makes); err != nil {
		return err
	}
	e.answer(e.asks)
	e.early.Wait()
	for _, m := range e.plan.Makes {
		if err := e.expandOne(e.all[m.At], m.Most); err != nil {
			return err
		}
	}
	// Events that were not looked at stay unexpanded.
	for _, ev := range e.left {
		if ev.stored {
			e.all = append(e.all, ev)
		}
	}
	return nil
}

// match finds the subscriptions that get an event next.
func (e *expansion) match(ev *newEvent, limit int) (err error) {
	ev.upTo = math.MaxInt64
	if ev.size > 0 {
		ev.found, ev.upTo, err = e.matches(ev, limit)
	}
	return err
}

// expandOne makes the deliveries of an event to the first most of the subscriptions that
// get it next.
func (e *expansion) expandOne(ev *newEvent, most int) (err error) {
	ev.moved = true
	asked := false
	for i, a := range ev.found[:most] {
		gets := a.since < ev.seq && ev.seq <= a.until
		if gets && a.subscription == ev.about && ev.subscription == 0 {
			if gets, err = e.asksByName(ev); err != nil {
				return err
			}
		}
		if gets && a.filtered {
			asked = true
			if ev.decided {
				gets = ev.wanted&(1<<i) != 0
			} else if gets, err = e.wants(ev, a.subscription); err != nil {
				return err
			}
		}
		if gets {
			e.deliver(ev.seq, a.subscription)
		}
		ev.after = a.subscription
	}
	if asked {
		e.asked++
	}
	if most == len(ev.found) {
		if ev.whole = ev.upTo == math.MaxInt64; ev.whole {
			e.x.Events++
		} else {
			ev.after = ev.upTo
		}
	}
	return nil
}

// matches answers sender.Matches from the tables.
func (e *expansion) matches(ev *newEvent, limit int) (found []match, upTo int64, err error) {
	if ev.subscription != 0 {
		sub, err := e.registry.subscription(e.work, ev.subscription)
		if err != nil || sub.gone() || sub.status == statusMissing || ev.subscription <= ev.after {
			return nil, math.MaxInt64, err
		}
		// A subscription that is closing cannot be addressed, so the event came before.
		return []match{{subscription: ev.subscription, until: everything}}, math.MaxInt64, nil
	}
	found, upTo, err = e.registry.matches(e.work, question{ev.eventType, ev.subscriber}, ev.after, limit)
	if err != nil || ev.subscriber == 0 || e.registry.operator == 0 || ev.subscriber == e.registry.operator {
		return found, upTo, err
	}
	operators, alsoUpTo, err := e.registry.matches(e.work, question{ev.eventType, e.registry.operator}, ev.after, limit)
	if err != nil || len(operators) == 0 && alsoUpTo == math.MaxInt64 {
		return found, upTo, err
	}
	upTo = min(upTo, alsoUpTo)
	return sorted(slices.Concat(found, operators), upTo), upTo, nil
}

// asksByName tells whether the subscription that an event is about asks for exactly the
// event's type.
func (e *expansion) asksByName(ev *newEvent) (asks bool, err error) {
	err = e.row(asksByName, ev.eventType, ev.about, ev.seq).Scan(&asks)
	return asks, err
}

func (e *expansion) deliver(event, subscription int64) {
	e.made = append(e.made, subscription, event)
	e.touched[subscription]++
	e.x.Deliveries++
}

func (e *expansion) store() error {
	touched := slices.Sorted(maps.Keys(e.touched))
	if err := e.heads.load(touched); err != nil {
		return err
	}
	fresh := maps.Clone(e.touched)
	if err := e.lineUp(touched, fresh); err != nil {
		return err
	}
	if err := e.execMany(newPending, e.made, e.now); err != nil { // all of them are due now
		return err
	}
	for no, n := range fresh {
		if h := e.heads.by[no]; n > 0 {
			h.pending += int64(n)
			h.lower(e.now)
		}
	}
	whole := e.seen
	for _, ev := range e.all {
		var err error
		switch {
		case !ev.whole && (ev.moved || !ev.stored):
			err = e.execs(upsertUnexpanded, ev.seq, ev.after)
		case ev.whole && ev.stored:
			err = e.execs(deleteUnexpanded, ev.seq)
		}
		if err != nil {
			return err
		}
		if !ev.whole {
			whole = min(whole, ev.seq-1)
		}
	}
	return e.execs(updateExpanded, whole, e.seen)
}
