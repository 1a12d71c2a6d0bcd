package postgres

import (
	"cmp"
	"container/heap"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// A list merges streams of keys, each in the list's order: by event, newest first, then by
// subscription, oldest first. A table that is ordered by subscription has one stream for
// each subscription: so the cost follows what is looked at, and not what the tables hold.
// Streams are read ahead, many in one statement.

// scope is the subject of a query, in numbers.
type scope struct {
	spans        []span
	subscription int64 // 0: any
	subscriber   int64 // 0: any
}

// named tells whether the query names its subscriptions or their subscriber.
func (s *scope) named() bool { return s.subscription != 0 || s.subscriber != 0 }

// entry is a delivery that may match the query.
type entry struct {
	dispatch.DeliveryKey
	likely bool // false: it does not match
}

func (a entry) before(b entry) bool {
	return cmp.Or(cmp.Compare(b.Event, a.Event), cmp.Compare(a.Subscription, b.Subscription)) < 0
}

// stream reads a source ahead, of one subscription or of all.
type stream struct {
	source       *source
	subscription int64 // 0: all
	ahead        []entry
	last         dispatch.DeliveryKey // the last key that was read
	over         bool
	size         int // of the next read, in rows
}

// Bounds of what streams read ahead.
const (
	streamFirst   = 16
	streamMost    = 512
	streamsAtOnce = 128
)

// merge yields the entries of all streams in their order. Its heap holds the streams that
// have something ahead.
type merge struct {
	w       *work
	scope   *scope
	low     int64
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

// walk yields the entries of a scope, one span of it after the other.
type walk struct {
	*work
	scope  scope
	status sender.Status
	after  dispatch.DeliveryKey
	merge  *merge // of the present span; nil: the next one begins
}

// take returns the next entries, up to n. None: there are no more.
func (w *walk) take(n int) (some []entry, err error) {
	for {
		if w.merge == nil {
			if len(w.scope.spans) == 0 {
				return nil, nil
			}
			if w.merge, err = w.entries(w.scope.spans[0]); err != nil {
				return nil, err
			}
			w.scope.spans = w.scope.spans[1:]
		}
		if some, err = w.merge.take(n); err != nil || len(some) > 0 {
			return some, err
		}
		w.merge = nil
	}
}

// entries begins to read a span.
func (w *walk) entries(of span) (*merge, error) {
	m := &merge{w: w.work, scope: &w.scope, low: of.low}
	after := w.after
	if after.Event < of.low {
		return m, nil
	}
	if after.Event > of.high {
		after = dispatch.DeliveryKey{Event: of.high}
	}
	all := sources(w.status)
	for i := range all {
		src := &all[i]
		if src.of != "" || w.scope.named() {
			if err := m.bySubscription(src, after); err != nil {
				return nil, err
			}
			continue
		}
		s := &stream{source: src, last: after, size: streamMost / 8}
		if err := m.readAll(s); err != nil {
			return nil, err
		}
		if len(s.ahead) > 0 {
			m.streams = append(m.streams, s)
		}
	}
	heap.Init(m)
	return m, nil
}

// bySubscription adds a stream for each subscription that has something in a source.
func (m *merge) bySubscription(src *source, after dispatch.DeliveryKey) error {
	query, args := src.firsts(m.scope)
	return m.w.each(func(r rows) (bool, error) {
		k := entry{likely: true}
		err := r.Scan(&k.Subscription, &k.Event)
		s := &stream{source: src, subscription: k.Subscription, ahead: []entry{k}, last: k.DeliveryKey, size: streamFirst}
		m.streams = append(m.streams, s)
		return true, err
	}, query, append([]any{m.low, after.Event, after.Subscription}, args...)...)
}

// read reads more of a stream that has nothing ahead, and of those that will soon have
// nothing.
func (m *merge) read(s *stream) error {
	if s.subscription == 0 {
		return m.readAll(s)
	}
	some := []*stream{s}
	for _, other := range m.streams[:min(len(m.streams), streamsAtOnce)] { // the top of the heap
		if other != s && other.source == s.source && other.subscription != 0 && len(other.ahead) <= 1 && !other.over && other.size <= streamFirst {
			some = append(some, other)
		}
	}
	by := make(map[int64]*stream, len(some))
	for _, s := range some {
		by[s.subscription] = s
	}
	size := s.size
	query := `SELECT x.event, x.subscription, ` + s.source.likely + ` FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, before) CROSS JOIN LATERAL (
			SELECT * FROM ` + s.source.table + ` x WHERE x.subscription = u.subscription AND x.event >= $3 AND x.event < u.before` + s.source.ofOne() + `
			ORDER BY x.event DESC LIMIT $4) x ORDER BY x.subscription, x.event DESC`
	read := map[int64]int{}
	err := m.w.each(func(r rows) (bool, error) {
		var e entry
		if err := r.Scan(&e.Event, &e.Subscription, &e.likely); err != nil {
			return false, err
		}
		s := by[e.Subscription]
		s.ahead, s.last = append(s.ahead, e), e.DeliveryKey
		read[e.Subscription]++
		return true, nil
	}, query, column(some, func(s *stream) int64 { return s.subscription }), column(some, func(s *stream) int64 { return s.last.Event }), m.low, size)
	for _, s := range some {
		s.over = read[s.subscription] < size
		s.size = min(2*size, streamMost)
	}
	return err
}

// readAll reads more of a stream of all subscriptions. It reads the rest of the last event
// first, since one event may have very many deliveries.
func (m *merge) readAll(s *stream) error {
	of := func(which, order string) string {
		return `SELECT x.event, x.subscription, ` + s.source.likely + ` FROM ` + s.source.table + ` x
			WHERE ` + which + ` AND ` + s.source.only + ` ORDER BY ` + order + ` LIMIT $3`
	}
	remaining := s.size
	read := func(r rows) (bool, error) {
		var e entry
		if err := r.Scan(&e.Event, &e.Subscription, &e.likely); err != nil {
			return false, err
		}
		s.ahead, s.last = append(s.ahead, e), e.DeliveryKey
		remaining--
		return true, nil
	}
	after := s.last
	if after.Subscription > 0 && after.Event >= m.low {
		if err := m.w.each(read, of(`x.event = $1 AND x.subscription > $2`, `x.subscription`), after.Event, after.Subscription, s.size); err != nil {
			return err
		}
		after.Event--
	}
	if remaining > 0 {
		if err := m.w.each(read, of(`x.event >= $1 AND x.event <= $2`, `x.event DESC, x.subscription`), m.low, after.Event, remaining); err != nil {
			return err
		}
	}
	s.over = remaining > 0
	s.size = min(2*s.size, streamMost)
	return nil
}

// take returns the next entries, up to n. None: there are no more.
func (m *merge) take(n int) (some []entry, err error) {
	for len(m.streams) > 0 {
		s := m.streams[0]
		e := s.ahead[0]
		k := len(some)
		again := k > 0 && some[k-1].DeliveryKey == e.DeliveryKey // from another stream
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
			some[k-1].likely = some[k-1].likely || e.likely
		} else {
			some = append(some, e)
		}
	}
	return some, nil
}
