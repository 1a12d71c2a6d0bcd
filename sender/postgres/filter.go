package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/internal/lru"
	"github.com/surehook/surehook/sender/rules"
)

// Filters are asked about bodies that an expansion has before it locks what claims and
// results wait for. Few events come with their bodies. Otherwise one more trip reads the
// bodies of the events that a subscription with a filter may get, and the filters that are
// not remembered; without such subscriptions there is none. That trip holds the expander's
// lock, so it reads no more than fits into the buffers of a connection whose process has
// stopped to read. The bodies of the events behind those are read before the next step,
// while nothing is locked; and if filters ask for most bodies and there are more events,
// those of the events that the next step finds.

const (
	// filteredNow bounds the bodies that one expansion reads for filters.
	filteredNow = fewEvents * smallBody
	// filteredAhead bounds the bodies that are read before the next one, if they are several.
	filteredAhead = 4 << 20
)

// ahead are bodies for filters that are read between two expansions of this process. They
// are kept until it expands again: another expander may be at work for a while.
type ahead struct {
	sync.Mutex
	wanted []int64
	behind int64 // where in the outbox the next expansion begins; 0: it needs no bodies
	most   int   // and how many events it takes
	read   *payloads
}

func (a *ahead) want(events []int64, behind int64, most int) {
	a.Lock()
	defer a.Unlock()
	a.wanted, a.behind, a.most, a.read = events, behind, most, nil
}

// readAhead reads the bodies that the last expansion has left. An event that is redacted
// afterwards matches nobody when it is expanded, so the old body is asked about nothing.
func (c *core) readAhead(ctx context.Context) (*payloads, error) {
	a := &c.ahead
	a.Lock()
	defer a.Unlock()
	if len(a.wanted) == 0 && a.behind == 0 {
		return a.read, nil
	}
	var p *payloads
	err := c.dispatching().read(ctx, func(w *work) error {
		n := len(a.wanted)
		if a.behind > 0 {
			n += a.most
		}
		p = newPayloads(n)
		var qs []query
		if len(a.wanted) > 0 {
			qs = append(qs, w.query(selectArrived, a.wanted).rows(p.scan))
		}
		if a.behind > 0 {
			qs = append(qs, w.query(selectBehind, a.behind, a.most, filteredAhead).rows(p.scan))
		}
		return w.send(qs...)
	})
	if err != nil {
		return nil, fail("reading bodies for filters", err)
	}
	a.wanted, a.behind, a.read = nil, 0, p
	return a.read, nil
}

// selectBehind reads the events behind a number, which nearly always are those of the outbox
// behind it. To read them in a row takes half of what it takes to look up each.
const selectBehind = `SELECT e.no, ` + payloadColumns + ` FROM (
		SELECT *, sum(length(body)) OVER (ORDER BY no ROWS UNBOUNDED PRECEDING) AS total FROM (SELECT * FROM surehook_events WHERE no > $1 ORDER BY no LIMIT $2) f) e
	WHERE e.total <= $3`

const selectFilters = `SELECT no, version, filter FROM surehook_subscriptions WHERE no = ANY($1)`

// filterCache remembers filters, by their subscriptions and these' versions.
type filterCache struct {
	sync.Mutex
	by *lru.Map[int64, cachedFilter]
}

type cachedFilter struct {
	version int64
	filter  *filter.Filter
}

func newFilterCache() filterCache {
	return filterCache{by: lru.New[int64, cachedFilter](subscriptionCacheLimit)}
}

func (c *filterCache) get(subscription, version int64) (*filter.Filter, bool) {
	c.Lock()
	defer c.Unlock()
	known, ok := c.by.Get(subscription)
	return known.filter, ok && known.version == version
}

func (c *filterCache) put(subscription, version int64, f *filter.Filter) {
	c.Lock()
	defer c.Unlock()
	c.by.Put(subscription, cachedFilter{version, f})
}

// readFilters reads what decides about subscriptions with filters.
func (e *expansion) readFilters(found []unexpanded, all *matches) error {
	e.unread = len(found)
	bodies, unknown := e.toRead(found, all)
	var qs []query
	if len(unknown) > 0 {
		qs = append(qs, e.query(selectFilters, slices.Sorted(maps.Keys(unknown))).rows(func(r rows) error {
			var no, version int64
			var expression string
			if err := r.Scan(&no, &version, &expression); err != nil {
				return err
			}
			e.filters[no] = e.readFilter(no, expression)
			e.filterCache.put(no, version, e.filters[no])
			return nil
		}))
	}
	p := newPayloads(len(bodies))
	if len(bodies) > 0 {
		qs = append(qs, e.query(selectArrived, bodies).rows(p.scan))
	}
	if len(qs) == 0 {
		return nil
	}
	err := e.send(qs...)
	e.early = append(e.early, p)
	return err
}

// toRead returns the events whose bodies must be read, and the subscriptions whose filters
// must be. It counts how many of the events are decided in this step.
func (e *expansion) toRead(found []unexpanded, all *matches) (bodies []int64, unknown map[int64]bool) {
	e.filters, unknown = map[int64]*filter.Filter{}, map[int64]bool{}
	size, asked := 0, 0
	for i := range found {
		ev := &found[i]
		filtered := all.filtered(ev)
		if len(filtered) == 0 {
			continue
		}
		asked++
		if _, read := e.early.get(ev.event); !read {
			if size += int(ev.bytes); size > filteredNow {
				e.unread = i
				break
			}
			bodies = append(bodies, ev.event)
		}
		e.remembered(filtered, unknown)
	}
	behind := int64(0)
	if e.x.More && 2*asked > e.unread {
		behind = slices.MaxFunc(found, func(x, y unexpanded) int { return cmp.Compare(x.seq, y.seq) }).seq
	}
	e.core.ahead.want(e.toReadAhead(found[e.unread:], all), behind, len(found))
	return bodies, unknown
}

// toReadAhead returns the events that are not decided in this step, and whose bodies are to
// be read before the next one.
func (e *expansion) toReadAhead(left []unexpanded, all *matches) (events []int64) {
	size := 0
	for i := range left {
		ev := &left[i]
		if _, read := e.early.get(ev.event); read || len(all.filtered(ev)) == 0 {
			continue
		}
		if size += int(ev.bytes); len(events) > 0 && size > filteredAhead {
			break
		}
		events = append(events, ev.event)
	}
	return events
}

// remembered takes the filters that are remembered, and notes the others as unknown.
func (e *expansion) remembered(of []*match, unknown map[int64]bool) {
	for _, a := range of {
		if _, ok := e.filters[a.subscription]; ok || unknown[a.subscription] {
			continue
		}
		if f, ok := e.filterCache.get(a.subscription, a.filtered); ok {
			e.filters[a.subscription] = f
		} else {
			unknown[a.subscription] = true
		}
	}
}

// wants tells whether a subscription that an event matches gets it, by its filter.
func (e *expansion) wants(ev *unexpanded, a *match) bool {
	if a.filtered == 0 {
		return true
	}
	f, there := e.filters[a.subscription]
	p, _ := e.early.get(ev.event)
	return there && rules.Wants(f, ev.subscription != 0, p.Body)
}
