package postgres

import (
	"cmp"
	"slices"
)

// match is a subscription that asks for the type of an event, or that the event is
// addressed to.
type match struct {
	subscription int64
	since, until *snapshotMark // nil: unbounded
	gone         bool          // the subscription was deleted
	filtered     int64         // the version of a subscription that has a filter; 0: it has none
}

func (a *match) gets(ev *unexpanded) bool {
	return !a.gone && (a.since == nil || a.since.precedes(ev)) && (a.until == nil || !a.until.precedes(ev))
}

// pattern names a list of subscriptions: those of a subscriber, or of everyone, that ask
// for a pattern, behind a number.
type pattern struct {
	text       string
	subscriber int64 // 0: everyone's
	after      int64
}

// matches are the subscriptions that match a batch of events.
type matches struct {
	operator int64
	limit    int
	by       map[pattern][]*match
	one      map[int64]*match      // subscriptions that an event is addressed to
	lists    map[pattern]matchList // for all patterns of an event together
}

// matchList holds the subscriptions that may get an event, and whether these are all.
type matchList struct {
	list     []*match
	whole    bool
	filtered []*match // those of list that have a filter
}

const (
	// operatorNo also finds an operator that was deleted: its closing subscriptions are
	// still to get what was committed before.
	operatorNo = `coalesce((SELECT no FROM surehook_subscribers WHERE id = $7), 0)`

	matchColumns   = `p.subscription, p.since_snapshot::text, p.since_xid::text, p.since_seq, s.status, s.until_snapshot::text, s.until_xid::text, s.until_seq, ` + filteredColumn
	filteredColumn = `CASE WHEN s.filter = '' THEN 0 ELSE s.version END`
	// The comparison of rows says the same as equations would. But a planner without
	// statistics leaves out of an order whatever is equal to something, and any index with
	// the last column would do. For one subscriber it might read the index of everyone's
	// subscriptions.
	selectMatches = `SELECT q.i, p.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[]) AS q(pattern, subscriber, after, i)
		CROSS JOIN LATERAL (SELECT ` + matchColumns + ` FROM surehook_patterns p JOIN surehook_subscriptions s ON s.no = p.subscription
			WHERE (p.subscriber, p.pattern, p.subscription) > (q.subscriber, q.pattern, q.after) AND (p.subscriber, p.pattern) <= (q.subscriber, q.pattern)
			ORDER BY p.subscriber, p.pattern, p.subscription LIMIT $5) p`
	selectAllMatches = `SELECT q.i, p.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[]) AS q(pattern, subscriber, after, i)
		CROSS JOIN LATERAL (SELECT ` + matchColumns + ` FROM surehook_patterns p JOIN surehook_subscriptions s ON s.no = p.subscription
			WHERE (p.pattern, p.subscription) > (q.pattern, q.after) AND p.pattern <= q.pattern AND q.subscriber = 0
			ORDER BY p.pattern, p.subscription LIMIT $5) p`
	selectAddressed = `SELECT no, NULL, NULL, NULL::bigint, status, until_snapshot::text, until_xid::text, until_seq, 0::bigint FROM surehook_subscriptions WHERE no = ANY($1)`
)

// findMatches finds the subscriptions that match events, up to the limit for each pattern.
func (e *expansion) findMatches(found []unexpanded, all *matches) error {
	ofSubscribers, ofEveryone, addressed := all.missing(found)
	var qs []query
	if len(ofSubscribers) > 0 {
		qs = append(qs, e.matchQuery(selectMatches, ofSubscribers, all))
	}
	if len(ofEveryone) > 0 {
		qs = append(qs, e.matchQuery(selectAllMatches, ofEveryone, all))
	}
	if len(addressed) > 0 {
		qs = append(qs, e.query(selectAddressed, distinct(addressed)).rows(func(r rows) error {
			m, err := readMatch(r)
			if err == nil {
				all.one[m.subscription] = m
			}
			return err
		}))
	}
	if len(qs) == 0 {
		return nil
	}
	return e.send(qs...)
}

// missing returns the patterns of events that are not looked up yet, those of subscribers
// and those of everyone, and the subscriptions that events are addressed to.
func (all *matches) missing(found []unexpanded) (ofSubscribers, ofEveryone []pattern, addressed []int64) {
	seen := map[pattern]bool{}
	for i := range found {
		ev := &found[i]
		if ev.subscription != 0 {
			addressed = append(addressed, ev.subscription)
			continue
		}
		key := pattern{ev.patternText, ev.subscriber, ev.after}
		if seen[key] {
			continue
		}
		seen[key] = true
		for _, q := range all.patternsOf(ev) {
			if _, ok := all.by[q]; ok {
				continue
			}
			all.by[q] = nil
			if q.subscriber == 0 {
				ofEveryone = append(ofEveryone, q)
			} else {
				ofSubscribers = append(ofSubscribers, q)
			}
		}
	}
	return ofSubscribers, ofEveryone, addressed
}

// matchQuery looks up the matches of patterns.
func (e *expansion) matchQuery(text string, of []pattern, all *matches) query {
	numbers := make([]int32, len(of))
	for i := range numbers {
		numbers[i] = int32(i)
	}
	return e.query(text, column(of, func(q pattern) string { return q.text }), column(of, func(q pattern) int64 { return q.subscriber }),
		column(of, func(q pattern) int64 { return q.after }), numbers, all.limit,
	).rows(func(r rows) error {
		var i int32
		m, err := readMatch(r, &i)
		if err == nil {
			all.by[of[i]] = append(all.by[of[i]], m)
		}
		return err
	})
}

// readMatch reads matchColumns, behind others.
func readMatch(r rows, before ...any) (*match, error) {
	var m match
	var status string
	var snapshots, xids [2]*string
	var seqs [2]*int64
	err := r.Scan(append(before, &m.subscription, &snapshots[0], &xids[0], &seqs[0], &status, &snapshots[1], &xids[1], &seqs[1], &m.filtered)...)
	if err != nil {
		return nil, err
	}
	if m.since, err = parseSnapshotMark(snapshots[0], xids[0], seqs[0]); err != nil {
		return nil, err
	}
	if status == statusClosing {
		if m.until, err = parseSnapshotMark(snapshots[1], xids[1], seqs[1]); err != nil {
			return nil, err
		}
	}
	m.gone = status == statusDeleted || status == statusSwept
	return &m, nil
}

// patternsOf returns the patterns whose subscriptions get an event.
func (all *matches) patternsOf(ev *unexpanded) []pattern {
	var qs []pattern
	for _, text := range ev.patterns {
		qs = append(qs, pattern{text, ev.subscriber, ev.after})
		if ev.subscriber != 0 && all.operator != 0 && all.operator != ev.subscriber {
			qs = append(qs, pattern{text, all.operator, ev.after})
		}
	}
	return qs
}

// of lists who may get an event, in the order of their numbers. whole is false if there may
// be others behind the last.
func (all *matches) of(ev *unexpanded) (list []*match, whole bool) {
	if ev.subscription != 0 {
		if a := all.one[ev.subscription]; a != nil && a.subscription > ev.after {
			list = append(list, a)
		}
		return list, true
	}
	key := pattern{ev.patternText, ev.subscriber, ev.after}
	if cached, ok := all.lists[key]; ok {
		return cached.list, cached.whole
	}
	upTo := int64(-1) // the lowest end of a list that is not whole
	for _, q := range all.patternsOf(ev) {
		some := all.by[q]
		list = append(list, some...)
		if len(some) == all.limit {
			if last := some[len(some)-1].subscription; upTo < 0 || last < upTo {
				upTo = last
			}
		}
	}
	// If several patterns match, the oldest mark counts.
	slices.SortFunc(list, func(x, y *match) int {
		return cmp.Or(cmp.Compare(x.subscription, y.subscription), cmp.Compare(x.sinceSeq(), y.sinceSeq()))
	})
	list = slices.CompactFunc(list, func(x, y *match) bool { return x.subscription == y.subscription })
	if upTo >= 0 {
		list = slices.DeleteFunc(list, func(a *match) bool { return a.subscription > upTo })
	}
	var filtered []*match
	for _, a := range list {
		if a.filtered != 0 {
			filtered = append(filtered, a)
		}
	}
	all.lists[key] = matchList{list, upTo < 0, filtered}
	return list, upTo < 0
}

// filtered lists those who may get an event and have a filter.
func (all *matches) filtered(ev *unexpanded) []*match {
	if ev.subscription != 0 {
		return nil
	}
	all.of(ev)
	return all.lists[pattern{ev.patternText, ev.subscriber, ev.after}].filtered
}

// byName tells whether the subscription that an event tells about asks for exactly its
// type, or is the addressee.
func (all *matches) byName(ev *unexpanded) bool {
	for _, subscriber := range []int64{ev.subscriber, all.operator} {
		for _, a := range all.by[pattern{ev.patterns[0], subscriber, ev.after}] {
			if a.subscription == ev.about && a.gets(ev) {
				return true
			}
		}
	}
	return ev.subscription == ev.about
}

func (a *match) sinceSeq() int64 {
	if a.since == nil {
		return -1
	}
	return a.since.seq
}
