package postgres

import (
	"math"
	"time"
)

// disorder bounds two differences. The times of events may be out of the order of their
// numbers by it. An event may be older by it than one that was expanded before, without
// being late.
const disorder = 10 * time.Second

const (
	// lateMost is how many late events are looked at before a list is not bounded by time.
	lateMost = 10_000
	// spansMost is the largest number of spans in which a list is read.
	spansMost = 100
)

// halving finds the last row of a table before a time, by a number with which the time
// rises: 0 if there is none. It reads a few dozen rows, in one round trip.
func halving(table, number, at string) string {
	const middle = `b.low + (b.high - b.low) / 2`
	return `WITH RECURSIVE b(low, high) AS (
			SELECT 0::bigint, (SELECT coalesce(max(` + number + `), 0) + 1 FROM ` + table + `)
			UNION ALL SELECT CASE WHEN x.at < $1 THEN x.no ELSE b.low END, CASE WHEN x.at < $1 THEN b.high ELSE ` + middle + ` END
				FROM b LEFT JOIN LATERAL (SELECT ` + number + ` AS no, ` + at + ` AS at FROM ` + table + `
					WHERE ` + number + ` >= ` + middle + ` AND ` + number + ` < b.high ORDER BY ` + number + ` LIMIT 1) x ON true
				WHERE b.high - b.low > 1)
		SELECT low FROM b WHERE high - low <= 1`
}

var (
	selectPositionBefore = halving("surehook_feed", "position", "newest")
	selectEventBefore    = halving("surehook_events", "no", "created_at")
)

const (
	countLate = `SELECT count(*) FROM (SELECT 1 FROM surehook_feed WHERE late AND position > $1 ORDER BY position LIMIT $2) x`
	// selectBelated finds events that were published before a time, and expanded after an
	// event that was published later.
	selectBelated = `SELECT position FROM (
			SELECT f.position FROM surehook_feed f JOIN surehook_events e ON e.no = f.event
				WHERE f.position > $1 AND f.position <= $2 AND e.created_at <= $3
			UNION ALL SELECT f.position FROM (SELECT position FROM surehook_feed WHERE late AND position > $2 ORDER BY position LIMIT $4) l
				JOIN surehook_feed f ON f.position = l.position JOIN surehook_events e ON e.no = f.event WHERE e.created_at <= $3) x
		ORDER BY position DESC`
)

// span is a range of positions, both ends included.
type span struct{ low, high int64 }

// lastBefore finds the last position up to which everything was published before a time.
func (w *work) lastBefore(at timestamp) (position int64, err error) {
	err = w.row(selectPositionBefore, at).Scan(&position)
	return position, err
}

// spans returns the ranges of positions that hold what was published between two times, the
// last ones first. A zero time does not bound them. Positions follow the commits, so a span
// may also hold events that were published at another time.
func (w *work) spans(since, until time.Time) (all []span, err error) {
	whole := span{1, math.MaxInt64}
	if !since.IsZero() {
		if whole.low, err = w.lastBefore(timestampOf(since)); err != nil {
			return nil, err
		}
		whole.low++
	}
	if until.IsZero() {
		return []span{whole}, nil
	}
	last, err := w.lastBefore(timestampOf(until))
	if err != nil {
		return nil, err
	}
	inOrder, err := w.lastBefore(timestampOf(until).plus(disorder)) // an event beyond it that was published before until is late
	if err != nil {
		return nil, err
	}
	var late int64
	if err := w.row(countLate, inOrder, lateMost).Scan(&late); err != nil || late == lateMost {
		return []span{whole}, err
	}
	belated, err := w.numbers(selectBelated, last, inOrder, timestampOf(until), lateMost)
	if err != nil {
		return nil, err
	}
	for _, position := range belated {
		if n := len(all); n > 0 && (all[n-1].low == position+1 || n == spansMost) {
			all[n-1].low = position
		} else {
			all = append(all, span{position, position})
		}
	}
	if whole.high = last; whole.low <= whole.high {
		all = append(all, whole)
	}
	return all, nil
}

// positions returns the first and the last position of the spans between two times.
func (w *work) positions(since, until time.Time) (low, high int64, err error) {
	all, err := w.spans(since, until)
	if err != nil || len(all) == 0 {
		return 1, 0, err
	}
	return all[len(all)-1].low, all[0].high, nil
}

// eventNumbers returns the lowest and the highest number that an event published between
// two times can have, by the time at which its row was made. A zero time does not bound
// them. Events between them may have been published at another time.
func (w *work) eventNumbers(since, until time.Time) (low, high int64, err error) {
	high = math.MaxInt64
	if !since.IsZero() {
		if err = w.row(selectEventBefore, timestampOf(since).plus(-disorder)).Scan(&low); err != nil {
			return 0, 0, err
		}
		low++
	}
	if !until.IsZero() {
		err = w.row(selectEventBefore, timestampOf(until).plus(disorder)).Scan(&high)
	}
	return low, high, err
}
