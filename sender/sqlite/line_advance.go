package sqlite

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	selectFirst = `SELECT event, place, due, number, tries, first_at, stood, single, epoch, rank, replay, spared FROM surehook_lines
		WHERE subscription = ? AND object = ? ORDER BY event LIMIT 1`
	// selectFirsts reads the first of lines of [subscription, object], if it is behind and
	// nothing is out: the place of the line among these, and little more, because every
	// column costs.
	selectFirsts = `WITH k AS MATERIALIZED (SELECT key, value ->> 0 AS subscription, value ->> 1 AS object FROM json_each(?))
		SELECT k.key, l.event, l.due, l.place FROM k CROSS JOIN surehook_lines l
		WHERE l.subscription = k.subscription AND l.object = k.object AND l.place IN (1, 2)
			AND l.event = (SELECT min(f.event) FROM surehook_lines f WHERE f.subscription = k.subscription AND f.object = k.object)
			AND NOT EXISTS (SELECT 1 FROM surehook_lines o WHERE o.subscription = k.subscription AND o.object = k.object AND o.place = 0)`
	// comeOutOf takes the events of one subscription.
	comeOutOf = `UPDATE surehook_lines INDEXED BY surehook_lines_event SET place = 0, due = 0 WHERE subscription = ?1 AND event IN (SELECT value FROM json_each(?2))`
)

// pendingAgain inserts many that were behind, and never claimed.
var pendingAgain = newManyRows(`INSERT OR FAIL INTO surehook_pending (due, subscription, event) VALUES `, `(?, ?, ?)`)

// leaveAll takes the deliveries that have ended out of their lines.
func (b *batch) leaveAll() error {
	leaving := b.leaving
	b.leaving = nil
	for h, events := range leaving {
		n, err := b.left(h, leaveLineOf, h.subscription, list(events))
		if err != nil {
			return err
		}
		h.lined -= n
	}
	return nil
}

// advance lets the first come out of each line that has changed. A claim takes pending
// deliveries by their range, so nothing comes out of a subscription's lines between the
// time when it counts these deliveries and the time when it leases them.
func (b *batch) advance() error {
	if err := b.leaveAll(); err != nil {
		return err
	}
	var moved []lineKey
	for _, k := range b.moved {
		if b.heads.by[k.subscription].behind > 0 {
			moved = append(moved, k)
		}
	}
	b.moved = b.moved[:0]
	if len(moved) == 0 {
		return nil
	}
	firsts, err := b.firsts(moved)
	if err != nil {
		return err
	}
	o := outcoming{batch: b, events: map[int64][]int64{}}
	for _, f := range firsts {
		if err := o.add(f); err != nil {
			return err
		}
	}
	return o.store()
}

// first is what comes out of a line next. Unless it was never claimed, only its event is
// known.
type first struct {
	lineKey
	event, due, place int64
}

// firsts finds the lines of which something can come out, and what is the first of each.
func (b *batch) firsts(moved []lineKey) (all []first, err error) {
	moved, query, err := keysOf(moved)
	if err != nil {
		return nil, err
	}
	var f first
	var key int64
	columns := []any{numberOf(&key), numberOf(&f.event), numberOf(&f.due), numberOf(&f.place)}
	return all, b.each(func(rows *sql.Rows) (bool, error) {
		err := rows.Scan(columns...)
		f.lineKey = moved[key]
		all = append(all, f)
		return true, err
	}, selectFirsts, query)
}

// keysOf returns lines, each of them once, and the same for json_each.
func keysOf(lines []lineKey) ([]lineKey, string, error) {
	slices.SortFunc(lines, func(a, b lineKey) int {
		return cmp.Or(cmp.Compare(a.subscription, b.subscription), cmp.Compare(a.object, b.object))
	})
	lines = slices.Compact(lines)
	rows := make([][2]any, len(lines))
	for i, k := range lines {
		rows[i] = [2]any{k.subscription, k.object}
	}
	text, err := json.Marshal(rows)
	return lines, string(text), err
}

// outcoming collects what comes out of many lines.
type outcoming struct {
	*batch
	subscriptions []int64
	events        map[int64][]int64 // by subscription
	pending       []any             // rows of pendingAgain
	waiting       []waits           // what was claimed before, or sent again
}

func (o *outcoming) add(f first) error {
	sub, err := o.known(f.subscription)
	if err != nil || sub.gone() { // all of what is gone is swept
		return err
	}
	h := o.heads.by[f.subscription]
	if sub.Settings.Order == sender.OrderLatest {
		if err := o.overtakes(h, &f); err != nil {
			return err
		}
	}
	h.behind--
	if len(o.events[f.subscription]) == 0 {
		o.subscriptions = append(o.subscriptions, f.subscription)
	}
	o.events[f.subscription] = append(o.events[f.subscription], f.event)
	if f.place == placeBehind {
		h.pending++
		h.lower(f.due)
		o.pending = append(o.pending, f.due, f.subscription, f.event)
		return nil
	}
	d, err := o.first(&f)
	o.waiting = append(o.waiting, d)
	return err
}

// overtakes ends what is before the newest of a line, if there is anything. The newest is
// the first then.
func (o *outcoming) overtakes(h *head, f *first) error {
	line, err := o.line(f.lineKey)
	if err != nil || !line.Overtakes(sender.OrderLatest) {
		return err
	}
	if err := o.supersede(h, f.lineKey, &line, line.Newest); err != nil {
		return err
	}
	_, err = o.first(f)
	return err
}

// first reads the first of a line.
func (o *outcoming) first(f *first) (d waits, err error) {
	d.subscription = f.subscription
	err = o.row(selectFirst, f.subscription, f.object).Scan(&d.event, &f.place, &d.due, &d.number, &d.tries, &d.firstAt, &d.stood, &d.single, &d.epoch, &d.rank, &d.replay, &d.spared)
	f.event, f.due = d.event, d.due
	return d, err
}

// store has all of them come out. What waited is read before its row changes.
func (o *outcoming) store() error {
	for _, no := range o.subscriptions {
		if err := o.execs(comeOutOf, no, list(o.events[no])); err != nil {
			return err
		}
	}
	for i := range o.waiting {
		d := &o.waiting[i]
		if err := o.comeOut(o.heads.by[d.subscription], d); err != nil {
			return err
		}
	}
	return o.execMany(pendingAgain, o.pending)
}

// comeOut makes a delivery wait that was behind. If it was there before the subscription was
// resumed, a claim finds it among what is resumed, which may have been looked at up to there.
func (b *batch) comeOut(h *head, d *waits) error {
	if h.waiting++; d.epoch < h.epoch {
		d.due = b.now
		if h.resumedTo < 0 || h.resumedTo >= d.event {
			h.resumedTo = d.event - 1
		}
	}
	h.lower(d.due)
	return b.execs(insertAgain, d.subscription, d.event, d.due, d.number, d.tries, d.firstAt, d.stood, d.single, d.spared, d.epoch, d.rank, d.replay)
}
