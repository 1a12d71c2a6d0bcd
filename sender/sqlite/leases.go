package sqlite

import (
	"cmp"
	"database/sql"
	"slices"
	"strconv"

	"github.com/surehook/surehook/sender/dispatch"
)

const (
	// selectLeases takes rows of [subscription, first event, last event]. It joins the
	// events of the index surehook_events_apart alone: to read the rows of all events
	// costs more than the leases. The last column has four that are 0 or 1, because every
	// column costs.
	selectLeases = `SELECT l.subscription, l.event, l.token, l.number, l.tries, l.first_at, l.stood, l.claimed_at, l.epoch,
			l.single + 2 * l.spared + 4 * (e.notice IS 1) + 8 * (length(e.body) IS 0)
		FROM json_each(?) j CROSS JOIN surehook_leases l
		LEFT JOIN surehook_events e INDEXED BY surehook_events_apart ON e.seq = l.event AND (e.notice = 1 OR length(e.body) = 0)
		WHERE l.subscription = j.value ->> 0 AND l.event >= j.value ->> 1 AND l.event <= j.value ->> 2`
	deleteLeases = `DELETE FROM surehook_leases WHERE subscription = ? AND event >= ? AND event <= ?`
	deleteLease  = `DELETE FROM surehook_leases WHERE subscription = ? AND event = ?`
)

// lease is a delivery that is held under a token.
type lease struct {
	dispatch.DeliveryKey
	token int64
}

func compareKeys(a, b dispatch.DeliveryKey) int {
	return cmp.Or(cmp.Compare(a.Subscription, b.Subscription), cmp.Compare(a.Event, b.Event))
}

// takeLeases takes leases away, and loads the heads of all. It returns a row for each
// lease; nil if the delivery is not held under that token, or if an earlier one of these
// leases has taken it.
//
// Results that are recorded together were mostly claimed together. So the leases are read
// and deleted by ranges of events, which costs a fraction of finding each row. Between
// them lie never more leases than attempts are in flight.
func (b *batch) takeLeases(leases []lease) ([]*live, error) {
	order := make([]int, len(leases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareKeys(leases[i].DeliveryKey, leases[j].DeliveryKey) })
	rows, err := b.readLeases(leases, order)
	if err != nil {
		return nil, err
	}
	taken := make([]*live, len(leases))
	var run []*live // taken ones with none between them
	for i := range rows {
		l := &rows[i]
		for len(order) > 0 && compareKeys(leases[order[0]].DeliveryKey, l.key()) < 0 {
			order = order[1:]
		}
		mine := false
		for ; len(order) > 0 && leases[order[0]].DeliveryKey == l.key(); order = order[1:] {
			if !mine && leases[order[0]].token == l.token {
				taken[order[0]], mine = l, true
			}
		}
		if len(run) > 0 && (!mine || run[0].subscription != l.subscription) {
			if err := b.deleteLeases(run); err != nil {
				return nil, err
			}
			run = run[:0]
		}
		if mine {
			run = append(run, l)
		}
	}
	if len(run) > 0 {
		return taken, b.deleteLeases(run)
	}
	return taken, nil
}

// readLeases loads the heads of leases, and reads the rows from the first to the last one
// of each subscription. order has the leases' indexes in the order of their keys, which is
// also that of the rows.
func (b *batch) readLeases(leases []lease, order []int) ([]live, error) {
	var subscriptions []int64
	ranges := []byte{'['}
	for from := 0; from < len(order); {
		first, to := leases[order[from]], from+1
		for to < len(order) && leases[order[to]].Subscription == first.Subscription {
			to++
		}
		subscriptions = append(subscriptions, first.Subscription)
		ranges = appendNumbers(ranges, first.Subscription, first.Event, leases[order[to-1]].Event)
		from = to
	}
	if err := b.heads.load(subscriptions); err != nil {
		return nil, err
	}
	rows := make([]live, 0, len(leases))
	var l live
	var flags int64
	columns := []any{numberOf(&l.subscription), numberOf(&l.event), numberOf(&l.token), numberOf(&l.number), numberOf(&l.tries), numberOf(&l.firstAt),
		numberOf(&l.stood), numberOf(&l.claimedAt), numberOf(&l.epoch), numberOf(&flags)}
	err := b.each(func(rs *sql.Rows) (bool, error) {
		err := rs.Scan(columns...)
		l.single, l.spared, l.notice, l.redacted = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
		rows = append(rows, l)
		return true, err
	}, selectLeases, string(append(ranges, ']')))
	slices.SortFunc(rows, func(a, b live) int { return compareKeys(a.key(), b.key()) })
	return rows, err
}

func (b *batch) deleteLeases(run []*live) error {
	first, last := run[0], run[len(run)-1]
	b.heads.by[first.subscription].leased -= int64(len(run))
	return b.execs(deleteLeases, first.subscription, first.event, last.event)
}

// appendNumbers appends a JSON array of numbers to one of such arrays.
func appendNumbers(b []byte, numbers ...int64) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = append(b, '[')
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, ']')
}
