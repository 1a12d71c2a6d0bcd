package postgres

import (
	"cmp"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// Places of deliveries in a line: see surehook_lines.
const (
	placeOut    = 0
	placeBehind = 1
	placeAgain  = 2
	placeDead   = 3
)

// supersedeMost is how many deliveries a newer one ends in one go. There are more only if
// the order was another one before; the rest ends with later ones.
const supersedeMost = 1000

// stateOfLine are the columns of rules.Line, of a line l.
const stateOfLine = `coalesce(f.event, 0), coalesce(f.place = 3, false), coalesce(o.event, 0),
		o.event IS NOT NULL AND EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.event = o.event OFFSET 0), coalesce(n.event, 0)`

// lineParts find the first of a line l, what is out, and the newest.
const lineParts = `LEFT JOIN LATERAL (SELECT event, place FROM surehook_lines WHERE subscription = l.subscription AND object = l.object ORDER BY event LIMIT 1) f ON true
		LEFT JOIN LATERAL (SELECT event FROM surehook_lines WHERE subscription = l.subscription AND object = l.object AND place = 0 LIMIT 1) o ON true
		LEFT JOIN LATERAL (SELECT event FROM surehook_lines WHERE subscription = l.subscription AND object = l.object AND place < 3 ORDER BY event DESC LIMIT 1) n ON true`

const (
	selectLines   = `SELECT l.subscription, l.object, ` + stateOfLine + ` FROM unnest($1::bigint[], $2::text[]) AS l(subscription, object) ` + lineParts
	selectLinesOf = `SELECT l.subscription, l.event, l.object, ` + stateOfLine + ` FROM (
			SELECT x.subscription, x.event, x.object FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, event)
			CROSS JOIN LATERAL (SELECT subscription, event, object FROM surehook_lines WHERE subscription = u.subscription AND event = u.event OFFSET 0) x) l ` + lineParts
	objectOf    = `object_type || ' ' || object_id`
	selectNames = `SELECT no, ` + objectOf + ` FROM surehook_events WHERE no = ANY($1)`

	selectOvertaken = `SELECT q.event, u.subscription FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS u(subscription, object, newer)
		CROSS JOIN LATERAL (SELECT event FROM surehook_lines l WHERE subscription = u.subscription AND object = u.object AND event < u.newer AND (place IN (1, 2)
			OR place = 0 AND NOT EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.event = l.event OFFSET 0))
			ORDER BY event LIMIT $4) q`
	deleteOldDead = `DELETE FROM surehook_lines l USING unnest($1::bigint[], $2::text[], $3::bigint[]) AS u(subscription, object, newer)
		WHERE l.subscription = u.subscription AND l.object = u.object AND l.event < u.newer AND l.place = 3 RETURNING l.subscription`

	lineColumns = `subscription, object, event, place, no, notice, bytes, due, first_at, number, tries, stood, epoch, replay, rank, single, spared`
	insertLines = `INSERT INTO surehook_lines (` + lineColumns + `)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::smallint[], $5::bigint[], $6::boolean[], $7::int[], $8::timestamptz[], $9::timestamptz[], $10::int[], $11::int[],
			$12::bigint[], $13::bigint[], $14::bigint[], $15::smallint[], $16::boolean[], $17::boolean[]) AS u`
	// changeLines puts behind what was out.
	changeLines = `UPDATE surehook_lines l SET place = 2, due = u.due, first_at = u.first_at, number = u.number, tries = u.tries, stood = u.stood, epoch = u.epoch, replay = u.replay,
			rank = u.rank, single = u.single, spared = u.spared, notice = u.notice, bytes = u.bytes
		FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[], $10::smallint[], $11::boolean[], $12::boolean[],
			$13::boolean[], $14::int[]) AS u(subscription, event, due, first_at, number, tries, stood, epoch, replay, rank, single, spared, notice, bytes)
		WHERE l.subscription = u.subscription AND l.event = u.event RETURNING l.subscription, l.object, 0::smallint`

	deleteInLines = `DELETE FROM surehook_lines l USING unnest($1::bigint[], $2::bigint[]) AS u(subscription, event)
		WHERE l.subscription = u.subscription AND l.event = u.event`
	leaveLines = deleteInLines + ` RETURNING l.subscription, l.object, l.place`
	freeLines  = deleteInLines + ` AND l.place = 3 RETURNING l.subscription, l.object, l.place`
	stopLines  = `UPDATE surehook_lines l SET place = 3 FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, event)
		WHERE l.subscription = u.subscription AND l.event = u.event AND l.place = 0 RETURNING l.subscription, l.object, 0::smallint`
	// endLines ends deliveries that are behind, or takes them out of their lines.
	endLines = leaveLines + `, l.event, l.single, coalesce((SELECT a.class FROM surehook_attempts a WHERE a.event = l.event AND a.subscription = l.subscription ORDER BY a.number DESC LIMIT 1), ''), l.subscription, l.place, l.epoch`

	// takeFirsts brings out the first of lines from which nothing is out, unless that is a
	// dead letter.
	takeFirsts = `UPDATE surehook_lines l SET place = 0 FROM (
			SELECT f.subscription, f.object, f.event, f.place FROM unnest($1::bigint[], $2::text[]) AS u(subscription, object)
			CROSS JOIN LATERAL (SELECT subscription, object, event, place FROM surehook_lines WHERE subscription = u.subscription AND object = u.object ORDER BY event LIMIT 1) f
			WHERE f.place IN (1, 2) AND NOT EXISTS (SELECT 1 FROM surehook_lines o WHERE o.subscription = u.subscription AND o.object = u.object AND o.place = 0 OFFSET 0)) f
		WHERE l.subscription = f.subscription AND l.object = f.object AND l.event = f.event
		RETURNING f.place, l.subscription, l.event, l.no, l.notice, l.bytes, l.due, l.first_at, l.number, l.tries, l.stood, l.epoch, l.replay, l.rank, l.single, l.spared`

	displacePending = `DELETE FROM surehook_pending WHERE subscription = $1 AND event = $2 RETURNING no, notice, bytes, due`
	displaceWaiting = `DELETE FROM surehook_waiting WHERE subscription = $1 AND event = $2
		RETURNING due, first_at, number, tries, stood, epoch, replay, rank, single, spared, notice, bytes`
	setPlace      = `UPDATE surehook_lines SET place = $3, no = $4, notice = $5, bytes = $6, due = $7 WHERE subscription = $1 AND event = $2`
	restartBehind = `UPDATE surehook_lines SET place = 2, due = $3, tries = 0, first_at = NULL, stood = 0, spared = false, epoch = $4, rank = 0 WHERE subscription = $1 AND event = $2`
	deleteLines   = `DELETE FROM surehook_lines WHERE subscription = ANY($1)`
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
}

// inLine is a delivery in a line.
type inLine struct {
	rules.Line
	object string
}

// leaving is a delivery that has ended.
type leaving struct {
	dispatch.DeliveryKey
	stops bool // it stays in its line, as a dead letter
}

func lineArgs(all []lineKey) (subscriptions []int64, objects []string) {
	return column(all, func(k lineKey) int64 { return k.subscription }), column(all, func(k lineKey) string { return k.object })
}

// readLines reads lines.
func (b *batch) readLines(keys []lineKey) (map[lineKey]rules.Line, error) {
	lines := make(map[lineKey]rules.Line, len(keys))
	if len(keys) == 0 {
		return lines, nil
	}
	subscriptions, objects := lineArgs(keys)
	return lines, b.each(func(r rows) (bool, error) {
		var k lineKey
		var l rules.Line
		err := r.Scan(&k.subscription, &k.object, &l.First, &l.Dead, &l.Out, &l.Leased, &l.Newest)
		lines[k] = l
		return true, err
	}, selectLines, subscriptions, objects)
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
		err := r.Scan(&k.Subscription, &k.Event, &l.object, &l.First, &l.Dead, &l.Out, &l.Leased, &l.Newest)
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

// leave notes that a delivery has ended. It may stay in its line as a dead letter that holds
// back others.
func (b *batch) leave(h *head, sub *subscription, l *live, status sender.Status) {
	if h.lined > 0 {
		stops := status == sender.StatusDeadLettered && !sub.gone() && rules.Holds(sub.Settings, sender.SubscriptionStatus(sub.status))
		b.leaving = append(b.leaving, leaving{l.key(), stops})
	}
}

// advance takes what has ended out of the lines, and lets the first of each line come out
// from which nothing is out. What comes out that was never claimed arrives as new
// deliveries do.
func (b *batch) advance() error {
	if err := b.leaveLines(); err != nil {
		return err
	}
	var moved []lineKey
	for k := range b.movedLines {
		if h := b.heads.by[k.subscription]; h.behind > 0 && !b.subs[k.subscription].gone() { // what is gone is swept
			moved = append(moved, k)
		}
	}
	clear(b.movedLines)
	if len(moved) == 0 {
		return nil
	}
	slices.SortFunc(moved, func(x, y lineKey) int {
		return cmp.Or(cmp.Compare(x.subscription, y.subscription), cmp.Compare(x.object, y.object))
	})
	if err := b.onlyLatest(moved); err != nil {
		return err
	}
	subscriptions, objects := lineArgs(moved)
	return b.each(func(r rows) (bool, error) { return true, b.comeOut(r) }, takeFirsts, subscriptions, objects)
}

// leaveLines takes deliveries out of their lines, or puts them behind, and notes which lines
// that has moved.
func (b *batch) leaveLines() error {
	var left, stopped []dispatch.DeliveryKey
	for _, l := range b.leaving {
		if l.stops {
			stopped = append(stopped, l.DeliveryKey)
		} else {
			left = append(left, l.DeliveryKey)
		}
	}
	var qs []query
	if len(left) > 0 {
		qs = append(qs, b.query(leaveLines, subscriptionsOf(left), eventsOf(left)).rows(func(r rows) error { return b.left(r) }))
	}
	if len(stopped) > 0 {
		qs = append(qs, b.query(stopLines, subscriptionsOf(stopped), eventsOf(stopped)).rows(func(r rows) error {
			k := lineKey{}
			err := r.Scan(&k.subscription, &k.object, nil)
			b.lineMoved(k)
			return err
		}))
	}
	if y := b.yields; len(y) > 0 {
		qs = append(qs, b.query(changeLines, yieldArgs(y)...).rows(func(r rows) error {
			k := lineKey{}
			err := r.Scan(&k.subscription, &k.object, nil)
			b.lineMoved(k)
			return err
		}))
	}
	b.leaving, b.yields = nil, nil
	if len(qs) == 0 {
		return nil
	}
	return b.send(qs...)
}

func yieldArgs(y []waits) []any {
	return []any{
		column(y, func(w waits) int64 { return w.subscription }), column(y, func(w waits) int64 { return w.event }),
		column(y, func(w waits) timestamp { return w.due }), column(y, func(w waits) timestamp { return w.firstAt }),
		column(y, func(w waits) int32 { return int32(w.number) }), column(y, func(w waits) int32 { return int32(w.tries) }),
		column(y, func(w waits) int64 { return w.stood }), column(y, func(w waits) int64 { return w.epoch }),
		column(y, func(w waits) int64 { return w.replay }), column(y, func(w waits) int16 { return int16(w.rank) }),
		column(y, func(w waits) bool { return w.single }), column(y, func(w waits) bool { return w.spared }),
		column(y, func(w waits) bool { return w.notice }), column(y, func(w waits) int32 { return w.bytes }),
	}
}

// left counts a row that has left its line.
func (b *batch) left(r rows, more ...any) error {
	var k lineKey
	var place int16
	err := r.Scan(append([]any{&k.subscription, &k.object, &place}, more...)...)
	h := b.heads.by[k.subscription]
	h.lined--
	if place == placeBehind || place == placeAgain {
		h.behind--
	}
	b.lineMoved(k)
	return err
}

func (b *batch) lineMoved(k lineKey) {
	if b.movedLines == nil {
		b.movedLines = map[lineKey]bool{}
	}
	b.movedLines[k] = true
}

// onlyLatest ends what the newest has overtaken in lines of the latest order. There is such
// only if the order was another one before, or if something was in flight meanwhile.
func (b *batch) onlyLatest(moved []lineKey) error {
	var latest []lineKey
	for _, k := range moved {
		if h := b.heads.by[k.subscription]; h.behind > 1 && b.subs[k.subscription].Settings.Order == sender.OrderLatest {
			latest = append(latest, k)
		}
	}
	lines, err := b.readLines(latest)
	if err != nil {
		return err
	}
	newest := map[lineKey]int64{}
	for k, l := range lines {
		if l.Advances() && l.Overtakes(sender.OrderLatest) {
			newest[k] = l.Newest
		}
	}
	if err := b.supersede(newest); err != nil {
		return err
	}
	for k := range newest {
		delete(b.movedLines, k) // these come out with the others
	}
	return nil
}

// comeOut makes a delivery pending, or one that waits. If it was there before the
// subscription was resumed, a claim finds it among what is resumed, which may have been
// looked at up to there.
func (b *batch) comeOut(r rows) error {
	var place int16
	var no int64
	var w waits
	var rank int16
	err := r.Scan(&place, &w.subscription, &w.event, &no, &w.notice, &w.bytes, &w.due, &w.firstAt, &w.number, &w.tries, &w.stood, &w.epoch, &w.replay, &rank, &w.single, &w.spared)
	if err != nil {
		return err
	}
	h := b.heads.by[w.subscription]
	h.behind--
	if place == placeBehind {
		b.arrives(h, made{w.key(), &unexpanded{event: no, notice: w.notice, bytes: w.bytes}, w.due})
		return nil
	}
	h.waiting++
	if w.rank = int(rank); w.epoch < h.epoch {
		w.due = b.now
		if h.resumedTo < 0 || h.resumedTo >= w.event {
			h.resumedTo = w.event - 1
		}
	}
	h.waitingFrom = min(h.waitingFrom, w.due)
	h.lower(w.due)
	b.waits = append(b.waits, w)
	return nil
}

// arrives counts a delivery that was never claimed in its head, and keeps it, in the order
// of the events, for the claim.
func (b *batch) arrives(h *head, m made) {
	h.pending++
	h.claimedTo = min(h.claimedTo, m.Event-1)
	if m.due == none {
		m.due = b.now
	}
	h.lower(m.due)
	if b.arrived == nil {
		b.arrived = map[*head][]made{}
	}
	here := b.arrived[h]
	at, _ := slices.BinarySearchFunc(here, m, func(x, y made) int { return cmp.Compare(x.Event, y.Event) })
	b.arrived[h] = slices.Insert(here, at, m)
}

// supersede ends what deliveries of these events overtake in their lines.
func (b *batch) supersede(newer map[lineKey]int64) error {
	if len(newer) == 0 {
		return nil
	}
	var keys []lineKey
	for k := range newer {
		keys = append(keys, k)
	}
	subscriptions, objects := lineArgs(keys)
	events := column(keys, func(k lineKey) int64 { return newer[k] })
	err := b.each(func(r rows) (bool, error) {
		var no int64
		err := r.Scan(&no)
		b.heads.by[no].lined--
		return true, err
	}, deleteOldDead, subscriptions, objects, events)
	if err != nil {
		return err
	}
	over, err := b.keys(selectOvertaken, subscriptions, objects, events, supersedeMost)
	if err != nil {
		return err
	}
	_, err = b.endAll(over, b.superseded)
	return err
}

// superseded is how a delivery ends that a newer one has overtaken. What a resume has
// skipped stays cancelled.
func (b *batch) superseded(l *live) sender.Status {
	if b.subs[l.subscription].skips(l.epoch, l.event) {
		return rules.Cancelled(l.single)
	}
	return rules.Superseded(l.single)
}

// displace puts behind what is out, and not in flight.
func (b *batch) displace(h *head, event int64) error {
	h.behind++
	var row lineRow
	pending := false
	err := b.each(func(r rows) (bool, error) {
		pending = true
		return true, r.Scan(&row.no, &row.notice, &row.bytes, &row.due)
	}, displacePending, h.subscription, event)
	if err != nil {
		return err
	}
	if pending {
		h.pending--
		return b.execs(setPlace, h.subscription, event, int16(placeBehind), row.no, row.notice, row.bytes, row.due)
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
		lines, err := b.readLines([]lineKey{k})
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
				err = b.supersede(map[lineKey]int64{k: w.event})
			}
		case e.Displaces:
			if err = b.settleArrived(); err == nil {
				err = b.displace(h, line.Out)
			}
		}
		if err != nil {
			return err
		}
		place := int16(placeOut)
		if e.Behind {
			place = placeAgain
		}
		if err := b.putInLines([]lineRow{{waits: w, object: object, place: place}}); err != nil || e.Behind {
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
	for i := range all {
		h := b.heads.by[all[i].subscription]
		h.lined++
		if all[i].place != placeOut {
			h.behind++
		}
	}
	return b.execs(insertLines,
		column(all, func(r lineRow) int64 { return r.subscription }), column(all, func(r lineRow) string { return r.object }),
		column(all, func(r lineRow) int64 { return r.event }), column(all, func(r lineRow) int16 { return r.place }),
		column(all, func(r lineRow) int64 { return r.no }), column(all, func(r lineRow) bool { return r.notice }),
		column(all, func(r lineRow) int32 { return r.bytes }), column(all, func(r lineRow) timestamp { return r.due }),
		column(all, func(r lineRow) timestamp { return r.firstAt }), column(all, func(r lineRow) int32 { return int32(r.number) }),
		column(all, func(r lineRow) int32 { return int32(r.tries) }), column(all, func(r lineRow) int64 { return r.stood }),
		column(all, func(r lineRow) int64 { return r.epoch }), column(all, func(r lineRow) int64 { return r.replay }),
		column(all, func(r lineRow) int16 { return int16(r.rank) }), column(all, func(r lineRow) bool { return r.single }),
		column(all, func(r lineRow) bool { return r.spared }))
}
