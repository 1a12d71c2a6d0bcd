package postgres

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/fanout"
	"github.com/surehook/surehook/sender/internal/lru"
	"github.com/surehook/surehook/sender/rules"
)

// Filters are asked about bodies that an expansion has before it locks what claims and
// results wait for. If there are few events, these come with their bodies, unless they are
// large, and the heads of those who may get them are locked by then. If there are more, and
// subscriptions with filters may get them, another trip reads their bodies, and the filters
// that are not remembered. That trip holds the expander's lock. So it reads no more than fits
// into the buffers of a connection, since a process can stop reading. The bodies of later
// events are read for the next step, once this one has committed. If filters ask for most
// bodies and there are more events, so are those of the events that the next step finds.
// Older payload versions, for subscriptions that are pinned to them, are made under the
// expander's lock too, and out of a bounded number of bytes. The next step decides the events
// behind those.

const (
	// filteredNow bounds the bodies that one expansion reads for filters.
	filteredNow = fewEvents * smallBody
	// convertedNow bounds the bodies that one expansion makes in other versions, if they are
	// several.
	convertedNow = 1 << 20
	// filteredAhead bounds the bodies that are read for the next one, if they are several.
	filteredAhead = 4 << 20
	// leastAsked is how many events make the start of a goroutine worth its cost.
	leastAsked = 32
)

// bodies are what filters read of events. An expansion of this process has them read for the
// next one. They are kept until it expands again: another expander may be at work for a while.
type bodies struct {
	at    map[int64][2]int // where in bytes the body of an event begins and ends
	bytes []byte           // used again: new memory for each body would cost more than the filters

	// The row that is being read: one for all, as there are many.
	event   int64
	body    pgtype.DriverBytes // no copy
	columns []any
}

func newBodies() *bodies {
	b := &bodies{at: map[int64][2]int{}}
	b.columns = []any{&b.event, &b.body}
	return b
}

func (b *bodies) get(event int64) (body []byte, read bool) {
	at, read := b.at[event]
	return b.bytes[at[0]:at[1]], read
}

func (b *bodies) scan(r rows) error {
	if err := r.Scan(b.columns...); err != nil {
		return err
	}
	from := len(b.bytes)
	b.bytes = append(b.bytes, b.body...)
	b.at[b.event] = [2]int{from, len(b.bytes)}
	return nil
}

// room forgets the bodies, and makes room for size bytes of others.
func (b *bodies) room(size int) {
	clear(b.at)
	if b.bytes = b.bytes[:0]; size == 0 || cap(b.bytes) > filteredAhead {
		b.bytes = nil
	}
	b.bytes = slices.Grow(b.bytes, size)
}

const (
	selectFiltered = `SELECT no, body FROM surehook_events WHERE no = ANY($1)`
	// selectBehind reads the events behind a number, which nearly always are those of the outbox
	// behind it. To read them in a row takes half of what it takes to look up each.
	selectBehind = `SELECT no, body FROM (
		SELECT no, body, sum(length(body)) OVER (ORDER BY no ROWS UNBOUNDED PRECEDING) AS total FROM (SELECT no, body FROM surehook_events WHERE no > $1 ORDER BY no LIMIT $2) f) e
	WHERE total <= $3`
)

// readAhead has bodies read for the next expansion, once this one has committed, when
// nobody waits for locks. They are those of the events that it leaves, and of as many
// behind these as it is done with. An event that is redacted afterwards matches nobody
// when it is expanded, so the old body is asked about nothing.
func (e *expansion) readAhead() {
	if e == nil {
		return
	}
	last, size, done := int64(0), 0, 0 // the bytes of those that it leaves, and that it is done with
	var left []int64
	for i := range e.found {
		ev := &e.found[i]
		last = max(last, ev.seq)
		switch {
		case ev.whole:
			done += int(ev.bytes)
		case size <= filteredAhead && len(e.all.filtered(ev)) > 0:
			if size += int(ev.bytes); len(left) == 0 || size <= filteredAhead {
				left = append(left, ev.event)
			}
		}
	}
	more := filteredAhead - size
	if !e.askBehind || more < 0 {
		done, more = 0, 0
	}
	e.bodies.room(min(size+done, filteredAhead))
	if len(left) > 0 {
		e.committed(e.query(selectFiltered, left).rows(e.bodies.scan))
	}
	if done > 0 {
		e.committed(e.query(selectBehind, last, len(e.done), more).rows(e.bodies.scan))
	}
}

const selectFilters = `SELECT no, version, filter, settings FROM surehook_subscriptions WHERE no = ANY($1)`

// filterCache remembers what subscriptions ask of content, by these and their versions.
type filterCache struct {
	sync.Mutex
	by *lru.Map[int64, cachedFilter]
}

type cachedFilter struct {
	version int64
	asked   rules.Asked
}

func newFilterCache() filterCache {
	return filterCache{by: lru.New[int64, cachedFilter](subscriptionCacheLimit)}
}

func (c *filterCache) get(subscription, version int64) (rules.Asked, bool) {
	c.Lock()
	defer c.Unlock()
	known, ok := c.by.Get(subscription)
	return known.asked, ok && known.version == version
}

func (c *filterCache) put(subscription, version int64, asked rules.Asked) {
	c.Lock()
	defer c.Unlock()
	c.by.Put(subscription, cachedFilter{version, asked})
}

// readFilters reads what decides about subscriptions with filters.
func (e *expansion) readFilters(found []unexpanded, all *matches) error {
	e.unread = len(found)
	bodies, unknown := e.toRead(found, all)
	var qs []query
	if len(unknown) > 0 {
		qs = append(qs, e.query(selectFilters, slices.Sorted(maps.Keys(unknown))).rows(func(r rows) error {
			var no, version int64
			var expression, settings string
			if err := r.Scan(&no, &version, &expression, &settings); err != nil {
				return err
			}
			read := sender.ReadSettings([]byte(settings))
			e.filters[no] = rules.AskedBy(e.readFilter(no, expression), &read)
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
	e.filters, unknown = map[int64]rules.Asked{}, map[int64]bool{}
	size, asked := 0, 0
	for i := range found {
		ev := &found[i]
		filtered := all.filtered(ev)
		if len(filtered) == 0 {
			continue
		}
		asked++
		if _, read := e.body(ev); !read {
			if size += int(ev.bytes); size > filteredNow {
				e.unread = i
				break
			}
			bodies = append(bodies, ev.event)
		}
		e.remembered(filtered, unknown)
	}
	e.askBehind = e.x.More && 2*asked > e.unread
	return bodies, unknown
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

// askFilters decides by filters which matches get the events of a plan. Of all that is done
// while the expander's lock is held, this alone takes the processor for long, so it takes all
// processors.
func (e *expansion) askFilters(found []unexpanded, all *matches, makes []fanout.Make) {
	var asked []fanout.Make
	for _, m := range makes {
		if len(all.filtered(&found[m.At])) > 0 {
			asked = append(asked, m)
		}
	}
	var processors sync.WaitGroup
	for part := range slices.Chunk(asked, max(leastAsked, (len(asked)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))) {
		processors.Go(func() {
			for _, m := range part {
				e.askAbout(&found[m.At], all, m.Most)
			}
		})
	}
	processors.Wait()
}

// askAbout decides about the first matches of an event.
func (e *expansion) askAbout(ev *unexpanded, all *matches, most int) {
	list, _ := all.of(ev)
	ev.wanted = make([]bool, most)
	for i, a := range list[:most] {
		if asked, there := e.filters[a.subscription]; there && a.gets(ev) {
			ev.wanted[i] = e.contentOf(ev).Wants(asked, ev.subscription != 0)
		}
	}
}

// wants tells whether a match, which stands at a place of its list, gets an event by its filter.
func (ev *unexpanded) wants(at int, a *match) bool {
	return a.filtered == 0 || at < len(ev.wanted) && ev.wanted[at]
}

// contentOf is what filters are asked about.
func (e *expansion) contentOf(ev *unexpanded) *rules.Content {
	if ev.content == nil {
		body, _ := e.body(ev)
		ev.content = &rules.Content{Type: ev.patterns[0], Body: body, Convert: e.p.Convert}
	}
	return ev.content
}

// makeVersions makes the payload versions of an event by which filters decide. It returns how
// many bytes it has read for them.
func (e *expansion) makeVersions(ev *unexpanded, all *matches) (bytes int) {
	filtered := all.filtered(ev)
	if e.p.Convert == nil || len(filtered) == 0 || !e.contentOf(ev).Older("") { // there is no older version
		return 0
	}
	for _, a := range filtered {
		if asked, there := e.filters[a.subscription]; there {
			bytes += e.contentOf(ev).Make(asked.Pinned)
		}
	}
	return bytes
}

// body returns the body of an event, if it was read.
func (e *expansion) body(ev *unexpanded) (body []byte, read bool) {
	if body, read = e.bodies.get(ev.event); read {
		return body, true
	}
	p, read := e.early.get(ev.event)
	return p.Body, read
}
