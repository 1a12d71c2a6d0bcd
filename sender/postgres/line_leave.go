package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

var (
	leaveLines = nextInLines(`u.subscription, u.object`) + ` SELECT subscription, object, place, event, no, notice, bytes, due FROM n`
	// leaveBefore is leaveLines where other deliveries are pending. These are claimed first, so
	// it puts the next ones among them at once. A step that read those, and wrote them, would
	// send each row twice.
	leaveBefore = nextInLines(`u.subscription`) + `,
		p AS (INSERT INTO surehook_pending (subscription, event, no, notice, bytes, due) SELECT subscription, event, no, notice, bytes, coalesce(due, $3) FROM n WHERE place = 1)
		SELECT subscription, count(*), count(*) FILTER (WHERE place = 1), min(event) FILTER (WHERE place = 1), min(coalesce(due, $3)) FILTER (WHERE place = 1),
			array_agg(event) FILTER (WHERE place = 2) FROM n GROUP BY subscription`
)

// leaveLast is leaveLines where nothing is behind, within a statement that writes the heads. So
// it takes no trip. Only the statement itself knows how many rows have left.
func leaveLast(heads rowwise) rowwise {
	within := func(text string) string {
		out := renumbered(deleteInLines, 26) // behind the parameters of the heads
		text = strings.Replace(text, "WITH changed", "WITH gone AS ("+out+" RETURNING l.subscription), gone_of AS (SELECT subscription, count(*) AS n FROM gone GROUP BY subscription), changed", 1)
		return strings.Replace(text, "lined = u.lined", "lined = u.lined - coalesce((SELECT n FROM gone_of g WHERE g.subscription = h.subscription), 0)", 1)
	}
	return rowwise{one: within(heads.one), many: within(heads.many)}
}

// nextInLines takes what was out out of the lines, and finds what comes out next, beside columns
// of what was out. That is behind it, unless it was preceded. The statement does not see what it
// deletes as gone. To find the rows, and then to delete them by where they are, costs less than
// to have the deletion return them. That f is asked about k tells the planner that each answer
// differs: otherwise it would remember all of them.
func nextInLines(columns string) string {
	return `WITH n AS MATERIALIZED (SELECT u.at, ` + columns + `, f.* FROM unnest($1::bigint[], $2::bigint[]) AS k(subscription, event)
			CROSS JOIN LATERAL (SELECT ctid AS at, subscription, object, CASE WHEN preceded THEN 0 ELSE event END AS after FROM surehook_lines
				WHERE subscription = k.subscription AND event = k.event LIMIT 1) u
			LEFT JOIN LATERAL (` + firstOfLine(columnsOut, `u.after`, `event <> k.event`) + `) f ON true),
		d AS (DELETE FROM surehook_lines l WHERE l.ctid = ANY(ARRAY(SELECT at FROM n)))`
}

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
// have nothing out by that. Mostly the next one comes out at once. If a claim follows that has
// enough without those, they come out with its next statement, on the same trip. What has nothing
// behind it leaves with the statement that writes the heads.
func (b *batch) leaveLines(claims bool) error {
	var left, before, stopped []dispatch.DeliveryKey
	var of int64
	var way *[]dispatch.DeliveryKey // of a subscription, whose deliveries mostly follow each other
	for _, l := range b.leaving {
		if l.stops {
			stopped = append(stopped, l.DeliveryKey)
			continue
		}
		if no := l.Subscription; no != of {
			switch of = no; {
			case !b.advances(no):
				way = &b.leavesLast
			case b.heads.stored[no].pending > 0 && !b.overtakes(no):
				way = &before
			default:
				way = &left
			}
		}
		*way = append(*way, l.DeliveryKey)
	}
	var qs []query
	if len(left) > 0 {
		qs = append(qs, b.query(leaveLines, subscriptionsOf(left), eventsOf(left)).rows(firstRows(b.left)))
	}
	if len(before) > 0 {
		b.leavesLater = claims && b.enough(before)
		q := b.query(leaveBefore, subscriptionsOf(before), eventsOf(before), b.now).rows(b.leftBefore(b.leavesLater))
		if b.leavesLater {
			b.pipeline.queue(q)
		} else {
			qs = append(qs, q)
		}
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
	if len(qs) == 0 && (claims || !b.leavesLater) {
		return nil
	}
	return b.send(qs...)
}

// enough tells whether more of the subscriptions of these deliveries is pending than can be
// claimed. What is next in a line is behind what leaves it. So the claim, which reads from there
// on, takes the same deliveries in the same order.
func (b *batch) enough(leaving []dispatch.DeliveryKey) bool {
	for _, k := range leaving {
		h := b.heads.by[k.Subscription]
		p := &b.Claim.Lanes[h.health.Lane]
		most := min(p.Slots, rules.Room(k.Subscription, b.Claim.SubscriptionRoom, p.PerSubscription))
		if h.pending <= int64(most) {
			return false
		}
	}
	for _, k := range leaving {
		h := b.heads.by[k.Subscription]
		h.claimedTo = min(h.claimedTo, k.Event)
	}
	return true
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

// leftBefore returns what reads the rows of leaveBefore. later tells whether the claim's next
// statement is on the same trip.
func (b *batch) leftBefore(later bool) func(r rows) error {
	return func(r rows) error {
		b.leavesLater = false
		var no, gone, out int64
		var first pgtype.Int8
		var due timestamp
		var again []int64
		if err := r.Scan(&no, &gone, &out, &first, &due, &again); err != nil {
			return err
		}
		h := b.heads.by[no]
		h.lined -= gone
		h.behind -= out + int64(len(again))
		for _, event := range again {
			b.waitingAgain = append(b.waitingAgain, dispatch.DeliveryKey{Event: event, Subscription: no})
		}
		if out > 0 {
			h.precedes = later && first.Int64 <= h.claimedTo
			h.pend(out, first.Int64, due)
		}
		return nil
	}
}
