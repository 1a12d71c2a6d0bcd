package sqlite

import (
	"cmp"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// eventText is an event. One text stands for several columns, because every column
	// costs. Only the last of them may hold a space.
	eventText = `e.id || ' ' || e.type || ' ' || e.created_at || ' ' || e.notice || ' ' || e.url || ' ' || coalesce(e.traceparent, '') || ' ' || e.object_type || ' ' || e.object_id`
	// dueColumns are the event of a delivery that may be claimed, and its body if that is
	// short and lies beside the event. To read a larger one would keep others from writing.
	// If somebody has removed the event, the delivery is claimed too. The dispatcher then
	// misses the event, puts the delivery off, and logs it.
	dueColumns = `coalesce(` + eventText + `, ''), coalesce(length(e.body), -1), iif(length(e.body) <= 2048, e.body, NULL)`

	selectPending = `SELECT p.event, ` + dueColumns + `, p.due FROM surehook_pending p LEFT JOIN surehook_events e ON e.seq = p.event
		WHERE p.subscription = ? + 0 AND p.event > ? ORDER BY p.event LIMIT ? + 0`
	// selectFirstPending reads the first pending ones of several subscriptions, up to a
	// number of each.
	selectFirstPending = `SELECT p.event, ` + dueColumns + `, p.due, p.subscription
		FROM json_each(?1) j CROSS JOIN surehook_pending p LEFT JOIN surehook_events e ON e.seq = p.event
		WHERE p.subscription = j.value AND p.event <= (SELECT max(event) FROM
			(SELECT f.event FROM surehook_pending f WHERE f.subscription = j.value ORDER BY f.event LIMIT ?2 + 0))`
	selectDueWaiting = `SELECT w.event, ` + dueColumns + `, w.due, w.number, w.tries, w.first_at, w.stood, w.single, w.spared
		FROM surehook_waiting w LEFT JOIN surehook_events e ON e.seq = w.event
		WHERE w.subscription = ? + 0 AND w.epoch = ? + 0 AND w.rank = ? + 0 AND w.due <= ? ORDER BY w.due LIMIT ? + 0`
	// selectResumed reads the deliveries that wait since an earlier epoch. They are
	// claimed in the order of the events, so that each row is looked at once.
	selectResumed = `SELECT w.event, ` + dueColumns + `, w.number, w.single, w.epoch
		FROM surehook_waiting w LEFT JOIN surehook_events e ON e.seq = w.event
		WHERE w.subscription = ? + 0 AND w.event > ? ORDER BY w.event LIMIT ? + 0`
	selectLost = `SELECT l.event, ` + dueColumns + `, l.until, l.token, l.number, l.tries, l.first_at, l.stood, l.single, l.spared, l.epoch, l.claimed_at
		FROM surehook_leases l LEFT JOIN surehook_events e ON e.seq = l.event
		WHERE l.subscription = ? + 0 AND l.until <= ? ORDER BY l.until LIMIT ? + 0`

	selectLeastUntil = `SELECT min(until) FROM surehook_leases WHERE subscription = ? + 0`
)

// Ranks of waiting deliveries. Within a subscription, the lower one goes first.
const (
	rankFresh  = 0
	rankReplay = 1
)

// found has the deliveries that a claim may take of a subscription.
type found struct {
	due  []dueDelivery
	more bool // there are others that are due
}

// due finds the first deliveries of a subscription that are due, up to a number: the
// resumed ones, then those of the present epoch, then replays.
func (b *batch) due(h *head, most int) (f found, err error) {
	if h.resumedTo >= 0 && most > 0 {
		if f.due, f.more, err = b.resumed(h, most); err != nil {
			return f, err
		}
	}
	ordinary, err := b.ordinary(h, most+1-len(f.due))
	if err != nil {
		return f, err
	}
	f.due = append(f.due, ordinary...)
	if remaining := most + 1 - len(f.due); remaining > 0 && h.waiting > 0 {
		replays, err := b.waiting(h, rankReplay, remaining)
		if err != nil {
			return f, err
		}
		f.due = append(f.due, replays...)
	}
	if len(f.due) > most {
		f.due, f.more = f.due[:most], true
	}
	return f, nil
}

// fresh tells whether the due deliveries of a subscription are exactly its pending ones,
// which its head has counted.
func (h *head) fresh() bool { return h.waiting == 0 && h.resumedTo < 0 && h.skippedTo == 0 }

// findPending finds the pending deliveries that claims have counted on. One query serves
// all the claims that want the same number.
func (b *batch) findPending(claims []*claimed) error {
	by := make(map[int64]*claimed, len(claims))
	want := map[int][]int64{}
	all := 0
	for _, c := range claims {
		if c.pending > 0 {
			by[c.h.subscription] = c
			want[c.pending] = append(want[c.pending], c.h.subscription)
			all += c.pending
		}
	}
	b.store.found = slices.Grow(b.store.found[:0], all)
	buffer := b.store.found[:all]
	for n, subscriptions := range want {
		expected := n * len(subscriptions)
		due, err := b.find(buffer[:0:expected], live{pending: true}, func(rows *sql.Rows, d *dueDelivery, event []any) error {
			return rows.Scan(append(event, numberOf(&d.due), numberOf(&d.subscription))...)
		}, selectFirstPending, list(subscriptions), n)
		if err != nil {
			return err
		}
		buffer = buffer[expected:]
		for len(due) > 0 { // those of a subscription come together: a CROSS JOIN keeps the order
			same := 1
			for same < len(due) && due[same].subscription == due[0].subscription {
				same++
			}
			c := by[due[0].subscription]
			for i := range due[:same] {
				due[i].epoch = c.h.epoch
			}
			c.due, due = due[:same:same], due[same:]
		}
	}
	return nil
}

// lost finds attempts whose leases have ended.
func (b *batch) lost(h *head, limit int) (due []dueDelivery, err error) {
	if h.leased == 0 || h.leasesEnd > b.now {
		return nil, nil
	}
	due, err = b.find(nil, h.template(), func(rows *sql.Rows, d *dueDelivery, event []any) error {
		return rows.Scan(append(event, &d.due, &d.token, &d.number, &d.tries, &d.firstAt, &d.stood, &d.single, &d.spared, &d.epoch, &d.claimedAt)...)
	}, selectLost, h.subscription, b.now, limit)
	if err == nil && len(due) == 0 {
		h.leasesEnd, err = b.least(selectLeastUntil, h.subscription)
	}
	return due, err
}

// ordinary finds the due deliveries of the present epoch, except replays.
func (b *batch) ordinary(h *head, limit int) (due []dueDelivery, err error) {
	if limit <= 0 {
		return nil, nil
	}
	if h.waiting > 0 {
		if due, err = b.waiting(h, rankFresh, limit); err != nil {
			return nil, err
		}
	}
	if h.pending == 0 {
		return inTurn(due), nil
	}
	pending, err := b.find(make([]dueDelivery, 0, min(limit, int(h.pending))), h.template(), func(rows *sql.Rows, d *dueDelivery, event []any) error {
		d.pending = true
		return rows.Scan(append(event, &d.due)...)
	}, selectPending, h.subscription, h.skippedTo, limit)
	if err != nil {
		return nil, err
	}
	if len(due) == 0 {
		return pending, nil // in order already
	}
	// The delivery of a large event may have been made after those of later events.
	for i := len(pending) - 2; i >= 0; i-- {
		pending[i].due = min(pending[i].due, pending[i+1].due)
	}
	due = inTurn(append(due, pending...))
	return due[:min(limit, len(due))], nil
}

// inTurn sorts deliveries by when they became due. A waiting delivery without an attempt
// was released. It had been claimed before all that are pending, so it comes first, in
// the order of the events.
func inTurn(all []dueDelivery) []dueDelivery {
	turn := func(d *dueDelivery) int64 {
		if d.number == 0 && !d.pending {
			return 0
		}
		return d.due
	}
	slices.SortStableFunc(all, func(x, y dueDelivery) int {
		return cmp.Or(cmp.Compare(turn(&x), turn(&y)), cmp.Compare(x.event, y.event))
	})
	return all
}

func (b *batch) waiting(h *head, rank, limit int) ([]dueDelivery, error) {
	return b.find(nil, h.template(), func(rows *sql.Rows, d *dueDelivery, event []any) error {
		return rows.Scan(append(event, &d.due, &d.number, &d.tries, &d.firstAt, &d.stood, &d.single, &d.spared)...)
	}, selectDueWaiting, h.subscription, h.epoch, rank, b.now, limit)
}

// resumed finds deliveries that wait since an earlier epoch, and moves on among them.
// Their schedules start anew.
func (b *batch) resumed(h *head, limit int) (due []dueDelivery, more bool, err error) {
	// Rows of the present epoch, and cancelled ones, are passed over.
	passed, err := b.find(nil, h.template(), func(rows *sql.Rows, d *dueDelivery, event []any) error {
		return rows.Scan(append(event, &d.number, &d.single, &d.epoch)...)
	}, selectResumed, h.subscription, h.resumedTo, limit)
	if err != nil {
		return nil, false, err
	}
	for _, d := range passed {
		h.resumedTo = d.event
		skipped, err := b.skipped(h, d.epoch, d.event)
		if err != nil {
			return nil, false, err
		}
		if d.epoch < h.epoch && !skipped {
			d.resumed = true
			due = append(due, d)
		}
	}
	if len(passed) < limit {
		h.resumedTo = -1
	}
	return due, h.resumedTo >= 0, nil
}

// template has the values that all deliveries of a subscription share.
func (h *head) template() live { return live{subscription: h.subscription, epoch: h.epoch} }

// find reads deliveries, each with its event, into copies of a template, and appends
// them to due.
func (b *batch) find(due []dueDelivery, template live, scan func(rows *sql.Rows, d *dueDelivery, event []any) error, query string, args ...any) ([]dueDelivery, error) {
	var info string
	var body sql.RawBytes
	var event [16]any
	err := b.each(func(rows *sql.Rows) (bool, error) {
		due = append(due, dueDelivery{live: template})
		d := &due[len(due)-1]
		event[0], event[1], event[2], event[3] = numberOf(&d.event), &info, numberOf(&d.size), &body
		if err := scan(rows, d, event[:4]); err != nil {
			return false, err
		}
		d.body = b.read.keep(d.event, body)
		if info != "" {
			d.info = eventInfo(info)
		}
		d.notice, d.redacted = d.info.Notice, d.size == 0
		return true, nil
	}, query, args...)
	return due, err
}

func eventInfo(text string) (e sender.EventInfo) {
	var created, notice string
	e.ID, text, _ = strings.Cut(text, " ")
	e.Type, text, _ = strings.Cut(text, " ")
	created, text, _ = strings.Cut(text, " ")
	notice, text, _ = strings.Cut(text, " ")
	e.URL, text, _ = strings.Cut(text, " ")
	e.Traceparent, text, _ = strings.Cut(text, " ")
	e.Object.Type, e.Object.ID, _ = strings.Cut(text, " ")
	micros, _ := strconv.ParseInt(created, 10, 64)
	e.CreatedAt, e.Notice = timeOf(micros), notice == "1"
	return e
}

// within bounds by a subscription's rate how many of its deliveries may be claimed now.
func (b *batch) within(h *head, sub *subscription, most int) int {
	if sub.Settings.Rate == 0 {
		return most
	}
	granted, _, _ := rules.TakeRate(sub.Settings.Rate, timeOf(h.rateAt), timeOf(b.now), most)
	return granted
}

// spend counts n claimed deliveries against a subscription's rate, and returns when that
// allows another.
func (b *batch) spend(h *head, sub *subscription, n int) (again int64) {
	if sub.Settings.Rate == 0 {
		return b.now
	}
	_, at, next := rules.TakeRate(sub.Settings.Rate, timeOf(h.rateAt), timeOf(b.now), n)
	if n > 0 {
		h.rateAt = micros(at)
	}
	return micros(next)
}
