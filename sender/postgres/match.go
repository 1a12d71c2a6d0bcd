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
	skips        []unexpandedSkip
}

// unexpandedSkip cancels deliveries of events that came before a mark, and were published
// before a time.
type unexpandedSkip struct {
	snapshotMark
	publishedBefore timestamp
}

func (a *match) gets(ev *unexpanded) bool {
	return !a.gone && (a.since == nil || a.since.precedes(ev)) && (a.until == nil || !a.until.precedes(ev))
}

// skipped tells whether a resume skipped an event that was committed before it.
func (a *match) skipped(ev *unexpanded) bool {
	return slices.ContainsFunc(a.skips, func(l unexpandedSkip) bool {
		return !l.precedes(ev) && (l.publishedBefore == none || ev.published < l.publishedBefore)
	})
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

	matchColumns   = `p.subscription, p.since_snapshot::text, p.since_xid::text, p.since_seq, s.status, s.until_snapshot::text, s.until_xid::text, s.until_seq, s.epoch, ` + filteredColumn
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
	selectAddressed = `SELECT no, NULL, NULL, NULL::bigint, status, until_snapshot::text, until_xid::text, until_seq, epoch, 0::bigint FROM surehook_subscriptions WHERE no = ANY($1)`

	selectUnexpandedSkips = `SELECT subscription, snapshot::text, xid::text, seq, published_before FROM surehook_left WHERE subscription = ANY($1)`
)

// findMatches finds the subscriptions that match events, up to the limit for each pattern.
func (e *expansion) findMatches(found []unexpanded, all *matches) error {
	ofSubscribers, ofEveryone, addressed := all.missing(found)
	scan := matchScan{resumed: map[int64][]*match{}}
	var qs []query
	if len(ofSubscribers) > 0 {
		qs = append(qs, e.matchQuery(selectMatches, ofSubscribers, all, &scan))
	}
	if len(ofEveryone) > 0 {
		qs = append(qs, e.matchQuery(selectAllMatches, ofEveryone, all, &scan))
	}
	if len(addressed) > 0 {
		qs = append(qs, e.query(selectAddressed, distinct(addressed)).rows(func(r rows) error {
			m, err := scan.read(r)
			if err == nil {
				all.one[m.subscription] = m
			}
			return err
		}))
	}
	if len(qs) > 0 {
		if err := e.send(qs...); err != nil {
			return err
		}
	}
	return e.readSkips(scan.resumed)
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
func (e *expansion) matchQuery(text string, of []pattern, all *matches, scan *matchScan) query {
	numbers := make([]int32, len(of))
	for i := range numbers {
		numbers[i] = int32(i)
	}
	return e.query(text, column(of, func(q pattern) string { return q.text }), column(of, func(q pattern) int64 { return q.subscriber }),
		column(of, func(q pattern) int64 { return q.after }), numbers, all.limit,
	).rows(func(r rows) error {
		var i int32
		m, err := scan.read(r, &i)
		if err == nil {
			all.by[of[i]] = append(all.by[of[i]], m)
		}
		return err
	})
}

// matchScan reads matches, and keeps those of subscriptions that were resumed.
type matchScan struct{ resumed map[int64][]*match }

// read reads matchColumns, behind others.
func (s *matchScan) read(r rows, before ...any) (*match, error) {
	var m match
	var status string
	var epoch int64
	var snapshots, xids [2]*string
	var seqs [2]*int64
	err := r.Scan(append(before, &m.subscription, &snapshots[0], &xids[0], &seqs[0], &status, &snapshots[1], &xids[1], &seqs[1], &epoch, &m.filtered)...)
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
	if epoch > 0 {
		s.resumed[m.subscription] = append(s.resumed[m.subscription], &m)
	}
	return &m, nil
}

// readSkips reads what resumes of subscriptions skipped.
func (e *expansion) readSkips(resumed map[int64][]*match) error {
	if len(resumed) == 0 {
		return nil
	}
	nos := make([]int64, 0, len(resumed))
	for no := range resumed {
		nos = append(nos, no)
	}
	return e.each(func(r rows) (bool, error) {
		var no, seq int64
		var snapshot, xid string
		var l unexpandedSkip
		err := r.Scan(&no, &snapshot, &xid, &seq, &l.publishedBefore)
		if err != nil {
			return false, err
		}
		m, err := parseSnapshotMark(&snapshot, &xid, &seq)
		if err != nil {
			return false, err
		}
		l.snapshotMark = *m
		for _, a := range resumed[no] {
			a.skips = append(a.skips, l)
		}
		return true, nil
	}, selectUnexpandedSkips, nos)
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
