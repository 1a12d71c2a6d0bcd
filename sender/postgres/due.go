package postgres

import (
	"cmp"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/processes"
	"github.com/surehook/surehook/sender/rules"
)

// selectDue finds the subscribers of a lane whose turn it is. For each it locks the first
// of its subscriptions that are due and that nobody else has locked. It locks no more of
// them than there are slots, however many turns it passes over because some have no room.
// It also returns the subscribers that have nothing due, up to the last one that has
// something.
var selectDue = processes.Shareable{Alone: selectDueBy(""), Shared: selectDueBy(` AND ` + freeTurn(`(SELECT at FROM now)`, "$9"))}

func selectDueBy(also string) string {
	return `WITH now AS MATERIALIZED (SELECT {now} AS at), t AS MATERIALIZED (
		SELECT subscriber, next_due, turn, low, row_number() OVER (ORDER BY next_due, turn) AS i FROM surehook_turns t
		WHERE lane = $1 AND next_due < 'infinity' AND next_due <= (SELECT at FROM now) AND next_due >= $2 AND subscriber <> ALL($4) AND ($7::bigint[] IS NULL OR subscriber = ANY($7))` + also + `
		ORDER BY next_due, turn LIMIT $3),
	h AS MATERIALIZED (
		SELECT t.i, h.* FROM t CROSS JOIN LATERAL (
			SELECT ` + headColumns + ` FROM surehook_heads h
			WHERE h.lane = $1 AND h.subscriber = t.subscriber AND h.next_due < 'infinity' AND h.next_due <= (SELECT at FROM now) AND h.next_due >= t.low
				AND h.subscription <> ALL($5) AND ($8::bigint[] IS NULL OR h.subscription = ANY($8)) AND ` + freeHead("h", `(SELECT at FROM now)`, "$9") + `
			ORDER BY h.next_due, h.turn LIMIT (SELECT ($6 + count(*) - 1) / greatest(count(*), 1) FROM t) FOR UPDATE SKIP LOCKED) h
		LIMIT $6)
	SELECT t.subscriber, t.next_due, t.turn, h.i IS NOT NULL, h.* FROM t LEFT JOIN h ON h.i = t.i
	WHERE (SELECT count(*) FROM h) < $6 OR t.i <= (SELECT max(i) FROM h)`
}

// dueSubscriber is a subscriber whose turn it is, with its due subscriptions in the order
// of their turns.
type dueSubscriber struct {
	subscriber int64
	due        timestamp
	turn       int64
	heads      []*head
	arrived    bool // its turn was not due: something has arrived since, or was recorded
}

func (b *batch) dueQuery(lane sender.Lane, from timestamp) query {
	p := &b.Claim.Lanes[lane]
	full := withoutRoom(b.Claim.SubscriptionRoom) // a subscriber whose subscriptions are all full has a turn, and uses no slot
	return b.query(b.of(&selectDue), int16(lane), from, rules.AtOnce(p.Slots)+len(full), withoutRoom(p.SubscriberRoom), full, p.Slots,
		alone(p.SubscriberRoom, p.PerSubscriber), alone(b.Claim.SubscriptionRoom, p.PerSubscription), b.Claim.By.Process)
}

func withoutRoom(rooms map[int64]int) []int64 {
	none := []int64{}
	for no, room := range rooms {
		if room <= 0 {
			none = append(none, no)
		}
	}
	slices.Sort(none)
	return none
}

// full returns the subscribers that have a subscription without room, as far as they are
// known.
func (b *batch) full() map[int64]bool {
	full := map[int64]bool{}
	b.subscriptionCache.Lock()
	defer b.subscriptionCache.Unlock()
	for no, room := range b.Claim.SubscriptionRoom {
		if t, ok := b.subscriptionCache.by.Get(no); ok && room <= 0 {
			full[t.SubscriberNumber] = true
		}
	}
	return full
}

// alone returns those that have room, if room for the others is 0; otherwise nil.
func alone(rooms map[int64]int, otherwise int) []int64 {
	if otherwise > 0 {
		return nil
	}
	some := []int64{}
	for no, room := range rooms {
		if room > 0 {
			some = append(some, no)
		}
	}
	slices.Sort(some)
	return some
}

func scanDue(r rows, all *[]dueSubscriber, put func(head) *head, least *timestamp) error {
	var s dueSubscriber
	var there bool
	first := []any{&s.subscriber, &s.due, &s.turn, &there, nil}
	if err := r.Scan(append(first, make([]any, headWidth)...)...); err != nil {
		return err
	}
	*least = min(*least, s.due)
	i := slices.IndexFunc(*all, func(have dueSubscriber) bool { return have.subscriber == s.subscriber })
	if i < 0 {
		i = len(*all)
		*all = append(*all, s)
	}
	if !there {
		return nil
	}
	h, err := scanHead(prefixed{r, first})
	(*all)[i].heads = append((*all)[i].heads, put(h))
	return err
}

// prefixed reads its own columns before those that Scan asks for.
type prefixed struct {
	rows
	first []any
}

func (p prefixed) Scan(to ...any) error {
	return p.rows.Scan(append(p.first[:len(p.first):len(p.first)], to...)...)
}

// alsoDue adds what recording results has made due: a subscription that its leases kept
// back, or that is in another lane now.
func (b *batch) alsoDue(due *[sender.Lanes][]dueSubscriber) {
	there := map[*head]bool{}
	for lane := range due {
		for _, s := range due[lane] {
			for _, h := range s.heads {
				there[h] = there[h] || h.health.Lane == sender.Lane(lane)
			}
		}
	}
	for _, no := range slices.Sorted(maps.Keys(b.heads.by)) {
		h := b.heads.by[no]
		lane := h.health.Lane
		if there[h] || !h.open || h.nextDue > b.now || b.others(h) || b.Claim.Lanes[lane].Slots <= 0 ||
			rules.Room(h.subscriber, b.Claim.Lanes[lane].SubscriberRoom, b.Claim.Lanes[lane].PerSubscriber) <= 0 ||
			rules.Room(no, b.Claim.SubscriptionRoom, b.Claim.Lanes[lane].PerSubscription) <= 0 {
			continue
		}
		i := slices.IndexFunc(due[lane], func(s dueSubscriber) bool { return s.subscriber == h.subscriber })
		if i < 0 {
			i = len(due[lane])
			due[lane] = append(due[lane], dueSubscriber{subscriber: h.subscriber, due: b.now, turn: h.turn, arrived: true})
		}
		due[lane][i].heads = append(due[lane][i].heads, h)
	}
}

// sortDue orders subscribers by their turns, and drops the subscriptions that recording has
// moved.
func sortDue(all []dueSubscriber, lane sender.Lane, now timestamp) []dueSubscriber {
	for i := range all {
		s := &all[i]
		s.heads = slices.DeleteFunc(s.heads, func(h *head) bool { return h.health.Lane != lane || h.nextDue > now })
		slices.SortFunc(s.heads, func(x, y *head) int {
			return cmp.Or(cmp.Compare(x.nextDue, y.nextDue), cmp.Compare(x.turn, y.turn), cmp.Compare(x.subscription, y.subscription))
		})
	}
	slices.SortFunc(all, func(x, y dueSubscriber) int {
		return cmp.Or(cmp.Compare(x.due, y.due), cmp.Compare(x.turn, y.turn), cmp.Compare(x.subscriber, y.subscriber))
	})
	return all
}

const (
	// deleteLost takes leases that have ended, the oldest first.
	deleteLost = `WITH q AS MATERIALIZED (
			SELECT x.at FROM unnest($1::bigint[]) AS u(subscription) CROSS JOIN LATERAL (
				SELECT ctid AS at FROM surehook_leases WHERE subscription = u.subscription AND until <= $2 ORDER BY until LIMIT $3) x)
		DELETE FROM surehook_leases l USING q WHERE l.ctid = q.at
		RETURNING ` + leaseColumns + `, ` + lostEvent
	lostEvent = `(SELECT ARRAY[e.id, e.type, e.object_type, e.object_id, e.url, coalesce(e.traceparent, '')] FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = l.event),
		(SELECT e.created_at FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = l.event)`
	// selectLeasesEnd also counts the leases that have ended and were left to the next
	// turn.
	selectLeasesEnd = `SELECT subscription, min(until), max(until) FROM surehook_leases WHERE subscription = ANY($1) GROUP BY subscription`

	// selectCandidates finds waiting deliveries that are due, without bodies: resumed ones
	// in the order of the events, then fresh ones, then replays.
	selectCandidates = `SELECT u.subscription, q.kind, q.event, q.due, q.epoch, q.bytes, q.number = 0 FROM
		unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) AS u(subscription, epoch, resumed_to, waiting_from)
		CROSS JOIN LATERAL (
			(SELECT 0 AS kind, event, due, epoch, bytes, number FROM surehook_waiting
				WHERE u.resumed_to >= 0 AND subscription = u.subscription AND event > u.resumed_to ORDER BY event LIMIT $6)
			UNION ALL (SELECT 1, event, due, epoch, bytes, number FROM surehook_waiting
				WHERE subscription = u.subscription AND epoch = u.epoch AND rank = 0 AND due >= u.waiting_from AND due <= $5 ORDER BY due, event LIMIT $6)
			UNION ALL (SELECT 2, event, due, epoch, bytes, number FROM surehook_waiting
				WHERE subscription = u.subscription AND epoch = u.epoch AND rank = 1 AND due >= u.waiting_from AND due <= $5 ORDER BY due, event LIMIT $6)
		) q`
	// selectOldPending finds pending deliveries of subscriptions that have other due
	// deliveries too, or some of whose pending ones are cancelled.
	selectOldPending = `SELECT u.subscription, q.event, q.due, q.no, q.notice, q.bytes, q.ctid FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, after)
		CROSS JOIN LATERAL (SELECT event, due, no, notice, bytes, ctid FROM surehook_pending WHERE subscription = u.subscription AND event > u.after ORDER BY event LIMIT $3) q`

	selectLeastWaiting = `SELECT u.subscription, least(
			(SELECT due FROM surehook_waiting WHERE subscription = u.subscription AND epoch = u.epoch AND rank = 0 AND due >= u.waiting_from ORDER BY due LIMIT 1),
			(SELECT due FROM surehook_waiting WHERE subscription = u.subscription AND epoch = u.epoch AND rank = 1 AND due >= u.waiting_from ORDER BY due LIMIT 1))
		FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS u(subscription, epoch, waiting_from)`
)

// candidate is a delivery that a claim may take.
type candidate struct {
	event   int64
	due     timestamp
	kind    int8 // kindPending, kindArrived, or as selectCandidates numbers it
	first   bool // it was never attempted
	resumed bool
	bytes   int32 // the length of its event's body

	// These are set if it was never claimed: the number of its event, and where its row is.
	no     int64
	notice bool
	at     pgtype.TID
}

const (
	kindPending = -1
	kindArrived = -2 // it is in no table yet
)

// candidates are the candidates of one subscription, in the order in which they are
// claimed.
type candidates struct {
	list  []candidate
	more  bool  // there are more
	moved int64 // the last resumed one that was looked at; -1: all were

	// list is made of these.
	resumed, fresh, replays []candidate
	looked                  int // how many that a resume may have made due
}

// lost settles the attempts whose leases have ended.
func (b *batch) lost(all []*head, most int) error {
	var ended []int64
	for _, h := range all {
		if h.open && h.leased > 0 && h.leasesEnd <= b.now { // a result of this step may have disabled it
			ended = append(ended, h.subscription)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	leases, err := b.takeLost(ended, most)
	if err != nil {
		return err
	}
	if err := b.readLinesOf(column(leases, func(l *lostLease) dispatch.DeliveryKey { return l.key() })); err != nil {
		return err
	}
	for _, l := range leases {
		h := b.heads.by[l.subscription]
		h.leased--
		if err := b.interrupted(h, b.subs[l.subscription], &l.live, l.info); err != nil {
			return err
		}
	}
	for _, no := range ended {
		b.heads.by[no].leasesEnd = none
	}
	err = b.each(func(r rows) (bool, error) {
		var no int64
		var end timestamp
		err := r.Scan(&no, &end, nil)
		b.heads.by[no].leasesEnd = end
		return true, err
	}, selectLeasesEnd, ended)
	if err == nil {
		err = b.advance(false)
	}
	if err != nil {
		return err
	}
	return b.flush()
}

// lostLease is a lease that has ended, with its event.
type lostLease struct {
	live
	info sender.EventInfo
}

// takeLost takes the ended leases of subscriptions, in the order in which they are settled.
func (b *batch) takeLost(ended []int64, most int) (leases []*lostLease, err error) {
	err = b.each(func(r rows) (bool, error) {
		l := &lostLease{}
		var names []string
		var created timestamp
		err := r.Scan(append(l.columns(), &names, &created)...)
		if err == nil {
			l.info = sender.EventInfo{CreatedAt: created.time(), Notice: l.notice}
			if len(names) > 0 { // there are none if the event is gone
				l.info.ID, l.info.Type, l.info.Object, l.info.URL, l.info.Traceparent = names[0], names[1], sender.Object{Type: names[2], ID: names[3]}, names[4], names[5]
			}
			leases = append(leases, l)
		}
		return true, err
	}, deleteLost, ended, b.now, most)
	slices.SortFunc(leases, func(x, y *lostLease) int {
		return cmp.Or(cmp.Compare(x.subscription, y.subscription), cmp.Compare(x.event, y.event))
	})
	return leases, err
}

// look finds the candidates of subscriptions that can have more due than their first
// pending deliveries. The others have as many candidates as their heads count.
func (b *batch) look(all []*head, most int) (map[*head]*candidates, error) {
	var mixed []*head
	for _, h := range all {
		if h.open && !h.plain(b) {
			mixed = append(mixed, h)
		}
	}
	if len(mixed) == 0 {
		return nil, nil
	}
	found := make(map[*head]*candidates, len(mixed))
	for _, h := range mixed {
		found[h] = &candidates{moved: h.resumedTo}
	}
	if err := b.lookAtWaiting(mixed, most, found); err != nil {
		return nil, err
	}
	err := b.each(func(r rows) (bool, error) {
		var no int64
		d := candidate{kind: kindPending}
		err := r.Scan(&no, &d.event, &d.due, &d.no, &d.notice, &d.bytes, &d.at)
		c := found[b.heads.by[no]]
		c.fresh = append(c.fresh, d)
		return true, err
	}, selectOldPending, column(mixed, func(h *head) int64 { return h.subscription }),
		column(mixed, func(h *head) int64 { return max(h.claimedTo, b.subs[h.subscription].skippedTo) }), most+1)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		c.order(most)
	}
	return found, nil
}

// lookAtWaiting reads the waiting deliveries that are due.
func (b *batch) lookAtWaiting(mixed []*head, most int, found map[*head]*candidates) error {
	return b.each(func(r rows) (bool, error) {
		var no, epoch int64
		var d candidate
		if err := r.Scan(&no, &d.kind, &d.event, &d.due, &epoch, &d.bytes, &d.first); err != nil {
			return false, err
		}
		h := b.heads.by[no]
		c := found[h]
		switch d.kind {
		case 0:
			c.looked++
			c.moved = max(c.moved, d.event)
			if epoch < h.epoch && !b.subs[no].skips(epoch, d.event) {
				d.resumed = true
				c.resumed = append(c.resumed, d)
			}
		case 1:
			if d.first { // it was released, and goes before all pending ones
				d.due = none
			}
			c.fresh = append(c.fresh, d)
		default:
			c.replays = append(c.replays, d)
		}
		return true, nil
	}, selectCandidates, column(mixed, func(h *head) int64 { return h.subscription }), column(mixed, func(h *head) int64 { return h.epoch }),
		column(mixed, func(h *head) int64 { return h.resumedTo }), column(mixed, func(h *head) timestamp { return h.waitingFrom }), b.now, most+1)
}

// order puts the candidates into the order in which they are claimed.
func (c *candidates) order(most int) {
	byFront(c.fresh)
	byEvent := func(x, y candidate) int { return cmp.Compare(x.event, y.event) }
	byDue := func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.due, y.due), cmp.Compare(x.kind, y.kind)*-1, cmp.Compare(x.event, y.event))
	}
	slices.SortFunc(c.resumed, byEvent)
	slices.SortStableFunc(c.fresh, byDue)
	slices.SortFunc(c.replays, byDue)
	c.list = slices.Concat(c.resumed, c.fresh, c.replays)
	if c.more = c.looked > most; !c.more {
		c.moved = -1
	}
}

// byFront makes a pending delivery due no later than the pending ones behind it. The
// delivery of a large event may come after those of later events, and a claim takes the
// first events because of surehook_heads.claimed_to.
func byFront(all []candidate) {
	due := never
	for i := len(all) - 1; i >= 0; i-- {
		if c := &all[i]; c.kind == kindPending {
			due = min(due, c.due)
			c.due = due
		}
	}
}

// plain tells whether only the first pending deliveries of a subscription can be due.
func (h *head) plain(b *batch) bool {
	return b.subs[h.subscription].skippedTo < 0 && h.resumedTo < 0 && (h.waiting == 0 || h.waitingFrom > b.now)
}
