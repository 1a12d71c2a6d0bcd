package postgres

import (
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// Places of deliveries in a line: see surehook_lines.
const (
	placeNew   = 1
	placeAgain = 2
	placeDead  = 3
)

// firstOfLine finds columns of the first row of a line u that is behind an event, and for
// which a condition holds. The order by both columns tells the planner which index is meant.
// Earlier rows are gone, but the index has them until a vacuum.
func firstOfLine(columns, after, only string) string {
	return `SELECT ` + columns + ` FROM surehook_lines WHERE subscription = u.subscription AND (object, event) > (u.object, ` + after + `) AND object <= u.object
		AND ` + only + ` ORDER BY object, event LIMIT 1`
}

// isOut is the condition that a row x of surehook_lines is in another table too.
const isOut = `(EXISTS (SELECT 1 FROM surehook_leases p WHERE p.subscription = x.subscription AND p.event = x.event OFFSET 0)
		OR EXISTS (SELECT 1 FROM surehook_pending p WHERE p.subscription = x.subscription AND p.event = x.event OFFSET 0)
		OR EXISTS (SELECT 1 FROM surehook_waiting p WHERE p.subscription = x.subscription AND p.event = x.event OFFSET 0))`

// stateOfLine are the columns of rules.Line, of a line u.
const stateOfLine = `coalesce(f.event, 0), coalesce(f.place = 3, false), coalesce(f.halts, false), coalesce(o.event, 0),
		o.event IS NOT NULL AND EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = u.subscription AND x.event = o.event OFFSET 0), coalesce(n.event, 0)`

// lineParts find the first of a line u, what is out, and the newest.
var lineParts = `LEFT JOIN LATERAL (` + firstOfLine(`event, place, halts`, `0`, `true`) + `) f ON true
		LEFT JOIN LATERAL (SELECT event FROM surehook_lines WHERE subscription = u.subscription AND object = u.object AND preceded LIMIT 1) p ON true
		LEFT JOIN LATERAL (SELECT event FROM surehook_lines WHERE subscription = u.subscription AND object BETWEEN u.object AND u.object AND place < 3 ORDER BY object DESC, event DESC LIMIT 1) n ON true
		CROSS JOIN LATERAL (SELECT coalesce(p.event, CASE WHEN f.place < 3 AND NOT f.halts THEN f.event END) AS event) o`

var (
	selectLines   = `SELECT u.subscription, u.object, ` + stateOfLine + ` FROM unnest($1::bigint[], $2::text[]) AS u(subscription, object) ` + lineParts
	selectLinesOf = `SELECT u.subscription, u.at, u.object, ` + stateOfLine + ` FROM (
			SELECT x.subscription, x.event AS at, x.object FROM unnest($1::bigint[], $2::bigint[]) AS k(subscription, event)
			CROSS JOIN LATERAL (SELECT subscription, event, object FROM surehook_lines WHERE subscription = k.subscription AND event = k.event OFFSET 0) x) u ` + lineParts

	// haltLines marks the first of lines, if it is before an event.
	haltLines = `UPDATE surehook_lines l SET halts = true WHERE l.ctid = ANY(ARRAY(SELECT x.at FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS u(subscription, object, newer)
			CROSS JOIN LATERAL (` + firstOfLine(`ctid AS at, event`, `0`, `true`) + `) x WHERE x.event < u.newer)) RETURNING l.subscription, l.object`
)

// insertLines brings rows into lines.
var insertLines = overRows(`INSERT INTO surehook_lines (subscription, object, event, place, no, notice, bytes, due, first_at, number, tries, stood, epoch, replay, rank, single, spared)
	SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::smallint[], $5::bigint[], $6::boolean[], $7::int[], $8::timestamptz[], $9::timestamptz[], $10::int[], $11::int[],
		$12::bigint[], $13::bigint[], $14::bigint[], $15::smallint[], $16::boolean[], $17::boolean[]) AS u`)

// newestIsFresh tells whether the newest of a line u is behind an event of it, and no replay has
// admitted it.
const newestIsFresh = `EXISTS (SELECT 1 FROM (SELECT event, place, rank FROM surehook_lines WHERE subscription = u.subscription AND object BETWEEN u.object AND u.object AND place < 3
		ORDER BY object DESC, event DESC LIMIT 1) n WHERE n.event > u.event AND (n.place < 2 OR n.rank = 0))`

const (
	holdsFresh  = `SELECT ` + newestIsFresh + ` FROM (SELECT $1::bigint AS subscription, $2::text AS object, $3::bigint AS event) u`
	objectOf    = `object_type || ' ' || object_id`
	selectNames = `SELECT no, ` + objectOf + ` FROM surehook_events WHERE no = ANY($1)`

	// selectOvertaken finds what is before some deliveries, and not in flight: up to $4 of
	// each line, and $5 in all.
	selectOvertaken = `SELECT q.event, u.subscription FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS u(subscription, object, newer)
		CROSS JOIN LATERAL (SELECT event FROM surehook_lines l WHERE subscription = u.subscription AND object = u.object AND event < u.newer AND place < 3
			AND NOT EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.event = l.event OFFSET 0)
			ORDER BY event LIMIT $4) q LIMIT $5`
	deleteOldDead = `DELETE FROM surehook_lines l USING unnest($1::bigint[], $2::text[], $3::bigint[]) AS u(subscription, object, newer)
		WHERE l.subscription = u.subscription AND l.object = u.object AND l.event < u.newer AND l.place = 3 RETURNING l.subscription`

	// inLines finds rows one by one, which is right even if the statistics say that there
	// are few.
	inLines = `l.ctid = ANY(ARRAY(SELECT x.at FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, event)
			CROSS JOIN LATERAL (SELECT ctid AS at FROM surehook_lines WHERE subscription = u.subscription AND event = u.event OFFSET 0) x))`
	precede = `UPDATE surehook_lines l SET preceded = true WHERE ` + inLines + ` AND NOT l.preceded`
	// raiseRanks is for what replays have admitted, when something else comes to wait for it.
	raiseRanks = `UPDATE surehook_waiting w SET rank = 0 FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, event)
		WHERE w.subscription = u.subscription AND w.event = u.event AND w.rank = 1`
	// changeLines puts behind what was out.
	changeLines = `UPDATE surehook_lines l SET place = 2, preceded = false, due = u.due, first_at = u.first_at, number = u.number, tries = u.tries, stood = u.stood, epoch = u.epoch, replay = u.replay,
			rank = u.rank, single = u.single, spared = u.spared, notice = u.notice, bytes = u.bytes
		FROM (SELECT u.*, x.at FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[], $10::smallint[], $11::boolean[], $12::boolean[],
			$13::boolean[], $14::int[]) AS u(subscription, event, due, first_at, number, tries, stood, epoch, replay, rank, single, spared, notice, bytes)
			CROSS JOIN LATERAL (SELECT ctid AS at FROM surehook_lines WHERE subscription = u.subscription AND event = u.event OFFSET 0) x) u
		WHERE l.ctid = u.at RETURNING l.subscription, l.object`

	deleteInLines = `DELETE FROM surehook_lines l WHERE ` + inLines
	// nothingOut tells whether nothing is out of a line, whose first l may have been.
	nothingOut = `NOT EXISTS (SELECT 1 FROM surehook_lines x WHERE x.subscription = l.subscription AND x.object = l.object AND x.event < l.event OFFSET 0)
		AND NOT EXISTS (SELECT 1 FROM surehook_lines x WHERE x.subscription = l.subscription AND x.object = l.object AND x.preceded OFFSET 0)`
	// freeLines takes dead letters out of their lines, and tells whether nothing is out of
	// these.
	freeLines = deleteInLines + ` AND l.place = 3 RETURNING l.subscription, l.object, ` + nothingOut
	// clearHalted takes away the marks of lines that halt, and tells the same.
	clearHalted = `UPDATE surehook_lines l SET halts = false WHERE ` + inLines + ` AND l.halts RETURNING l.subscription, l.object, ` + nothingOut
	stopLines   = `UPDATE surehook_lines l SET place = 3, preceded = false WHERE ` + inLines + `
		RETURNING l.subscription, l.object`
	// endLines ends deliveries that are not in flight, or takes them out of their lines. It
	// tells whether the line may go on that halted at one of them.
	endLines = deleteInLines + ` AND NOT EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.event = l.event OFFSET 0)
		RETURNING l.subscription, l.object, l.event, l.place, CASE WHEN l.halts THEN ` + nothingOut + ` ELSE false END, l.single, coalesce((SELECT a.class FROM surehook_attempts a WHERE a.event = l.event AND a.subscription = l.subscription ORDER BY a.number DESC LIMIT 1), ''), l.epoch`

	displacePending = `DELETE FROM surehook_pending WHERE subscription = $1 AND event = $2 RETURNING 1`
	displaceWaiting = `DELETE FROM surehook_waiting WHERE subscription = $1 AND event = $2
		RETURNING due, first_at, number, tries, stood, epoch, replay, rank, single, spared, notice, bytes`
	restartBehind = `UPDATE surehook_lines SET place = 2, due = $3, tries = 0, first_at = NULL, stood = 0, spared = false, epoch = $4, rank = 0 WHERE subscription = $1 AND event = $2`
	deleteLines   = `DELETE FROM surehook_lines WHERE subscription = ANY($1)`

	// columnsOut gives the first of a line that halts the place of a dead letter: nothing
	// comes out of either's line.
	columnsOut = `CASE WHEN halts THEN 3::smallint ELSE place END AS place, event, no, notice, bytes, due`
)

// lineKey names a line.
type lineKey struct {
	subscription int64
	object       string
}

// lineRow is a row that comes into a line.
type lineRow struct {
	waits
	object string
	place  int16
	no     int64
	behind bool
	before int64 // what is out, if this one is before it; 0: nothing is
}

// inLine is a delivery in a line.
type inLine struct {
	rules.Line
	object string
}

func lineArgs(all []lineKey) (subscriptions []int64, objects []string) {
	return column(all, func(k lineKey) int64 { return k.subscription }), column(all, func(k lineKey) string { return k.object })
}

// readLines reads lines. A delivery that was in flight until this step, and is not settled
// yet, still counts as in flight.
func (b *batch) readLines(keys []lineKey) (map[lineKey]rules.Line, error) {
	lines := make(map[lineKey]rules.Line, len(keys))
	if len(keys) == 0 {
		return lines, nil
	}
	subscriptions, objects := lineArgs(keys)
	return lines, b.each(func(r rows) (bool, error) {
		var k lineKey
		var l rules.Line
		err := r.Scan(&k.subscription, &k.object, &l.First, &l.Dead, &l.Halted, &l.Out, &l.Leased, &l.Newest)
		if b.movedLines[k] {
			l.Out = 0
		}
		l.Leased = l.Leased || b.leases[dispatch.DeliveryKey{Event: l.Out, Subscription: k.subscription}] != nil
		lines[k] = l
		return true, err
	}, selectLines, subscriptions, objects)
}

// lineOf reads a line, unless it was read ahead and nothing has come into it since.
func (b *batch) lineOf(k lineKey) (map[lineKey]rules.Line, error) {
	line, ok := b.linesAhead[k]
	if !ok {
		return b.readLines([]lineKey{k})
	}
	delete(b.linesAhead, k)
	return map[lineKey]rules.Line{k: line}, nil
}

// readLinesOf reads, for settle and goOn, the lines of deliveries that were in flight. It
// matters only where something is behind.
func (b *batch) readLinesOf(keys []dispatch.DeliveryKey) error {
	keys = slices.DeleteFunc(keys, func(k dispatch.DeliveryKey) bool { return b.heads.by[k.Subscription].behind == 0 })
	if len(keys) == 0 {
		return nil
	}
	if b.inLines == nil {
		b.inLines = map[dispatch.DeliveryKey]inLine{}
	}
	return b.each(func(r rows) (bool, error) {
		var k dispatch.DeliveryKey
		var l inLine
		err := r.Scan(&k.Subscription, &k.Event, &l.object, &l.First, &l.Dead, &l.Halted, &l.Out, &l.Leased, &l.Newest)
		b.inLines[k] = l
		return true, err
	}, selectLinesOf, subscriptionsOf(keys), eventsOf(keys))
}

// goOn stores a delivery that was in flight, and has not ended by that: it waits, or gives
// way to an earlier one that was sent again meanwhile.
func (b *batch) goOn(h *head, l *live, due timestamp) {
	line := b.inLines[l.key()]
	if !line.Yields(l.event) {
		b.wait(h, l, due, rankFresh, 0)
		return
	}
	h.behind++
	w := waits{*l, due, rankFresh, 0}
	w.epoch = h.epoch
	b.yields = append(b.yields, w)
}

// supersede ends what deliveries of these events overtake in their lines, and tells which
// lines halt.
func (b *batch) supersede(newer map[lineKey]int64, lines map[lineKey]rules.Line) (halted map[lineKey]bool, err error) {
	if len(newer) == 0 {
		return nil, nil
	}
	var keys []lineKey
	for k := range newer {
		keys = append(keys, k)
	}
	subscriptions, objects := lineArgs(keys)
	events := column(keys, func(k lineKey) int64 { return newer[k] })
	err = b.each(func(r rows) (bool, error) {
		var no int64
		err := r.Scan(&no)
		b.heads.by[no].lined--
		return true, err
	}, deleteOldDead, subscriptions, objects, events)
	if err != nil {
		return nil, err
	}
	one, all := b.superseding.Grants()
	over, err := b.keys(selectOvertaken, subscriptions, objects, events, one, all)
	if err != nil {
		return nil, err
	}
	left := len(over) >= one
	over = slices.DeleteFunc(over, func(k dispatch.DeliveryKey) bool { return b.leases[k] != nil })
	b.superseding.Add(len(over))
	if _, err = b.endAll(over, b.superseded); err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k lineKey) bool { line := lines[k]; return !line.Halts(left) })
	return b.halt(keys, newer)
}

// halt marks the lines in which something is left before a newer delivery.
func (b *batch) halt(keys []lineKey, newer map[lineKey]int64) (halted map[lineKey]bool, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	halted = map[lineKey]bool{}
	subscriptions, objects := lineArgs(keys)
	return halted, b.each(func(r rows) (bool, error) {
		var k lineKey
		err := r.Scan(&k.subscription, &k.object)
		halted[k] = true
		return true, err
	}, haltLines, subscriptions, objects, column(keys, func(k lineKey) int64 { return newer[k] }))
}

// superseded is how a delivery ends that a newer one has overtaken. One that a resume has
// skipped stays cancelled.
func (b *batch) superseded(l *live) sender.Status {
	if b.subs[l.subscription].skips(l.epoch, l.event) {
		return rules.Cancelled(l.single)
	}
	return rules.Superseded(l.single)
}

// displace puts behind what is out, and not in flight. The row of one that was never claimed
// is as it was made.
func (b *batch) displace(h *head, event int64) error {
	h.behind++
	pending := false
	err := b.each(func(rows) (bool, error) {
		pending = true
		return true, nil
	}, displacePending, h.subscription, event)
	if err != nil {
		return err
	}
	if pending {
		h.pending--
		return nil
	}
	w := waits{live: live{subscription: h.subscription, event: event}}
	var rank int16
	err = b.row(displaceWaiting, h.subscription, event).Scan(&w.due, &w.firstAt, &w.number, &w.tries, &w.stood, &w.epoch, &w.replay, &rank, &w.single, &w.spared, &w.notice, &w.bytes)
	if err != nil {
		return err
	}
	w.rank = int(rank)
	h.waiting--
	return b.execs(changeLines, yieldArgs([]waits{w})...)
}

// sendAgain makes a delivery due that has ended, and is in no table.
func (b *batch) sendAgain(h *head, sub *subscription, object string, w waits) error {
	w.epoch = h.epoch
	if order := sub.Settings.Order; order != sender.OrderRelaxed {
		k := lineKey{h.subscription, object}
		lines, err := b.lineOf(k)
		if err != nil {
			return err
		}
		line := lines[k]
		e := line.Enter(order, w.event)
		switch {
		case e.Superseded:
			class, err := b.lastClass(&w.live)
			b.end(h, &w.live, rules.Superseded(w.single), class)
			return err
		case e.Supersedes:
			if err = b.settleArrived(); err == nil {
				halted, supersedeErr := b.supersede(map[lineKey]int64{k: w.event}, lines)
				e.Behind, err = e.Behind || halted[k], supersedeErr
			}
		case e.Displaces:
			if err = b.settleArrived(); err == nil {
				err = b.displace(h, line.Out)
			}
		}
		if err != nil {
			return err
		}
		if w.rank == rankReplay && line.First != 0 && !e.Behind {
			var fresh bool
			if err := b.row(holdsFresh, k.subscription, k.object, w.event).Scan(&fresh); err != nil {
				return err
			}
			if fresh { // it does not wait for the deliveries of other objects
				w.rank = rankFresh
			}
		}
		row := lineRow{waits: w, object: object, place: placeAgain, behind: e.Behind, before: line.Out}
		if err := b.putInLines([]lineRow{row}); err != nil || e.Behind {
			return err
		}
	}
	b.waitAs(h, w)
	return nil
}

// settleArrived writes what came out of lines, so that it can be found.
func (b *batch) settleArrived() error {
	if err := b.keep(func(*head) bool { return true }); err != nil {
		return err
	}
	return b.flush()
}

// putInLines writes rows of lines, and counts them.
func (b *batch) putInLines(all []lineRow) error {
	if len(all) == 0 {
		return nil
	}
	var preceded, raised []dispatch.DeliveryKey
	for i := range all {
		row := &all[i]
		h := b.heads.by[row.subscription]
		h.lined++
		if !row.behind {
			delete(b.movedLines, lineKey{row.subscription, row.object})
			continue
		}
		h.behind++
		switch out := (dispatch.DeliveryKey{Event: row.before, Subscription: row.subscription}); {
		case row.event < row.before:
			preceded = append(preceded, out)
		case row.before != 0 && row.rank == rankFresh && h.waiting > 0:
			raised = append(raised, out)
		}
	}
	if len(raised) > 0 {
		if err := b.execs(raiseRanks, subscriptionsOf(raised), eventsOf(raised)); err != nil {
			return err
		}
	}
	if len(preceded) > 0 {
		if err := b.execs(precede, subscriptionsOf(preceded), eventsOf(preceded)); err != nil {
			return err
		}
	}
	return b.joins(insertLines.of(len(all)),
		field(all, func(r lineRow) int64 { return r.subscription }), field(all, func(r lineRow) string { return r.object }),
		field(all, func(r lineRow) int64 { return r.event }), field(all, func(r lineRow) int16 { return r.place }),
		field(all, func(r lineRow) int64 { return r.no }), field(all, func(r lineRow) bool { return r.notice }),
		field(all, func(r lineRow) int32 { return r.bytes }), field(all, func(r lineRow) timestamp { return r.due }),
		field(all, func(r lineRow) timestamp { return r.firstAt }), field(all, func(r lineRow) int32 { return int32(r.number) }),
		field(all, func(r lineRow) int32 { return int32(r.tries) }), field(all, func(r lineRow) int64 { return r.stood }),
		field(all, func(r lineRow) int64 { return r.epoch }), field(all, func(r lineRow) int64 { return r.replay }),
		field(all, func(r lineRow) int16 { return int16(r.rank) }), field(all, func(r lineRow) bool { return r.single }),
		field(all, func(r lineRow) bool { return r.spared }))
}
