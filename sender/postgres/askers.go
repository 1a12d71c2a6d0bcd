package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mark tells what was committed before something else was done: see the tables.
type mark struct {
	snapshot snapshot
	xid      uint64
	seq      int64
}

// precedes tells whether an event is after the mark.
func (m *mark) precedes(ev *unexpanded) bool {
	// What got its seq later was committed later, whatever its transaction's id, which
	// can be that of another cluster after a dump was restored.
	return ev.seq > m.seq || ev.xid != m.xid && !m.snapshot.sees(ev.xid)
}

// snapshot is a pg_snapshot (PostgreSQL, section 9.27.7).
type snapshot struct {
	xmin, xmax uint64
	running    []uint64
}

// sees tells whether a transaction that was committed is visible in the snapshot.
func (s *snapshot) sees(xid uint64) bool {
	return xid < s.xmin || xid < s.xmax && !slices.Contains(s.running, xid)
}

// parseSnapshot reads xmin:xmax:xip,xip,…
func parseSnapshot(text string) (s snapshot, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, fmt.Errorf("%q is not a snapshot", text)
	}
	if s.xmin, err = parseXID(parts[0]); err != nil {
		return s, err
	}
	if s.xmax, err = parseXID(parts[1]); err != nil || parts[2] == "" {
		return s, err
	}
	for _, part := range strings.Split(parts[2], ",") {
		xid, err := parseXID(part)
		if err != nil {
			return s, err
		}
		s.running = append(s.running, xid)
	}
	return s, nil
}

func parseXID(text string) (uint64, error) {
	xid, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a transaction id", text)
	}
	return xid, nil
}

// parseMark reads a mark whose columns are NULL, or are not.
func parseMark(snapshot, xid *string, seq *int64) (*mark, error) {
	if snapshot == nil || xid == nil || seq == nil {
		return nil, nil
	}
	m := &mark{seq: *seq}
	var err error
	if m.snapshot, err = parseSnapshot(*snapshot); err == nil {
		m.xid, err = parseXID(*xid)
	}
	return m, err
}

// asker is a subscription that asks for an event's type, or that it is addressed to.
type asker struct {
	subscription int64
	since, until *mark // nil: unbounded
	gone         bool  // it was deleted
	lefts        []unexpandedLeft
}

// unexpandedLeft cancels what is before a mark, and was published before a time.
type unexpandedLeft struct {
	mark
	publishedBefore moment
}

func (a *asker) gets(ev *unexpanded) bool {
	return !a.gone && (a.since == nil || a.since.precedes(ev)) && (a.until == nil || !a.until.precedes(ev))
}

// left tells whether a resume has left an event behind that was committed before it.
func (a *asker) left(ev *unexpanded) bool {
	return slices.ContainsFunc(a.lefts, func(l unexpandedLeft) bool {
		return !l.precedes(ev) && (l.publishedBefore == none || ev.published < l.publishedBefore)
	})
}

// asked is a question: which of a subscriber's subscriptions, or of everyone's, ask
// for a pattern? Those after a number.
type asked struct {
	pattern    string
	subscriber int64 // 0: everyone's
	after      int64
}

// askers are the answers to the questions of a batch of events.
type askers struct {
	operator int64
	limit    int
	by       map[asked][]*asker
	one      map[int64]*asker // those that are addressed alone
	lists    map[asked]answer // by all patterns of an event together
}

// answer is who may get an event, and whether these are all.
type answer struct {
	list  []*asker
	whole bool
}

const (
	operatorNo = `coalesce((SELECT no FROM surehook_subscribers WHERE id = $7 AND deleted = 0), 0)`

	askerColumns = `p.subscription, p.since_snapshot::text, p.since_xid::text, p.since_seq, s.status, s.until_snapshot::text, s.until_xid::text, s.until_seq, s.epoch`
	// Rows are compared where equations would say the same: of an order, what is equal to
	// something is left out, and any index that has the last column would then do as well
	// for a planner that has no statistics, such as that of everyone's subscriptions for a
	// question about one subscriber's.
	selectAskers = `SELECT q.i, p.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[]) AS q(pattern, subscriber, after, i)
		CROSS JOIN LATERAL (SELECT ` + askerColumns + ` FROM surehook_patterns p JOIN surehook_subscriptions s ON s.no = p.subscription
			WHERE (p.subscriber, p.pattern, p.subscription) > (q.subscriber, q.pattern, q.after) AND (p.subscriber, p.pattern) <= (q.subscriber, q.pattern)
			ORDER BY p.subscriber, p.pattern, p.subscription LIMIT $5) p`
	selectAllAskers = `SELECT q.i, p.* FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[]) AS q(pattern, subscriber, after, i)
		CROSS JOIN LATERAL (SELECT ` + askerColumns + ` FROM surehook_patterns p JOIN surehook_subscriptions s ON s.no = p.subscription
			WHERE (p.pattern, p.subscription) > (q.pattern, q.after) AND p.pattern <= q.pattern AND q.subscriber = 0
			ORDER BY p.pattern, p.subscription LIMIT $5) p`
	selectAddressed = `SELECT no, NULL, NULL, NULL::bigint, status, until_snapshot::text, until_xid::text, until_seq, epoch FROM surehook_subscriptions WHERE no = ANY($1)`

	selectUnexpandedLeft = `SELECT subscription, snapshot::text, xid::text, seq, published_before FROM surehook_left WHERE subscription = ANY($1)`
)

// ask finds who asks for events: up to the limit for each question.
func (e *expansion) ask(found []unexpanded, all *askers) error {
	known := map[asked]bool{}
	var questions, everyones []asked
	var addressed []int64
	for i := range found {
		ev := &found[i]
		switch {
		case ev.subscription != 0:
			addressed = append(addressed, ev.subscription)
		default:
			key := asked{ev.asked, ev.subscriber, ev.after}
			if known[key] {
				continue
			}
			known[key] = true
			for _, q := range all.questions(ev) {
				if _, ok := all.by[q]; ok {
					continue
				}
				all.by[q] = nil
				if q.subscriber == 0 {
					everyones = append(everyones, q)
				} else {
					questions = append(questions, q)
				}
			}
		}
	}
	resumed := map[int64][]*asker{}
	read := func(r rows, into func(i int32, a *asker), first ...any) error {
		var a asker
		var status string
		var epoch int64
		var snapshots, xids [2]*string
		var seqs [2]*int64
		var i int32
		to := []any{&a.subscription, &snapshots[0], &xids[0], &seqs[0], &status, &snapshots[1], &xids[1], &seqs[1], &epoch}
		if len(first) > 0 {
			to = append([]any{&i}, to...)
		}
		err := r.Scan(to...)
		if err == nil {
			a.since, err = parseMark(snapshots[0], xids[0], seqs[0])
		}
		if err == nil && status == statusClosing {
			a.until, err = parseMark(snapshots[1], xids[1], seqs[1])
		}
		a.gone = status == statusDeleted || status == statusSwept
		into(i, &a)
		if epoch > 0 {
			resumed[a.subscription] = append(resumed[a.subscription], &a)
		}
		return err
	}
	for _, of := range []struct {
		text string
		qs   []asked
	}{{selectAskers, questions}, {selectAllAskers, everyones}} {
		if len(of.qs) == 0 {
			continue
		}
		numbers := make([]int32, len(of.qs))
		for i := range numbers {
			numbers[i] = int32(i)
		}
		err := e.each(func(r rows) (bool, error) {
			return true, read(r, func(i int32, a *asker) { all.by[of.qs[i]] = append(all.by[of.qs[i]], a) }, true)
		}, of.text, column(of.qs, func(q asked) string { return q.pattern }), column(of.qs, func(q asked) int64 { return q.subscriber }),
			column(of.qs, func(q asked) int64 { return q.after }), numbers, all.limit)
		if err != nil {
			return err
		}
	}
	if len(addressed) > 0 {
		err := e.each(func(r rows) (bool, error) {
			return true, read(r, func(_ int32, a *asker) { all.one[a.subscription] = a })
		}, selectAddressed, distinct(addressed))
		if err != nil {
			return err
		}
	}
	return e.lefts(resumed)
}

// lefts reads what resumes have left behind of subscriptions.
func (e *expansion) lefts(resumed map[int64][]*asker) error {
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
		var l unexpandedLeft
		err := r.Scan(&no, &snapshot, &xid, &seq, &l.publishedBefore)
		if err != nil {
			return false, err
		}
		m, err := parseMark(&snapshot, &xid, &seq)
		if err != nil {
			return false, err
		}
		l.mark = *m
		for _, a := range resumed[no] {
			a.lefts = append(a.lefts, l)
		}
		return true, nil
	}, selectUnexpandedLeft, nos)
}

// questions are those whose answers are an event's subscriptions.
func (all *askers) questions(ev *unexpanded) []asked {
	var qs []asked
	for _, pattern := range ev.patterns {
		qs = append(qs, asked{pattern, ev.subscriber, ev.after})
		if ev.subscriber != 0 && all.operator != 0 && all.operator != ev.subscriber {
			qs = append(qs, asked{pattern, all.operator, ev.after})
		}
	}
	return qs
}

// of lists who may get an event, in the order of their numbers. whole is false if
// there may be others behind the last.
func (all *askers) of(ev *unexpanded) (list []*asker, whole bool) {
	if ev.subscription != 0 {
		if a := all.one[ev.subscription]; a != nil && a.subscription > ev.after {
			list = append(list, a)
		}
		return list, true
	}
	key := asked{ev.asked, ev.subscriber, ev.after}
	if known, ok := all.lists[key]; ok {
		return known.list, known.whole
	}
	upTo := int64(-1) // of a question that was not answered whole
	for _, q := range all.questions(ev) {
		some := all.by[q]
		list = append(list, some...)
		if len(some) == all.limit {
			if last := some[len(some)-1].subscription; upTo < 0 || last < upTo {
				upTo = last
			}
		}
	}
	// Of several patterns the oldest mark says since when.
	slices.SortFunc(list, func(x, y *asker) int {
		return cmp.Or(cmp.Compare(x.subscription, y.subscription), cmp.Compare(x.asksSince(), y.asksSince()))
	})
	list = slices.CompactFunc(list, func(x, y *asker) bool { return x.subscription == y.subscription })
	if upTo >= 0 {
		list = slices.DeleteFunc(list, func(a *asker) bool { return a.subscription > upTo })
	}
	all.lists[key] = answer{list, upTo < 0}
	return list, upTo < 0
}

// byName tells whether the subscription that an event tells of asks for exactly its
// type, or is the one that it is addressed to.
func (all *askers) byName(ev *unexpanded) bool {
	for _, subscriber := range []int64{ev.subscriber, all.operator} {
		for _, a := range all.by[asked{ev.patterns[0], subscriber, ev.after}] {
			if a.subscription == ev.about && a.gets(ev) {
				return true
			}
		}
	}
	return ev.subscription == ev.about
}

func (a *asker) asksSince() int64 {
	if a.since == nil {
		return -1
	}
	return a.since.seq
}
