package postgres

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// takeFirsts finds the first of lines from which nothing is out.
var takeFirsts = `SELECT u.subscription, u.object, f.* FROM unnest($1::bigint[], $2::text[]) AS u(subscription, object) CROSS JOIN LATERAL (` + firstOfLine(columnsOut, `0`, `true`) + `) f WHERE f.place < 3`

// selectAgain reads what waits again. It is rare, so it does not widen the rows of all.
const selectAgain = `SELECT u.subscription, u.event, u.notice, u.bytes, u.due, u.first_at, u.number, u.tries, u.stood, u.epoch, u.replay,
		CASE WHEN u.rank = 1 AND ` + newestIsFresh + ` THEN 0::smallint ELSE u.rank END, u.single, u.spared
		FROM unnest($1::bigint[], $2::bigint[]) AS k(subscription, event) CROSS JOIN LATERAL (
		SELECT subscription, object, event, notice, bytes, due, first_at, number, tries, stood, epoch, replay, rank, single, spared
		FROM surehook_lines WHERE subscription = k.subscription AND event = k.event OFFSET 0) u`

// advance takes what has ended out of the lines, and lets the first of each line come out
// from which nothing is out. One that comes out and was never claimed arrives as new
// deliveries do. claims tells whether a claim follows.
func (b *batch) advance(claims bool) error {
	if err := b.leaveLines(claims); err != nil {
		return err
	}
	var moved []lineKey
	for k := range b.movedLines {
		if b.advances(k.subscription) {
			moved = append(moved, k)
		}
	}
	if len(moved) > 0 {
		slices.SortFunc(moved, func(x, y lineKey) int {
			return cmp.Or(cmp.Compare(x.subscription, y.subscription), cmp.Compare(x.object, y.object))
		})
		if err := b.onlyLatest(moved); err != nil {
			return err
		}
		subscriptions, objects := lineArgs(moved)
		if err := b.send(b.query(takeFirsts, subscriptions, objects).rows(firstRows(b.comeOut))); err != nil {
			return err
		}
	}
	clear(b.movedLines)
	return b.waitAgain()
}

// advances tells whether something can come out of a subscription's lines. Those of one that
// is gone are swept.
func (b *batch) advances(subscription int64) bool {
	return b.heads.by[subscription].behind > 0 && !b.subs[subscription].gone()
}

// overtakes tells whether what is newest may come out of a subscription's lines before what
// is first.
func (b *batch) overtakes(subscription int64) bool {
	return b.heads.by[subscription].behind > 1 && b.subs[subscription].Settings.Order == sender.OrderLatest
}

// firstRow is a row of takeFirsts or leaveLines. The columns behind the line are NULL if
// nothing is behind what has left it.
type firstRow struct {
	line      lineKey
	place     pgtype.Int2
	event, no pgtype.Int8
	notice    pgtype.Bool
	bytes     pgtype.Int4
	due       timestamp
}

// firstRows scans rows into one that is used for all, as there are many.
func firstRows(take func(f *firstRow)) func(r rows) error {
	var f firstRow
	columns := []any{&f.line.subscription, &f.line.object, &f.place, &f.event, &f.no, &f.notice, &f.bytes, &f.due}
	return func(r rows) error {
		err := r.Scan(columns...)
		if err == nil {
			take(&f)
		}
		return err
	}
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

// lineMoved notes that nothing is out of a line.
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
		if b.overtakes(k.subscription) {
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
	_, err = b.supersede(newest, lines)
	return err
}

// comeOut lets a delivery come out that was never claimed, and notes one that waits again.
func (b *batch) comeOut(f *firstRow) {
	key := dispatch.DeliveryKey{Event: f.event.Int64, Subscription: f.line.subscription}
	h := b.heads.by[key.Subscription]
	h.behind--
	if f.place.Int16 == placeNew {
		b.arrives(h, made{key, &unexpanded{event: f.no.Int64, notice: f.notice.Bool, bytes: f.bytes.Int32}, f.due})
	} else {
		b.waitingAgain = append(b.waitingAgain, key)
	}
}

// waitAgain makes what waits again wait. If it was there before the subscription was resumed,
// a claim finds it among what is resumed, which may have been looked at up to there.
func (b *batch) waitAgain() error {
	again := b.waitingAgain
	if len(again) == 0 {
		return nil
	}
	b.waitingAgain = nil
	return b.each(func(r rows) (bool, error) {
		var w waits
		var rank int16
		err := r.Scan(&w.subscription, &w.event, &w.notice, &w.bytes, &w.due, &w.firstAt, &w.number, &w.tries, &w.stood, &w.epoch, &w.replay, &rank, &w.single, &w.spared)
		if err != nil {
			return false, err
		}
		h := b.heads.by[w.subscription]
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
		return true, nil
	}, selectAgain, subscriptionsOf(again), eventsOf(again))
}

// arrives counts a delivery that was never claimed in its head, and keeps it, in the order
// of the events, for the claim.
func (b *batch) arrives(h *head, m made) {
	if m.due == none {
		m.due = b.now
	}
	h.pend(1, m.Event, m.due)
	if b.arrived == nil {
		b.arrived = map[*head][]made{}
	}
	here := b.arrived[h]
	at, _ := slices.BinarySearchFunc(here, m, func(x, y made) int { return cmp.Compare(x.Event, y.Event) })
	b.arrived[h] = slices.Insert(here, at, m)
}
