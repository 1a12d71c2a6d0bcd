package sqlite

import (
	"cmp"
	"container/heap"
	"database/sql"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// A list merges streams of keys. Each stream has the order of the list: by event, newest
// first, then by subscription, oldest first. A table that is ordered by subscription has
// a stream for each subscription. So the cost follows the rows that are looked at, and
// not the size of the tables.

// source is a table that may have deliveries of a status. Some that are found there have
// another status.
type source struct {
	table string
	// likely is the condition of the rows that may have the status. Other rows may lie
	// among them.
	likely string
	// of is the condition of the subscriptions that may have such deliveries. If it is
	// empty, the table is ordered by event. Then it is read for all subscriptions at
	// once, unless the query names some.
	of string
	// only is the condition of the rows that are read if the table is read for all
	// subscriptions at once.
	only string
}

// unended returns the sources of deliveries that have not ended. They have the status if
// their subscriptions meet the condition of.
func unended(likelyWaiting, of string) []source {
	return []source{
		{table: "surehook_pending", likely: "1", of: "h.pending > 0 AND " + of},
		{table: "surehook_waiting", likely: likelyWaiting, of: "h.waiting > 0 AND " + of},
		{table: "surehook_lines", likely: "x.place IN (1, 2) AND " + likelyWaiting, of: "h.behind > 0 AND " + of},
		{table: "surehook_leases", likely: "1"}, // as many as there are attempts in flight
	}
}

func endedAs(status string) source {
	return source{table: "surehook_ended", likely: "x.status = '" + status + "'", only: "x.status = '" + status + "'"}
}

const (
	opened  = "s.status IN ('active', 'closing')"
	held    = "s.status IN ('paused', 'disabled')"
	dropped = "(s.status = 'deleted' OR h.left_to > 0)"
	unswept = "s.status <> 'swept'"
)

var (
	// succeeded has the first attempts of deliveries: a delivery can have many attempts,
	// and succeed twice.
	succeeded = source{table: "surehook_attempts", only: "x.number = 1",
		likely: "EXISTS (SELECT 1 FROM surehook_attempts y WHERE y.event = x.event AND y.subscription = x.subscription AND y.class = '')"}

	dead, cancelled, superseded = endedAs("dead_lettered"), endedAs("cancelled"), endedAs("superseded")
)

func sources(status sender.Status) []source {
	switch status {
	case sender.StatusPending:
		return unended("x.number = 0", opened)
	case sender.StatusAwaitingRetry:
		return unended("x.number > 0", opened)[1:]
	case sender.StatusHeld:
		return unended("1", held)
	case sender.StatusDeadLettered:
		return []source{dead}
	case sender.StatusCancelled:
		return append(unended("1", dropped), cancelled)
	case sender.StatusSuperseded:
		return []source{superseded}
	case sender.StatusDelivered:
		return []source{succeeded}
	}
	return append(unended("1", unswept), dead, cancelled, superseded, succeeded)
}

// scope bounds a query, by numbers instead of ids.
type scope struct {
	low, high    int64 // events
	subscription int64 // 0: any
	subscriber   int64 // 0: any
}

// named tells whether it names its subscriptions.
func (s scope) named() bool { return s.subscription != 0 || s.subscriber != 0 }

// candidate is a delivery that the query may ask for.
type candidate struct {
	dispatch.DeliveryKey
	likely bool // false: the query does not ask for it
}

func (a candidate) before(b candidate) bool {
	return cmp.Or(cmp.Compare(b.Event, a.Event), cmp.Compare(a.Subscription, b.Subscription)) < 0
}

// stream reads ahead in a source, for one subscription or for all.
type stream struct {
	source       source
	subscription int64 // 0: all
	ahead        []candidate
	last         dispatch.DeliveryKey // that was read
	over         bool
	size         int // of the next read
}

// merge yields the candidates of all streams in their order. Its heap has the streams
// with a candidate ahead.
type merge struct {
	w       *work
	scope   scope
	streams []*stream
}

func (m *merge) Len() int           { return len(m.streams) }
func (m *merge) Less(i, j int) bool { return m.streams[i].ahead[0].before(m.streams[j].ahead[0]) }
func (m *merge) Swap(i, j int)      { m.streams[i], m.streams[j] = m.streams[j], m.streams[i] }
func (m *merge) Push(x any)         { m.streams = append(m.streams, x.(*stream)) }
func (m *merge) Pop() any {
	last := m.streams[len(m.streams)-1]
	m.streams = m.streams[:len(m.streams)-1]
	return last
}

// candidates begins to read after a key.
func (w *work) candidates(status sender.Status, sc scope, after dispatch.DeliveryKey) (*merge, error) {
	if after.Event > sc.high {
		after = dispatch.DeliveryKey{Event: sc.high}
	}
	m := &merge{w: w, scope: sc}
	for _, src := range sources(status) {
		if src.of == "" && !sc.named() {
			s := &stream{source: src, last: after, size: 64}
			if err := m.read(s); err != nil {
				return nil, err
			}
			if len(s.ahead) > 0 {
				m.streams = append(m.streams, s)
			}
			continue
		}
		if err := m.bySubscription(src, after); err != nil {
			return nil, err
		}
	}
	heap.Init(m)
	return m, nil
}

// bySubscription adds a stream for each subscription that has something in a source.
func (m *merge) bySubscription(src source, after dispatch.DeliveryKey) error {
	query, args := src.firsts(m.scope, after)
	return m.w.each(func(rows *sql.Rows) (bool, error) {
		var no int64
		var first sql.NullInt64
		if err := rows.Scan(&no, &first); err != nil || !first.Valid {
			return true, err
		}
		k := candidate{dispatch.DeliveryKey{Event: first.Int64, Subscription: no}, true}
		m.streams = append(m.streams, &stream{source: src, subscription: no, ahead: []candidate{k}, last: k.DeliveryKey, size: 8})
		return true, nil
	}, query, args...)
}

func (s *source) firsts(sc scope, after dispatch.DeliveryKey) (query string, args []any) {
	// The same event of later subscriptions comes after (event, subscription).
	query = `SELECT s.no, (SELECT max(x.event) FROM ` + s.table + ` x WHERE x.subscription = s.no AND x.event >= ?1 AND x.event <= ?2 - (s.no <= ?3)` + s.conditions(true) + `)
		FROM surehook_subscriptions s JOIN surehook_heads h ON h.subscription = s.no WHERE ` + cmp.Or(s.of, "1")
	args = []any{sc.low, after.Event, after.Subscription}
	if sc.subscription != 0 {
		query, args = query+` AND s.no = ?4`, append(args, sc.subscription)
	}
	if sc.subscriber != 0 {
		query, args = query+` AND s.subscriber = ?5`, append(args, sc.subscriber)
		if sc.subscription == 0 {
			args = slices.Insert(args, 3, any(0))
		}
	}
	return query, args
}

// conditions returns the conditions of the rows to read, for one subscription or for all.
func (s *source) conditions(one bool) string {
	switch {
	case one && s.table == succeeded.table:
		return ` AND x.class = ''` // there is an index for that
	case !one && s.only != "":
		return ` AND ` + s.only
	}
	return ""
}

// read reads more of a stream.
func (m *merge) read(s *stream) error {
	s.ahead = s.ahead[:0]
	query, args := s.source.next(s.subscription, m.scope, s.last, s.size)
	n := 0
	err := m.w.each(func(rows *sql.Rows) (bool, error) {
		var c candidate
		if err := rows.Scan(&c.Event, &c.Subscription, &c.likely); err != nil {
			return false, err
		}
		s.ahead, s.last = append(s.ahead, c), c.DeliveryKey
		n++
		return true, nil
	}, query, args...)
	s.over = n < s.size
	s.size = min(2*s.size, 512)
	return err
}

func (s *source) next(subscription int64, sc scope, after dispatch.DeliveryKey, n int) (query string, args []any) {
	query = `SELECT x.event, x.subscription, ` + s.likely + ` FROM ` + s.table + ` x WHERE x.event >= ?`
	args = []any{sc.low}
	if subscription != 0 {
		query, args = query+` AND x.subscription = ? AND x.event < ?`, append(args, subscription, after.Event)
	} else {
		query, args = query+` AND x.event <= ? AND (x.event < ? OR x.subscription > ?)`, append(args, after.Event, after.Event, after.Subscription)
	}
	query += s.conditions(subscription != 0)
	return query + ` ORDER BY x.event DESC, x.subscription LIMIT ? + 0`, append(args, n)
}

// take returns the next candidates, up to n. None: there are no more.
func (m *merge) take(n int) (some []candidate, err error) {
	for len(m.streams) > 0 {
		s := m.streams[0]
		c := s.ahead[0]
		k := len(some)
		again := k > 0 && some[k-1].DeliveryKey == c.DeliveryKey // from another stream
		if k == n && !again {
			break
		}
		if s.ahead = s.ahead[1:]; len(s.ahead) == 0 && !s.over {
			if err := m.read(s); err != nil {
				return nil, err
			}
		}
		if len(s.ahead) == 0 {
			heap.Pop(m)
		} else {
			heap.Fix(m, 0)
		}
		if again {
			some[k-1].likely = some[k-1].likely || c.likely
		} else {
			some = append(some, c)
		}
	}
	return some, nil
}
