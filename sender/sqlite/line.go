package sqlite

import (
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// Places of deliveries in a line: see surehook_lines.
const (
	placeAhead  = 0
	placeBehind = 1
	placeAgain  = 2
	placeDead   = 3
)

const (
	// selectObjects reads the numbers of events' objects.
	selectObjects = `SELECT e.seq, o.no FROM surehook_events e CROSS JOIN surehook_objects o
		WHERE e.seq IN (SELECT value FROM json_each(?)) AND o.type = e.object_type AND o.id = e.object_id AND o.no > 0`
	// numberObject gives an event's object a number, unless it has one. An object that was
	// forgotten is remembered again, with the event's version. A version that is assigned to
	// it later is above all that it had (see surehook_floor).
	numberObject = `INSERT INTO surehook_objects AS o (type, id, version, no) SELECT object_type, object_id, version, seq FROM surehook_events WHERE seq = ?
		ON CONFLICT (type, id) DO UPDATE SET no = iif(o.no = 0, excluded.no, o.no) RETURNING no`
	selectInLine = `SELECT object FROM surehook_lines WHERE subscription = ? AND event = ?`

	// selectLines reads what rules.Line has, of those lines of [subscription, object] that are
	// not empty.
	selectLines = `WITH k AS MATERIALIZED (SELECT value ->> 0 AS subscription, value ->> 1 AS object FROM json_each(?)),
		l AS MATERIALIZED (SELECT k.subscription, k.object, f.event AS first, f.place, f.halts,
			coalesce((SELECT event FROM surehook_lines INDEXED BY surehook_lines_ahead WHERE subscription = k.subscription AND object = k.object AND place = 0), f.event) AS event
			FROM k CROSS JOIN surehook_lines f WHERE f.subscription = k.subscription
			AND f.event = (SELECT min(event) FROM surehook_lines INDEXED BY surehook_lines_object WHERE subscription = k.subscription AND object = k.object))
		SELECT l.subscription, l.object, l.first, l.place = 3, l.halts, iif(` + isBehind + `, 0, l.event),
			EXISTS (SELECT 1 FROM surehook_leases WHERE subscription = l.subscription AND event = l.event),
			coalesce((SELECT event FROM surehook_lines INDEXED BY surehook_lines_object WHERE subscription = l.subscription AND object = l.object AND place < 3 ORDER BY event DESC LIMIT 1), 0)
		FROM l`
	// isBehind tells of a row l of a line with a place of 1 or 2 whether it is behind.
	isBehind = `NOT EXISTS (SELECT 1 FROM surehook_pending x WHERE x.subscription = l.subscription AND x.event = l.event)
		AND NOT EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.event = l.event)
		AND NOT EXISTS (SELECT 1 FROM surehook_waiting x WHERE x.subscription = l.subscription AND x.event = l.event)`
	selectOvertaken = `SELECT event, number, single, epoch, place = 3 FROM surehook_lines INDEXED BY surehook_lines_object
		WHERE subscription = ?1 AND object = ?2 AND event < ?3 AND event <> ?4 ORDER BY event LIMIT ?5 + 0`
	selectOut = `SELECT 0, 0, 0 FROM surehook_pending WHERE subscription = ?1 AND event = ?2
		UNION ALL SELECT number, single, epoch FROM surehook_waiting WHERE subscription = ?1 AND event = ?2`

	insertLine = `INSERT INTO surehook_lines (subscription, object, event, place, due, number, tries, first_at, stood, single, epoch, rank, replay, spared)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	markAhead = `UPDATE surehook_lines SET place = 0 WHERE subscription = ? AND event = ?`
	setPlace  = `UPDATE surehook_lines SET place = ?3, due = ?4 WHERE subscription = ?1 AND event = ?2`
	// haltLine marks the first of a line, if it is before an event.
	haltLine = `UPDATE surehook_lines SET halts = 1 WHERE subscription = ?1 AND event < ?3
		AND event = (SELECT min(event) FROM surehook_lines INDEXED BY surehook_lines_object WHERE subscription = ?1 AND object = ?2)`
	takePending = `DELETE FROM surehook_pending WHERE subscription = ? AND event = ? RETURNING due`
	// raiseRank is for what a replay has admitted, when something else comes to wait for it.
	raiseRank = `UPDATE surehook_waiting SET rank = 0 WHERE subscription = ? AND event = ? AND rank = 1`
	// holdsFresh tells whether the newest of a line is behind an event, and no replay has
	// admitted it.
	holdsFresh = `SELECT EXISTS (SELECT 1 FROM (SELECT event, place, rank FROM surehook_lines INDEXED BY surehook_lines_object
		WHERE subscription = ?1 AND object = ?2 AND place < 3 ORDER BY event DESC LIMIT 1) WHERE event > ?3 AND (place < 2 OR rank = 0))`
	goBehind = `UPDATE surehook_lines SET place = 2, due = ?, number = ?, tries = ?, first_at = ?, stood = ?, single = ?, epoch = ?, rank = ?, replay = ?, spared = ?
		WHERE subscription = ? AND event = ?`
	takeWaiting = `DELETE FROM surehook_waiting WHERE subscription = ? AND event = ? RETURNING due, number, tries, first_at, stood, single, epoch, rank, replay, spared`
	insertAgain = `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, stood, single, spared, epoch, rank, replay)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	deleteFromLine = `DELETE FROM surehook_lines WHERE subscription = ? AND event = ? RETURNING object`
	leaveLineOf    = `DELETE FROM surehook_lines WHERE subscription = ?1 AND event IN (SELECT value FROM json_each(?2)) RETURNING object`
	stopLine       = `UPDATE surehook_lines SET place = 3 WHERE subscription = ? AND event = ? RETURNING object`
	deleteDead     = `DELETE FROM surehook_lines INDEXED BY surehook_lines_object WHERE subscription = ?1 AND object = ?2 AND event < ?3 AND place = 3`
	deleteLines    = `DELETE FROM surehook_lines WHERE subscription = ? AND event > 0` // so the table is searched, and not its index
	restartBehind  = `UPDATE surehook_lines SET place = 2, due = ?, tries = 0, first_at = 0, stood = 0, spared = 0, epoch = ?, rank = 0 WHERE subscription = ? AND event = ?`
)

// newLined inserts many that were never claimed.
var newLined = newManyRows(`INSERT OR FAIL INTO surehook_lines (due, subscription, object, event, place) VALUES `, `(?1, ?, ?, ?, 1)`)

// lineKey names a line.
type lineKey struct {
	subscription int64
	object       int64 // its number
}

// waits is what surehook_waiting has of a delivery.
type waits struct {
	live
	due    int64
	rank   int64
	replay int64
}

func (w *work) line(k lineKey) (rules.Line, error) {
	lines, err := w.linesOf([]lineKey{k})
	return lines[k], err
}

// linesOf reads those of several lines that are not empty.
func (w *work) linesOf(keys []lineKey) (map[lineKey]rules.Line, error) {
	lines := map[lineKey]rules.Line{}
	if len(keys) == 0 {
		return lines, nil
	}
	query, err := keysOf(keys)
	if err != nil {
		return nil, err
	}
	return lines, w.each(func(rows *sql.Rows) (bool, error) {
		var k lineKey
		var l rules.Line
		err := rows.Scan(&k.subscription, &k.object, &l.First, &l.Dead, &l.Halted, &l.Out, &l.Leased, &l.Newest)
		lines[k] = l
		return true, err
	}, selectLines, query)
}

// lineOf reads the line of a delivery that was in flight. It is empty if the delivery is in
// none, or if nothing of the subscription is behind: then it does not matter.
func (b *batch) lineOf(h *head, event int64) (l rules.Line, err error) {
	if h.behind == 0 {
		return l, nil
	}
	k := lineKey{subscription: h.subscription}
	switch err = b.row(selectInLine, h.subscription, event).Scan(&k.object); {
	case errors.Is(err, sql.ErrNoRows):
		return l, nil
	case err != nil:
		return l, err
	}
	return b.line(k)
}

// enter brings a delivery into the line of its object, and does with the others what the
// rules say. Unless it is out, it is in its place then; what is out, the caller stores.
func (b *batch) enter(h *head, order sender.Order, object int64, d *waits) (out bool, err error) {
	k := lineKey{h.subscription, object}
	var line rules.Line
	if h.lined > 0 {
		if line, err = b.line(k); err != nil {
			return false, err
		}
	}
	e := line.Enter(order, d.event)
	switch {
	case e.Superseded:
		return false, b.endAll(h, []live{d.live}, rules.Superseded)
	case e.Supersedes:
		var halts bool
		halts, err = b.supersede(h, k, &line, d.event)
		e.Behind = e.Behind || halts
	case e.Displaces:
		err = b.displace(h, line.Out)
	}
	if err != nil {
		return false, err
	}
	switch {
	case e.Behind:
		err = b.stay(h, &line, d.event, d.rank)
	case line.First != 0:
		err = b.rank(k, d)
	}
	if err != nil {
		return false, err
	}
	h.lined++
	return !e.Behind, b.execs(insertLine, h.subscription, object, d.event, placeAgain, d.due, d.number, d.tries, d.firstAt, d.stood, d.single, h.epoch, d.rank, d.replay, d.spared)
}

// stay counts a delivery that comes into a line and is behind there. The one that is out is
// marked as soon as it is not the first. If a replay has admitted it, it does not wait any
// more for the deliveries of other objects.
func (b *batch) stay(h *head, line *rules.Line, event, rank int64) error {
	h.behind++
	if rank == rankFresh && h.waiting > 0 && line.Out != 0 && line.Out < event && !line.Leased {
		if err := b.execs(raiseRank, h.subscription, line.Out); err != nil {
			return err
		}
	}
	if event < line.Out {
		return b.execs(markAhead, h.subscription, line.Out)
	}
	return nil
}

// rank takes away the rank of what a replay has admitted, and comes out of a line in which
// something else waits for it.
func (b *batch) rank(k lineKey, d *waits) error {
	if d.rank != rankReplay {
		return nil
	}
	var fresh bool
	err := b.row(holdsFresh, k.subscription, k.object, d.event).Scan(&fresh)
	if fresh {
		d.rank = rankFresh
	}
	return err
}

// supersede ends what a newer delivery has overtaken in a line, and tells whether the line
// halts.
func (b *batch) supersede(h *head, k lineKey, line *rules.Line, newer int64) (halts bool, err error) {
	most, _ := b.superseding.Grants()
	over, dead, left, err := b.overtaken(k, line, newer, most)
	if err != nil {
		return false, err
	}
	if line.Out != 0 && line.Out < newer && !line.Leased {
		l := live{event: line.Out, subscription: h.subscription}
		if err := b.row(selectOut, h.subscription, line.Out).Scan(&l.number, &l.single, &l.epoch); err != nil {
			return false, err
		}
		over = append(over, l)
	}
	if dead {
		n, err := b.count(deleteDead, k.subscription, k.object, newer)
		if err != nil {
			return false, err
		}
		h.lined -= int64(n)
	}
	b.superseding.Add(len(over))
	if err = b.overtake(h, over); err != nil || !line.Halts(left) {
		return false, err
	}
	n, err := b.count(haltLine, k.subscription, k.object, newer)
	return n > 0, err
}

// overtake ends what a newer delivery has overtaken. Those that a resume has skipped stay
// cancelled.
func (b *batch) overtake(h *head, over []live) error {
	var skipped, rest []live
	for _, l := range over {
		is, err := b.skipped(h, l.epoch, l.event)
		if err != nil {
			return err
		}
		if is {
			skipped = append(skipped, l)
		} else {
			rest = append(rest, l)
		}
	}
	if err := b.cancel(h, skipped); err != nil {
		return err
	}
	return b.endAll(h, rest, rules.Superseded)
}

// overtaken finds up to some deliveries that are behind and older than one, and whether there
// are dead letters too. more tells that there may be more.
func (b *batch) overtaken(k lineKey, line *rules.Line, newer int64, most int) (over []live, dead, more bool, err error) {
	n := 0
	err = b.each(func(rows *sql.Rows) (bool, error) {
		l := live{subscription: k.subscription, behind: true}
		var stops bool
		err := rows.Scan(&l.event, &l.number, &l.single, &l.epoch, &stops)
		n++
		dead = dead || stops
		if !stops && n <= most {
			over = append(over, l)
		}
		return true, err
	}, selectOvertaken, k.subscription, k.object, newer, line.Out, most+1)
	return over, dead, n > most, err
}

// displace puts behind what is out, and not in flight.
func (b *batch) displace(h *head, event int64) error {
	h.behind++
	var due int64
	switch err := b.row(takePending, h.subscription, event).Scan(&due); {
	case err == nil:
		h.pending--
		return b.execs(setPlace, h.subscription, event, placeBehind, due)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	d := waits{live: live{event: event, subscription: h.subscription}}
	err := b.row(takeWaiting, h.subscription, event).Scan(&d.due, &d.number, &d.tries, &d.firstAt, &d.stood, &d.single, &d.epoch, &d.rank, &d.replay, &d.spared)
	if err != nil {
		return err
	}
	h.waiting--
	return b.goBehind(&d)
}

func (b *batch) goBehind(d *waits) error {
	return b.execs(goBehind, d.due, d.number, d.tries, d.firstAt, d.stood, d.single, d.epoch, d.rank, d.replay, d.spared, d.subscription, d.event)
}

// goOn stores a delivery that was in flight, and has not ended by that: it waits, or gives
// way to an earlier one that was sent again meanwhile.
func (b *batch) goOn(h *head, l *live, due int64, line *rules.Line) error {
	if !line.Yields(l.event) {
		return b.wait(h, l, due, rankFresh)
	}
	l.behind = true
	h.behind++
	d := waits{live: *l, due: due}
	d.epoch = h.epoch
	if err := b.goBehind(&d); err != nil {
		return err
	}
	var object int64
	err := b.row(selectInLine, h.subscription, l.event).Scan(&object)
	b.moved = append(b.moved, lineKey{h.subscription, object})
	return err
}

// leave takes a delivery that has ended out of its line, unless it stays there as a dead
// letter that holds back others. It leaves when the lines are brought forward, together with
// others: until then nothing looks at its line, in which nothing else was out.
func (b *batch) leave(h *head, sub *subscription, event int64, status sender.Status) error {
	if h.lined == 0 {
		return nil
	}
	if status == sender.StatusDeadLettered && !sub.gone() && rules.Holds(sub.Settings, sender.SubscriptionStatus(sub.status)) {
		_, err := b.left(h, stopLine, h.subscription, event)
		return err
	}
	if b.leaving == nil {
		b.leaving = map[*head][]int64{}
	}
	b.leaving[h] = append(b.leaving[h], event)
	return nil
}

// left notes which lines a statement has changed.
func (b *batch) left(h *head, query string, args ...any) (n int64, err error) {
	err = b.each(func(rows *sql.Rows) (bool, error) {
		k := lineKey{subscription: h.subscription}
		err := rows.Scan(&k.object)
		b.moved = append(b.moved, k)
		n++
		return true, err
	}, query, args...)
	return n, err
}

// known returns a subscription, where the registry may not have been needed so far.
func (b *batch) known(no int64) (sub *subscription, err error) {
	if b.registry == nil {
		if b.registry, err = b.store.registry(b.work); err != nil {
			return nil, err
		}
	}
	return b.registry.subscription(b.work, no)
}

// storeHeads brings the lines forward, and writes what has changed of the heads.
func (b *batch) storeHeads() error {
	if err := b.advance(); err != nil {
		return err
	}
	return b.heads.store()
}

// sendAgain makes a delivery due that has ended, and is in no table.
func (b *batch) sendAgain(h *head, sub *subscription, d *waits) error {
	if order := sub.Settings.Order; order != sender.OrderRelaxed {
		object, err := b.objectNo(d.event)
		if err != nil {
			return err
		}
		if out, err := b.enter(h, order, object, d); err != nil || !out {
			return err
		}
	}
	h.waiting++
	h.lower(d.due)
	return b.execs(insertAgain, d.subscription, d.event, d.due, d.number, d.tries, d.firstAt, d.stood, d.single, d.spared, h.epoch, d.rank, d.replay)
}

// objectNo returns the number of an event's object, which gets one if it has none.
func (w *work) objectNo(event int64) (no int64, err error) {
	err = w.row(numberObject, event).Scan(&no)
	return no, err
}

// freeFrom takes a delivery that is sent again out of the line in which it may hold back
// others as a dead letter.
func (b *batch) freeFrom(h *head, event int64) error {
	if h.lined == 0 {
		return nil
	}
	n, err := b.left(h, deleteFromLine, h.subscription, event)
	h.lined -= n
	return err
}
