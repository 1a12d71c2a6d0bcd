package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// line returns what the rules need of the line of an object.
func (sub *subscription) line(object sender.Object) (l rules.Line) {
	for i, d := range sub.lines[object] {
		no := d.event.no
		if i == 0 {
			l.First, l.Dead, l.Halted = no, d.stops, d.halts
		}
		if d.live == nil {
			continue
		}
		l.Newest = no
		if !d.live.behind {
			l.Out, l.Leased = no, !d.live.leased.IsZero()
		}
	}
	return l
}

// line returns the line of a delivery that is in one. It may have been made, and be live
// still, from before its subscription had an order.
func (d *delivery) line() rules.Line {
	if !d.inLine() {
		return rules.Line{}
	}
	return d.sub.line(d.event.info.Object)
}

// enter makes a delivery live, in the line of its object if its subscription has an order.
func (tx *Tx) enter(d *delivery, row *live) {
	sub, object := d.sub, d.event.info.Object
	tx.leaveLine(d) // it may be a dead letter that was redelivered
	if order := sub.Settings.Order; order != sender.OrderRelaxed {
		e := sub.line(object).Enter(order, d.event.no)
		if e.Superseded {
			tx.end(d, rules.Superseded(row.single))
			tx.advance(sub, object)
			return
		}
		if e.Supersedes {
			e.Behind = tx.supersede(sub, object, d.event.no) || e.Behind
		}
		if e.Displaces {
			tx.displace(sub, object)
		}
		row.behind = e.Behind
		tx.rank(sub, object, d, row)
		all := slices.Clone(sub.lines[object])
		at, _ := slices.BinarySearchFunc(all, d, byEvent)
		setKey(tx, sub.lines, object, slices.Insert(all, at, d))
	}
	tx.setLive(d, row)
	tx.advance(sub, object)
}

// rank takes away the rank of what a replay has admitted while something else waits for it
// in its line. row is of d, which comes into the line or comes out.
func (tx *Tx) rank(sub *subscription, object sender.Object, d *delivery, row *live) {
	for _, other := range sub.lines[object] {
		switch {
		case other == d || other.live == nil:
		case row.replay == 0 && other.live.replay != 0 && other.event.no < d.event.no:
			first := *other.live
			first.replay = 0
			tx.setLive(other, &first)
		case row.replay != 0 && !row.behind && other.live.replay == 0 && other.event.no > d.event.no:
			row.replay = 0
		}
	}
}

func byEvent(a, b *delivery) int { return int(a.event.no - b.event.no) }

// supersede ends what comes before an event in a line, but not what is in flight. Dead
// letters leave it. halts tells that some are left for sweeps.
func (tx *Tx) supersede(sub *subscription, object sender.Object, newer int64) (halts bool) {
	line := sub.line(object)
	most, _ := tx.superseding.Grants()
	var over, kept []*delivery
	var left *delivery
	for _, d := range sub.lines[object] {
		switch {
		case d.event.no >= newer || d.live != nil && !d.live.leased.IsZero():
			kept = append(kept, d)
		case d.live != nil && most == 0:
			kept = append(kept, d)
			left = cmp.Or(left, d)
		default:
			if d.live != nil {
				most--
			}
			over = append(over, d)
		}
	}
	tx.setLine(sub, object, kept)
	for _, d := range over {
		set(tx, &d.stops, false)
		set(tx, &d.halts, false)
		if d.live != nil {
			tx.end(d, rules.Superseded(d.live.single))
			tx.superseding.Add(1)
		}
	}
	if halts = line.Halts(left != nil); halts {
		set(tx, &left.halts, true)
		set(tx, &tx.store.halted, append(tx.store.halted, left))
	}
	return halts
}

// displace puts what is out behind.
func (tx *Tx) displace(sub *subscription, object sender.Object) {
	for _, d := range sub.lines[object] {
		if d.live != nil && !d.live.behind {
			row := *d.live
			row.behind = true
			tx.setLive(d, &row)
		}
	}
}

// goOn stores a delivery that was in flight, and has not ended by that.
func (tx *Tx) goOn(d *delivery, row *live, line rules.Line) {
	row.behind = line.Yields(d.event.no)
	tx.setLive(d, row)
	tx.advance(d.sub, d.event.info.Object)
}

func (d *delivery) inLine() bool { return slices.Contains(d.sub.lines[d.event.info.Object], d) }

// advance lets the first of a line come out, if nothing is out. Under OrderLatest the
// newest one comes out, once all before it have ended. Deliveries that are gone are swept.
func (tx *Tx) advance(sub *subscription, object sender.Object) {
	line := sub.line(object)
	if sub.deleted || !line.Advances() {
		return
	}
	if line.Overtakes(sub.Settings.Order) && tx.supersede(sub, object, line.Newest) {
		return
	}
	first := sub.lines[object][0]
	row := *first.live
	row.behind = false
	tx.rank(sub, object, first, &row)
	tx.setLive(first, &row)
}

// waitedFor returns the delivery for which those behind wait: what is out, or a dead letter.
func (sub *subscription) waitedFor(object sender.Object) *delivery {
	for _, d := range sub.lines[object] {
		if d.live != nil && !d.live.behind {
			return d
		}
	}
	return sub.lines[object][0]
}

// endInLine takes a delivery that has ended out of its line, unless it holds back others.
func (tx *Tx) endInLine(d *delivery) {
	switch {
	case !d.inLine():
		return
	case d.ended == sender.StatusDeadLettered && !d.sub.deleted && rules.Holds(&d.sub.Settings, d.sub.Status):
		set(tx, &d.stops, true)
		set(tx, &tx.store.stopped, append(tx.store.stopped, d))
	default:
		tx.leaveLine(d)
	}
	tx.advance(d.sub, d.event.info.Object)
}

// leaveLine takes a delivery out of its line, if it is in it.
func (tx *Tx) leaveLine(d *delivery) {
	if object := d.event.info.Object; d.inLine() {
		set(tx, &d.stops, false)
		set(tx, &d.halts, false)
		tx.setLine(d.sub, object, filter(d.sub.lines[object], func(other *delivery) bool { return other != d }))
	}
}

func (tx *Tx) setLine(sub *subscription, object sender.Object, line []*delivery) {
	if len(line) == 0 {
		deleteKey(tx, sub.lines, object)
	} else {
		setKey(tx, sub.lines, object, line)
	}
}

// releaseStops takes those dead letters out of their lines that are to hold back others no
// longer, and returns how many. It waits until nothing behind them is too old to go on.
func (w *batch) releaseStops(notBefore time.Time) (freed int, err error) {
	tx, s := w.tx, w.tx.store
	for _, d := range s.stopped {
		if !s.freeable(d) {
			continue
		}
		left, err := w.expire(d, notBefore)
		if err != nil {
			return 0, err
		}
		if !left {
			freed++
			tx.leaveLine(d)
			tx.advance(d.sub, d.event.info.Object)
			tx.wake = true
		}
	}
	set(tx, &s.stopped, filter(s.stopped, func(d *delivery) bool { return d.stops }))
	return freed, nil
}

// freeable tells of a dead letter in a line that it is gone, or that its subscription does not
// want it to hold back others any more.
func (s *Store) freeable(d *delivery) bool {
	return d.stops && (s.deliveries[d.key()] != d || d.sub.deleted || !rules.Holds(&d.sub.Settings, d.sub.Status))
}

// expire ends what is behind a dead letter and too old to go on, and tells whether some of it
// is left.
func (w *batch) expire(dead *delivery, notBefore time.Time) (left bool, err error) {
	tx, sub := w.tx, dead.sub
	if sub.deleted || !rules.Expires(sub.Status, notBefore) {
		return false, nil
	}
	most, _ := tx.superseding.Grants()
	all, held := w.heldBack(dead, notBefore, most)
	ends, left := rules.Expire(sub.Settings.Order, held, notBefore, most)
	for i, end := range ends {
		tx.leaveLine(all[i])
		tx.end(all[i], end)
		tx.superseding.Add(1)
	}
	n, at, ok := rules.ExpireNotice(sub.owner.ID, held, ends)
	if !ok {
		return left, nil
	}
	n.Subscription, n.Delivery = sub.ID, all[at].id()
	return left, w.notify(n)
}

// heldBack finds what rules.Expire needs of what a dead letter holds back that is the first of
// its line.
func (w *batch) heldBack(dead *delivery, notBefore time.Time, most int) (all []*delivery, held []rules.Held) {
	for _, d := range dead.sub.lines[dead.event.info.Object] {
		switch before := d.event.no < dead.event.no; {
		case before && d.stops:
			return nil, nil // that one holds back all
		case before, d.live != nil && !d.live.behind, w.tx.store.freeable(d):
			continue
		case d.stops:
			return all, held
		}
		all = append(all, d)
		held = append(held, rules.Held{Published: d.event.info.CreatedAt, Single: d.live.single, Notice: d.event.info.Notice})
		if len(held) > most || rules.Within(d.event.info.CreatedAt, notBefore) == nil {
			break
		}
	}
	return all, held
}

// goOnWithHalted lets lines advance that halted.
func (tx *Tx) goOnWithHalted() {
	s := tx.store
	all := s.halted
	set(tx, &s.halted, nil)
	for _, d := range all {
		if d.halts {
			set(tx, &d.halts, false)
			tx.advance(d.sub, d.event.info.Object)
			tx.wake = true
		}
	}
}

// PassOver implements history.Store.
func (s *Store) PassOver(ctx context.Context, id string, notBefore time.Time) error {
	return s.inTx(ctx, func(tx *Tx) error {
		d := s.deliveryByID(id)
		if d == nil {
			return fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
		}
		if !d.stops {
			return rules.HoldsNothing(id)
		}
		for _, next := range d.sub.lines[d.event.info.Object] {
			if next.live != nil && next.event.no > d.event.no {
				if err := rules.Within(next.event.info.CreatedAt, notBefore); err != nil {
					return err
				}
				break
			}
		}
		tx.leaveLine(d)
		tx.advance(d.sub, d.event.info.Object)
		tx.wake = true
		return nil
	})
}
