package sqlite

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	selectFirst  = `SELECT event, due, place FROM surehook_lines INDEXED BY surehook_lines_object WHERE subscription = ? + 0 AND object = ? ORDER BY event LIMIT 1`
	selectBehind = `SELECT due, number, tries, first_at, stood, single, epoch, rank, replay, spared FROM surehook_lines WHERE subscription = ? AND event = ?`
	// selectFirsts reads the first of lines of [subscription, object], if it is behind and
	// nothing is out.
	selectFirsts = `WITH k AS MATERIALIZED (SELECT value ->> 0 AS subscription, value ->> 1 AS object FROM json_each(?))
		SELECT l.subscription, l.event, l.due, l.place FROM k CROSS JOIN surehook_lines l
		WHERE l.subscription = k.subscription AND l.place IN (1, 2) AND l.halts = 0
			AND l.event = (SELECT min(f.event) FROM surehook_lines f INDEXED BY surehook_lines_object WHERE f.subscription = k.subscription AND f.object = k.object)
			AND NOT EXISTS (SELECT 1 FROM surehook_lines o INDEXED BY surehook_lines_ahead WHERE o.subscription = k.subscription AND o.object = k.object AND o.place = 0)
			AND ` + isBehind
	// isSentAgain tells whether something in the lines of a subscription was sent again.
	isSentAgain = `EXISTS (SELECT 1 FROM surehook_lines INDEXED BY surehook_lines_again WHERE subscription = ?1 AND place = 2)`
	selectAgain = `SELECT ` + isSentAgain
)

var (
	// pendingAgain inserts many that were behind, and never claimed.
	pendingAgain = newManyRows(`INSERT OR FAIL INTO surehook_pending (due, subscription, event) VALUES `, `(?, ?, ?)`)

	// pendingNext does it with what comes next in the lines of a subscription that some events
	// leave, which were out. It does nothing if something in the lines was sent again.
	pendingNext = newListed(`INSERT OR FAIL INTO surehook_pending (subscription, event, due)
		SELECT l.subscription, l.event, l.due FROM (VALUES `, `(?1, ?)`, `) v CROSS JOIN surehook_lines o CROSS JOIN surehook_lines l WHERE o.subscription = v.column1 AND o.event = v.column2
			AND l.subscription = o.subscription AND l.place = 1 AND l.halts = 0
			AND l.event = (SELECT min(f.event) FROM surehook_lines f INDEXED BY surehook_lines_object WHERE f.subscription = o.subscription AND f.object = o.object AND f.event <> o.event)
			AND NOT `+isSentAgain)
	leaveLines = newListed(`DELETE FROM surehook_lines WHERE subscription = ?1 AND event IN (`, `?`, `)`)
)

// advance lets the first come out of each line that has changed. A claim takes pending
// deliveries by their range. So nothing comes out of a subscription's lines after it has
// counted these deliveries and before it leases them.
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
	return b.comeOut(firsts)
}

// leaveAll takes the deliveries that have ended out of their lines, and lets the next ones
// come out. Each was the one that was out.
func (b *batch) leaveAll() error {
	leaving := b.leaving
	b.leaving = nil
	for h, events := range leaving {
		if err := b.leaveOf(h, events); err != nil {
			return err
		}
	}
	return nil
}

// leaveOf takes those of one subscription out of their lines. The next ones are pending, and
// need not be looked at one by one, unless something was sent again, or newer ones end others.
func (b *batch) leaveOf(h *head, events []int64) error {
	if h.behind > 0 {
		sub, err := b.known(h.subscription)
		if err != nil {
			return err
		}
		one := sub.gone() || sub.Settings.Order == sender.OrderLatest
		if !one {
			n, err := b.countListed(pendingNext, h.subscription, events)
			if err != nil {
				return err
			}
			if n > 0 {
				h.behind -= n
				h.pending += n
				h.lower(b.now)
			} else if err := b.row(selectAgain, h.subscription).Scan(&one); err != nil {
				return err
			}
		}
		if one {
			n, err := b.left(h, leaveLineOf, h.subscription, list(events))
			h.lined -= n
			return err
		}
	}
	n, err := b.countListed(leaveLines, h.subscription, events)
	h.lined -= n
	return err
}

// first is what comes out of a line next.
type first struct{ subscription, event, due, place int64 }

// firsts reads what may come out of lines.
func (b *batch) firsts(lines []lineKey) (all []first, err error) {
	query, err := keysOf(lines)
	if err != nil {
		return nil, err
	}
	var f first
	columns := []any{numberOf(&f.subscription), numberOf(&f.event), numberOf(&f.due), numberOf(&f.place)}
	return all, b.each(func(rows *sql.Rows) (bool, error) {
		err := rows.Scan(columns...)
		all = append(all, f)
		return true, err
	}, selectFirsts, query)
}

// keysOf returns lines, each of them once, for json_each.
func keysOf(lines []lineKey) (string, error) {
	slices.SortFunc(lines, func(a, b lineKey) int {
		return cmp.Or(cmp.Compare(a.subscription, b.subscription), cmp.Compare(a.object, b.object))
	})
	lines = slices.Compact(lines)
	rows := make([][2]int64, len(lines))
	for i, k := range lines {
		rows[i] = [2]int64{k.subscription, k.object}
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

// comeOut lets the first of several lines come out.
func (b *batch) comeOut(firsts []first) error {
	pending := make([]any, 0, len(firsts)*pendingAgain.columns)
	for _, f := range firsts {
		sub, err := b.known(f.subscription)
		if err != nil {
			return err
		}
		if sub.gone() { // all of what is gone is swept
			continue
		}
		h := b.heads.by[f.subscription]
		if sub.Settings.Order == sender.OrderLatest {
			if halts, err := b.overtakes(h, &f); err != nil {
				return err
			} else if halts {
				continue
			}
		}
		h.behind--
		if f.place == placeBehind {
			h.pending++
			h.lower(b.now) // it is due, and the subscription keeps its turn
			pending = append(pending, f.due, f.subscription, f.event)
		} else if err := b.waitAgain(h, f.event); err != nil {
			return err
		}
	}
	return b.execMany(pendingAgain, pending)
}

// overtakes ends what is before the newest of a line, if there is anything. The newest comes
// out then, unless the line halts.
func (b *batch) overtakes(h *head, f *first) (halts bool, err error) {
	k := lineKey{subscription: f.subscription}
	if err := b.row(selectInLine, k.subscription, f.event).Scan(&k.object); err != nil {
		return false, err
	}
	line, err := b.line(k)
	if err != nil || !line.Overtakes(sender.OrderLatest) {
		return false, err
	}
	if halts, err = b.supersede(h, k, &line, line.Newest); err != nil || halts {
		return halts, err
	}
	return false, b.row(selectFirst, k.subscription, k.object).Scan(&f.event, &f.due, &f.place)
}

// waitAgain makes a delivery wait that was behind. If it was there before the subscription was
// resumed, a claim finds it among what is resumed, which may have been looked at up to there.
func (b *batch) waitAgain(h *head, event int64) error {
	d := waits{live: live{event: event, subscription: h.subscription}}
	err := b.row(selectBehind, d.subscription, d.event).Scan(&d.due, &d.number, &d.tries, &d.firstAt, &d.stood, &d.single, &d.epoch, &d.rank, &d.replay, &d.spared)
	if err != nil {
		return err
	}
	if d.rank == rankReplay {
		k := lineKey{subscription: h.subscription}
		if err := b.row(selectInLine, h.subscription, event).Scan(&k.object); err != nil {
			return err
		}
		if err := b.rank(k, &d); err != nil {
			return err
		}
	}
	if h.waiting++; d.epoch < h.epoch {
		d.due = b.now
		if h.resumedTo < 0 || h.resumedTo >= d.event {
			h.resumedTo = d.event - 1
		}
	}
	h.lower(d.due)
	return b.execs(insertAgain, d.subscription, d.event, d.due, d.number, d.tries, d.firstAt, d.stood, d.single, d.spared, d.epoch, d.rank, d.replay)
}
