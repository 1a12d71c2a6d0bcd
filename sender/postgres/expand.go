package postgres

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/fanout"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// beExpander waits for the expander, and lets nobody else be it until the transaction
	// ends.
	beExpander = `SELECT position, newest, begun FROM surehook_feed_head FOR UPDATE`
	// expanding lets one expander work at a time; the others do not wait, and find no row.
	// It reads the row as the expander before stored it, and the statements that follow see
	// all that this one committed: so positions appear in their order.
	expanding      = beExpander + ` SKIP LOCKED`
	somethingBegun = "begun"
	// expansionState tells whether the transaction expands, and whether some event is
	// begun.
	expansionState = `CASE WHEN h.position IS NULL THEN 'false' WHEN h.begun = '{}' THEN 'true' ELSE '` + somethingBegun + `' END`

	outboxColumns = `seq, event, patterns, subscriber, subscription, xid::text, coalesce(position, 0), after, created_at, notice, bytes, about`

	updateFeedHead = `UPDATE surehook_feed_head SET position = $1, newest = $2, begun = $3`
	selectObjects  = `SELECT no, object_type, object_id FROM surehook_events WHERE no = ANY($1)`
	deleteOutbox   = `DELETE FROM surehook_outbox WHERE seq = ANY($1)`
	updateOutbox   = `UPDATE surehook_outbox SET position = $2, after = $3 WHERE seq = $1`
)

var (
	// selectUnexpanded finds the events that are begun, and up to $1 others.
	selectUnexpanded = `(SELECT ` + outboxColumns + ` FROM surehook_outbox
			WHERE current_setting('surehook.expanding') <> 'false' AND seq = ANY ((SELECT begun FROM surehook_feed_head)::bigint[]))
		UNION ALL (SELECT ` + outboxColumns + ` FROM surehook_outbox
			WHERE current_setting('surehook.expanding') <> 'false' AND seq <> ALL ((SELECT begun FROM surehook_feed_head)::bigint[]) AND seq >= ` + fromBound("$2", "$3") + ` ORDER BY seq LIMIT $1)`
	insertPending = overRows(`INSERT INTO surehook_pending (subscription, event, no, notice, bytes, due)
		SELECT s, e, n, x, b, $6 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::int[]) AS u(s, e, n, x, b)`)
	// insertPendingSince is for those that came out of lines, and are due since before.
	insertPendingSince = overRows(`INSERT INTO surehook_pending (subscription, event, no, notice, bytes, due)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::int[], $6::timestamptz[]) AS u`)
	insertFeed = overRows(`INSERT INTO surehook_feed (position, event, newest, late)
		SELECT $4 + i, event, newest, late FROM unnest($1::bigint[], $2::timestamptz[], $3::boolean[]) WITH ORDINALITY AS u(event, newest, late, i)`)
)

// unexpanded is an outbox row, with all of its event that decides who gets it.
type unexpanded struct {
	seq, event   int64
	patternText  string   // the patterns that match it, with a space between
	patterns     []string // the same, one by one
	subscriber   int64
	subscription int64
	xid          uint64
	position     int64 // 0: it has none yet
	after        int64
	published    timestamp
	notice       bool
	bytes        int32 // the length of its body
	about        int64
	whole        bool           // it is expanded whole
	content      *rules.Content // what filters are asked about; nil: none was
	wanted       []bool         // which of its matches with filters get it, by these
}

// made is a new delivery, with its event.
type made struct {
	dispatch.DeliveryKey
	of  *unexpanded
	due timestamp // none: now
}

// expansion is the part of a batch that expands events. Positions appear in their order,
// and an event has its position before it has deliveries. A subscription may get the
// delivery of a large event after those of later events. Others rely on the order as
// follows:
//   - A claim takes pending deliveries by position. arrive lowers claimed_to for a late
//     one, and byFront makes it no later than the pending ones behind it.
//   - An event that is begun was committed before any resume that sees its position, and that
//     saw it in the outbox, too. So a late delivery at or below left_to is cancelled when it
//     is made (skip), and is never pending there. resumed_to counts only deliveries that wait
//     since an earlier epoch: none of them comes late, and what comes out of a line lowers it.
//   - Snapshot marks, and what resumes skip, are compared with the first row of the outbox. A
//     large event stays there until it is expanded whole, so closing subscriptions wait for
//     it.
//   - The position that a sweep remembers may be above a late delivery. That is found when
//     nothing is found behind the position any more.
//   - A replay of delivered deliveries may find one below its boundary that was made since:
//     it is in surehook_replay_late. A replay of dead letters goes by when they ended.
//   - Pruning keeps the events that are begun.
type expansion struct {
	*batch
	p dispatch.ExpandParams
	x dispatch.Expanded

	position int64     // the last one that is assigned
	newest   timestamp // the latest time of an event up to it
	open     []uint64  // transactions that were open before the events were read

	found []unexpanded
	all   *matches

	filters   map[int64]rules.Asked // of subscriptions with filters that events match
	unread    int                   // the first of the events that is not decided in this step
	askBehind bool                  // filters ask for most bodies, and there are more events behind those found

	made    []made
	fed     []*unexpanded // events that got their positions
	newests []timestamp   // newest, as of each of fed
	done    []int64       // seq of the events that are expanded whole
	cut     []*unexpanded // the events that are not, as they are to be stored
	begun   []int64       // seq of all events that are begun and not whole

	whole dispatch.Expanded // what x has without large events
}

// expand finds events that are not expanded, and decides who gets them. It returns nil if
// there are none, or if somebody else expands. A later statement sends its decisions.
// claimAll keeps the deliveries themselves, leased or pending.
//
// Where it expects few events it locks the heads of those who may get them, on the same trip.
// If others turn out to get some, or an event is begun, it leaves all to the next step, with
// more set: heads are locked in their order.
func (b *batch) expand(p dispatch.ExpandParams, from bound, l *loading) (_ *expansion, more bool, err error) {
	if p.Events <= 0 {
		return nil, false, nil
	}
	e := &expansion{batch: b, p: p}
	plan := fanout.New(p)
	all := &matches{limit: plan.Look(), by: map[pattern][]*match{}, one: map[int64]*match{}, lists: map[pattern]matchList{}}
	var state, snapshot string
	e.pipeline.queue(e.query(b.of(&lockFeedHead), lookArgs(&b.Claim, l.from, b.shared, sender.Operator)...).rows(func(r rows) error {
		err := r.Scan(append(append([]any{&b.now, &state, &e.position, &e.newest, &all.operator}, l.seen.columns()...), &snapshot)...)
		l.seen.now = b.now
		if err == nil {
			e.open, err = openIn(snapshot)
		}
		return err
	}))
	events := b.scanFrom.eventsFor(p)
	few := b.scanFrom.fewer() && all.limit > fewOfOne && len(b.Results) <= fewDeliveries && !b.again
	var found []unexpanded
	if few {
		events = min(events, fewEvents+1)
		found, err = e.findFew(events, from, all, l)
		more = state == somethingBegun
	} else {
		found, err = e.find(events, from)
	}
	if err == nil && len(found) > 0 {
		err = e.findMatches(found, all)
	}
	if few && err == nil {
		if more = more || !l.covers(found, all); more {
			b.scanFrom.many()
		}
	}
	if err != nil || len(found) == 0 || more {
		return nil, more, err
	}
	e.found, e.all = found, all
	e.x.More = len(found) >= events
	if err := e.readFilters(found, all); err != nil {
		return nil, false, err
	}
	e.madeFor = map[int64]int{}
	e.made, e.done = make([]made, 0, len(found)), make([]int64, 0, len(found))
	e.fed, e.newests, e.begun = make([]*unexpanded, 0, len(found)), make([]timestamp, 0, len(found)), []int64{}
	if err := e.decide(found, all, plan); err != nil {
		return nil, false, err
	}
	e.remember(found, plan.Waiting)
	return e, false, nil
}

// covers tells whether the heads of all that may get events are locked.
func (l *loading) covers(found []unexpanded, all *matches) bool {
	for i := range found {
		list, _ := all.of(&found[i])
		for _, a := range list {
			if _, known := slices.BinarySearch(l.known, a.subscription); !known {
				return false
			}
		}
	}
	return true
}

// remember notes for the next expansions what this one found, once it is committed.
func (e *expansion) remember(found []unexpanded, waiting int) {
	least := slices.MinFunc(found, func(x, y unexpanded) int { return cmp.Compare(x.seq, y.seq) }).seq
	few := len(found) <= fewEvents && e.x.Deliveries <= fewDeliveries && len(e.begun) == 0 && !slices.ContainsFunc(found, e.all.many)
	var recent []int64
	if few {
		recent = distinct(e.recipients())
	}
	e.after(func(committed bool) {
		if committed {
			e.scanFrom.outbox.found(least, e.open, e.core.now())
			e.scanFrom.expanded(e.whole, waiting, few, recent)
		}
	})
}

// find reads events that are not expanded: first those that are begun, in the order of
// their positions, then a limited number of others, in the order of their numbers.
func (e *expansion) find(events int, from bound) ([]unexpanded, error) {
	found := make([]unexpanded, 0, events)
	patterns := map[string][]string{} // they are few
	var ev unexpanded
	var xid string
	columns := []any{&ev.seq, &ev.event, &ev.patternText, &ev.subscriber, &ev.subscription, &xid, &ev.position, &ev.after, &ev.published, &ev.notice, &ev.bytes, &ev.about}
	err := e.each(func(r rows) (bool, error) {
		err := r.Scan(columns...)
		if err == nil {
			ev.xid, err = parseXID(xid)
		}
		if ev.patterns = patterns[ev.patternText]; ev.patterns == nil {
			ev.patterns = strings.Split(ev.patternText, " ")
			patterns[ev.patternText] = ev.patterns
		}
		found = append(found, ev)
		return true, err
	}, selectUnexpanded, events, from.seq, from.xids())
	slices.SortFunc(found, func(x, y unexpanded) int {
		if (x.position == 0) != (y.position == 0) {
			return cmp.Compare(y.position, x.position)
		}
		return cmp.Or(cmp.Compare(x.position, y.position), cmp.Compare(x.seq, y.seq))
	})
	return found, err
}

// decide plans how many deliveries of each event are made, and makes them.
func (e *expansion) decide(found []unexpanded, all *matches, plan *fanout.Plan) error {
	candidates := make([]fanout.Candidate, len(found))
	anyLarge := false
	for i := range found {
		list, whole := all.of(&found[i])
		candidates[i] = fanout.Candidate{Count: len(list), All: whole}
		anyLarge = anyLarge || plan.Large(&candidates[i])
	}
	if anyLarge && len(found) > 1 {
		if err := e.objects(found, candidates); err != nil {
			return err
		}
	}
	converted := 0
	for i := range candidates[:e.unread] {
		if converted > convertedNow {
			e.unread = i
			break
		}
		converted += e.makeVersions(&found[i], all)
		full, err := plan.Add(&candidates[i])
		if err != nil {
			return err
		}
		if full {
			break
		}
	}
	plan.Share()
	e.askFilters(found, all, plan.Makes)
	e.x.More = e.x.More || plan.More || e.unread < len(found)
	for _, m := range plan.Makes {
		before := e.x
		e.next(&found[m.At], all, m.Most)
		if !plan.Large(&candidates[m.At]) {
			e.whole.Events++
			e.whole.Deliveries += e.x.Deliveries - before.Deliveries
		}
	}
	for i := range found {
		if ev := &found[i]; ev.position > 0 && !ev.whole {
			e.begun = append(e.begun, ev.seq)
		}
	}
	return nil
}

// objects reads the objects of events.
func (e *expansion) objects(found []unexpanded, candidates []fanout.Candidate) error {
	at := make(map[int64]int, len(found))
	for i := range found {
		at[found[i].event] = i
	}
	return e.each(func(r rows) (bool, error) {
		var no int64
		var o sender.Object
		err := r.Scan(&no, &o.Type, &o.ID)
		candidates[at[no]].Object = func() (sender.Object, error) { return o, nil }
		return true, err
	}, selectObjects, column(found, func(ev unexpanded) int64 { return ev.event }))
}

// next makes deliveries of an event for its first matches behind ev.after.
func (e *expansion) next(ev *unexpanded, all *matches, most int) {
	list, whole := all.of(ev)
	position := ev.position
	if position == 0 {
		e.position++
		position = e.position
		e.newest = max(e.newest, ev.published)
		e.fed = append(e.fed, ev)
		e.newests = append(e.newests, e.newest)
	}
	whole = whole && most == len(list)
	for i, a := range list[:most] {
		if !a.gets(ev) || a.subscription == ev.about && !all.byName(ev) || !ev.wants(i, a) {
			continue
		}
		e.x.Deliveries++
		e.madeFor[a.subscription]++
		key := dispatch.DeliveryKey{Event: position, Subscription: a.subscription}
		e.made = append(e.made, made{key, ev, none})
	}
	if whole {
		ev.whole = true
		e.done = append(e.done, ev.seq)
		e.x.Events++
		return
	}
	ev.position, ev.after = position, list[most-1].subscription
	e.cut = append(e.cut, ev)
}

// store writes what the expansion changes in the feed and the outbox.
func (e *expansion) store() error {
	if e == nil || len(e.fed)+len(e.done)+len(e.cut) == 0 {
		return nil
	}
	if len(e.fed) > 0 {
		late := make([]bool, len(e.fed))
		for i := range late {
			late[i] = e.fed[i].published < e.newests[i].plus(-disorder)
		}
		if err := e.joins(insertFeed.of(len(e.fed)), field(e.fed, func(ev *unexpanded) int64 { return ev.event }), given(e.newests), given(late), e.position-int64(len(e.fed))); err != nil {
			return err
		}
	}
	if err := e.joins(updateFeedHead, e.position, e.newest, e.begun); err != nil {
		return err
	}
	if err := e.joins(deleteOutbox, e.done); err != nil {
		return err
	}
	for _, ev := range e.cut { // a few
		if err := e.joins(updateOutbox, ev.seq, ev.position, ev.after); err != nil {
			return err
		}
	}
	rules.CountExpanded(&e.rollup, e.x)
	return nil
}

// recipients returns the subscriptions that get deliveries.
func (e *expansion) recipients() []int64 {
	if e == nil {
		return nil
	}
	return column(e.made, func(m made) int64 { return m.Subscription })
}

// arrive counts the new deliveries in their subscriptions' heads, which are locked, and
// makes these due.
func (e *expansion) arrive() {
	if e == nil {
		return
	}
	e.arrived = make(map[*head][]made, len(e.heads.by))
	counts := make(map[int64]int, len(e.heads.by))
	for _, m := range e.made {
		counts[m.Subscription]++
	}
	for _, m := range e.made {
		h := e.heads.by[m.Subscription]
		h.pending++
		h.claimedTo = min(h.claimedTo, m.Event-1) // the delivery of a large event comes late
		h.lower(e.now)
		here := e.arrived[h]
		if here == nil {
			here = make([]made, 0, counts[m.Subscription])
		}
		e.arrived[h] = append(here, m)
	}
	for _, here := range e.arrived {
		slices.SortFunc(here, func(x, y made) int { return cmp.Compare(x.Event, y.Event) })
	}
}

// keep stores the new deliveries of some heads as pending.
func (b *batch) keep(at func(h *head) bool) error {
	var kept []*head
	n := 0
	for _, no := range slices.Sorted(maps.Keys(b.heads.by)) {
		if h := b.heads.by[no]; len(b.arrived[h]) > 0 && at(h) {
			kept, n = append(kept, h), n+len(b.arrived[h])
		}
	}
	if n == 0 {
		return nil
	}
	all := make([]made, 0, n)
	for _, h := range kept {
		all = append(all, b.arrived[h]...)
		delete(b.arrived, h)
	}
	if !slices.ContainsFunc(all, func(m made) bool { return m.due != none }) {
		return b.joins(insertPending.of(len(all)), append(pendingArgs(all), b.now)...)
	}
	return b.joins(insertPendingSince.of(len(all)), append(pendingArgs(all), field(all, func(m made) timestamp { return cmp.Or(m.due, b.now) }))...)
}

func pendingArgs(all []made) []any {
	return []any{
		field(all, func(m made) int64 { return m.Subscription }), field(all, func(m made) int64 { return m.Event }),
		field(all, func(m made) int64 { return m.of.event }), field(all, func(m made) bool { return m.of.notice }),
		field(all, func(m made) int32 { return m.of.bytes }),
	}
}
