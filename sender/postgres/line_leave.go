package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

var (
	// nextInLines takes what was out out of the lines, and finds what comes out next. That is
	// behind it, unless it was preceded. The statement does not see what it deletes as gone.
	nextInLines = `u AS MATERIALIZED (` + deleteInLines + ` RETURNING l.subscription, l.object, l.event AS gone, CASE WHEN l.preceded THEN 0 ELSE l.event END AS after),
		n AS (SELECT u.subscription, u.object, f.* FROM u LEFT JOIN LATERAL (` + firstOfLine(columnsOut, `u.after`, `event <> u.gone`) + `) f ON true)`
	leaveLines = `WITH ` + nextInLines + ` SELECT * FROM n`
	// leaveBefore is leaveLines where other deliveries are pending. These are claimed first, so
	// it puts the next ones among them at once. A step that read those, and wrote them, would
	// send each row twice.
	leaveBefore = `WITH ` + nextInLines + `,
		p AS (INSERT INTO surehook_pending (subscription, event, no, notice, bytes, due) SELECT subscription, event, no, notice, bytes, coalesce(due, $3) FROM n WHERE place = 1)
		SELECT subscription, 0::bigint, count(*), count(*) FILTER (WHERE place = 1), min(event) FILTER (WHERE place = 1), min(coalesce(due, $3)) FILTER (WHERE place = 1) FROM n GROUP BY subscription
		UNION ALL SELECT subscription, event, 0, 0, NULL, NULL FROM n WHERE place = 2`
	// leaveLast is leaveLines where nothing is behind.
	leaveLast = `WITH u AS (` + deleteInLines + ` RETURNING l.subscription) SELECT subscription, count(*) FROM u GROUP BY subscription`
)

// leaving is a delivery that has ended.
type leaving struct {
	dispatch.DeliveryKey
	stops bool // it stays in its line, as a dead letter
}

// leave notes that a delivery has ended. It may stay in its line as a dead letter that holds
// back others.
func (b *batch) leave(h *head, sub *subscription, l *live, status sender.Status) {
	if h.lined > 0 {
		stops := status == sender.StatusDeadLettered && !sub.gone() && rules.Holds(sub.Settings, sender.SubscriptionStatus(sub.status))
		b.leaving = append(b.leaving, leaving{l.key(), stops})
	}
}

// leaveLines takes deliveries out of their lines, or puts them behind, and notes which lines
// have nothing out by that. Mostly the next one comes out at once.
func (b *batch) leaveLines() error {
	var left, before, last, stopped []dispatch.DeliveryKey
	for _, l := range b.leaving {
		switch no := l.Subscription; {
		case l.stops:
			stopped = append(stopped, l.DeliveryKey)
		case !b.advances(no):
			last = append(last, l.DeliveryKey)
		case b.heads.stored[no].pending > 0 && !b.overtakes(no):
			before = append(before, l.DeliveryKey)
		default:
			left = append(left, l.DeliveryKey)
		}
	}
	var qs []query
	if len(left) > 0 {
		qs = append(qs, b.query(leaveLines, subscriptionsOf(left), eventsOf(left)).rows(firstRows(b.left)))
	}
	if len(before) > 0 {
		qs = append(qs, b.query(leaveBefore, subscriptionsOf(before), eventsOf(before), b.now).rows(b.leftBefore))
	}
	if len(last) > 0 {
		qs = append(qs, b.query(leaveLast, subscriptionsOf(last), eventsOf(last)).rows(b.leftLast))
	}
	moved := func(r rows) error {
		k := lineKey{}
		err := r.Scan(&k.subscription, &k.object)
		b.lineMoved(k)
		return err
	}
	if len(stopped) > 0 {
		qs = append(qs, b.query(stopLines, subscriptionsOf(stopped), eventsOf(stopped)).rows(moved))
	}
	if y := b.yields; len(y) > 0 {
		qs = append(qs, b.query(changeLines, yieldArgs(y)...).rows(moved))
	}
	b.leaving, b.yields = nil, nil
	if len(qs) == 0 {
		return nil
	}
	return b.send(qs...)
}

// left counts a row that has left its line, and lets the next one come out, if there is one.
func (b *batch) left(f *firstRow) {
	b.heads.by[f.line.subscription].lined--
	switch {
	case f.place.Int16 == 0 || f.place.Int16 == placeDead || !b.advances(f.line.subscription):
	case b.overtakes(f.line.subscription):
		b.lineMoved(f.line)
	default:
		b.comeOut(f)
	}
}

// leftBefore reads a row of leaveBefore: the counts of a subscription, or a delivery that waits
// again.
func (b *batch) leftBefore(r rows) error {
	var key dispatch.DeliveryKey
	var gone, out int64
	var first pgtype.Int8
	var due timestamp
	if err := r.Scan(&key.Subscription, &key.Event, &gone, &out, &first, &due); err != nil {
		return err
	}
	h := b.heads.by[key.Subscription]
	if key.Event != 0 {
		h.behind--
		b.waitingAgain = append(b.waitingAgain, key)
		return nil
	}
	h.lined -= gone
	if out > 0 {
		h.behind -= out
		h.pend(out, first.Int64, due)
	}
	return nil
}

// leftLast reads a row of leaveLast.
func (b *batch) leftLast(r rows) error {
	var no, gone int64
	err := r.Scan(&no, &gone)
	if err == nil {
		b.heads.by[no].lined -= gone
	}
	return err
}
