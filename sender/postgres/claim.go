package postgres

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// selectPending reads the first pending deliveries of subscriptions, a number for each.
	// Their heads are locked, so the rows stay where they are.
	selectPending = `SELECT u.subscription, p.event, p.no, p.notice, p.bytes, p.ctid
		FROM unnest($1::bigint[], $2::bigint[], $3::int[]) AS u(subscription, after, n)
		CROSS JOIN LATERAL (SELECT event, no, notice, bytes, ctid FROM surehook_pending WHERE subscription = u.subscription AND event > u.after ORDER BY event LIMIT u.n) p`
	removePending = `DELETE FROM surehook_pending WHERE ctid = ANY($1)`

	// leaseWaiting leases waiting deliveries that were found to be due. The schedules of
	// those that were resumed start anew. The ORDER BY tells the planner which index is
	// meant.
	leaseWaiting = `WITH q AS MATERIALIZED (
			SELECT x.at, u.epoch, u.resumed FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[]) AS u(subscription, event, epoch, resumed)
			CROSS JOIN LATERAL (
				SELECT ctid AS at FROM surehook_waiting WHERE subscription = u.subscription AND event BETWEEN u.event AND u.event ORDER BY event LIMIT 1) x),
		d AS (DELETE FROM surehook_waiting w USING q WHERE w.ctid = q.at RETURNING w.*, q.epoch AS present, q.resumed),
		l AS (INSERT INTO surehook_leases (subscription, event, until, token, owner, number, tries, first_at, claimed_at, stood, epoch, single, spared, notice, redacted, bytes)
			SELECT subscription, event, $5, $7::bigint, $8::bigint, number + 1, CASE WHEN resumed THEN 1 ELSE tries + 1 END,
				CASE WHEN resumed THEN $6 ELSE coalesce(first_at, $6) END, $6, CASE WHEN resumed THEN 0 ELSE stood END, present, single, spared AND NOT resumed, notice, false, bytes FROM d)
		SELECT subscription, event, number + 1, spared AND NOT resumed FROM d`
)

// insertLeases leases deliveries that were never claimed before.
var insertLeases = overRows(`INSERT INTO surehook_leases (subscription, event, until, token, owner, number, tries, first_at, claimed_at, stood, epoch, single, notice, redacted, bytes)
	SELECT s, e, $6, $8::bigint, $9::bigint, 1, 1, $7, $7, 0, p, false, x, false, b FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::int[]) AS u(s, e, p, x, b)`)

// turnStands is how long a turn stays where it is if nothing of it has room here: to move
// it in every claim costs as much as some deliveries do. It cannot stay for ever: scans
// begin at the oldest turn, and would pass over all the dead rows behind it.
const turnStands = time.Second

// claiming is a claim at work.
type claiming struct {
	*batch
	found map[*head]*candidates
	full  map[int64]bool // subscribers that have a subscription without room
	takes []*take
	until timestamp
	// arrivals are the served subscribers that had nothing due in the tables.
	arrivals map[turnKey]bool
}

// take is what a claim gives to a subscription.
type take struct {
	h       *head
	sub     *subscription
	lane    sender.Lane
	pending int         // how many of its first pending deliveries are chosen,
	chosen  []candidate // or the chosen deliveries, in order
	granted timestamp   // when its rate grants more, if it has a rate
	limited bool        // its rate granted less than there was room for
	more    bool        // it has other deliveries that are due
	passed  bool        // there was no room for its first one's body

	resumedTo int64 // the new value of head.resumedTo
}

// claimAll claims in all lanes, and returns the subscribers that were served.
func (b *batch) claimAll(due [sender.Lanes][]dueSubscriber) (map[turnKey]bool, error) {
	c := claiming{batch: b, until: b.now.plus(b.Claim.Lease), full: b.full(), arrivals: map[turnKey]bool{}}
	if err := c.prepare(&due); err != nil {
		return nil, err
	}
	served := map[turnKey]bool{}
	for lane := range due {
		c.claim(sender.Lane(lane), sortDue(due[lane], sender.Lane(lane), b.now), served)
	}
	if err := c.findPending(); err != nil {
		return nil, err
	}
	c.fit(served)
	if err := c.lease(); err != nil {
		return nil, err
	}
	if err := b.keep(func(*head) bool { return true }); err != nil {
		return nil, err
	}
	if err := c.after(); err != nil {
		return nil, err
	}
	for k := range c.arrivals { // their turns stay where they are
		delete(served, k)
	}
	return served, nil
}

// prepare orders what is due, settles lost attempts, and finds the candidates.
func (c *claiming) prepare(due *[sender.Lanes][]dueSubscriber) error {
	b := c.batch
	b.alsoDue(due)
	var all []*head
	most := 0
	for lane := range due {
		due[lane] = sortDue(due[lane], sender.Lane(lane), b.now)
		p := &b.Claim.Lanes[lane]
		for _, s := range due[lane] {
			all = append(all, s.heads...)
			for _, h := range s.heads {
				most = max(most, min(p.Slots, rules.Room(h.subscription, b.Claim.SubscriptionRoom, p.PerSubscription)))
			}
		}
	}
	if len(b.waits) > 0 { // what waits may be due
		if err := b.flush(); err != nil {
			return err
		}
	}
	if err := b.findLasting(all); err != nil {
		return err
	}
	all = slices.DeleteFunc(all, b.others)
	for lane := range due {
		for i := range due[lane] {
			due[lane][i].heads = slices.DeleteFunc(due[lane][i].heads, b.others)
		}
	}
	if err := b.lost(all, most); err != nil {
		return err
	}
	// New deliveries are leased at once where nothing else can be due.
	err := b.keep(func(h *head) bool { return b.heads.stored[h.subscription].pending > 0 || !h.plain(b) })
	if err == nil {
		c.found, err = b.look(all, most)
	}
	return err
}

// claim lets the due subscribers of a lane take turns, and the subscriptions of each.
// Those behind get what one does not use of its share.
func (c *claiming) claim(lane sender.Lane, due []dueSubscriber, served map[turnKey]bool) {
	p := c.Claim.Lanes[lane]
	atOnce := min(len(due), rules.AtOnce(p.Slots))
	for i, s := range due {
		if p.Slots <= 0 {
			break
		}
		if len(s.heads) == 0 && c.full[s.subscriber] && s.due > c.now.plus(-turnStands) {
			continue
		}
		most := min(rules.Share(p.Slots, atOnce-i), rules.Room(s.subscriber, p.SubscriberRoom, p.PerSubscriber))
		heads := min(len(s.heads), rules.AtOnce(most))
		given := 0
		for j, h := range s.heads {
			if given == most {
				break
			}
			room := rules.Room(h.subscription, c.Claim.SubscriptionRoom, p.PerSubscription)
			given += c.choose(lane, h, min(room, rules.Share(most-given, heads-j)))
		}
		p.Slots -= given
		served[turnKey{lane, s.subscriber}] = true
		if s.arrived {
			c.arrivals[turnKey{lane, s.subscriber}] = true
		}
	}
}

// choose decides which deliveries of a subscription are claimed, up to a number.
func (c *claiming) choose(lane sender.Lane, h *head, most int) int {
	sub := c.subs[h.subscription]
	t := &take{h: h, sub: sub, lane: lane, granted: c.now, resumedTo: h.resumedTo}
	c.takes = append(c.takes, t)
	if !h.open {
		return 0
	}
	if rate := sub.Settings.Rate; rate != 0 {
		granted, _, again := rules.TakeRate(rate, h.rateAt.time(), c.now.time(), most)
		t.limited = granted < most
		most, t.granted = granted, timestampOf(again)
	}
	if limit := sub.Settings.MaxInFlight; limit > 0 {
		most = min(most, limit-int(h.leased))
	}
	most = max(most, 0)
	n := 0
	if cs := c.found[h]; cs != nil {
		n = min(most, len(cs.list))
		t.chosen, t.more, t.resumedTo = cs.list, cs.more, cs.moved
		t.cut(n)
	} else {
		n = int(min(int64(most), h.pending))
		t.pending = n
		t.more = h.pending > int64(n)
	}
	return n
}

// findPending reads those of the chosen deliveries that are pending and not known yet.
func (c *claiming) findPending() error {
	var unread []*take
	by := map[int64]*take{}
	for _, t := range c.takes {
		switch here := c.arrived[t.h]; {
		case t.chosen != nil || t.pending == 0:
		case len(here) > 0: // nothing else is pending
			t.chosen = make([]candidate, t.pending)
			for i, m := range here[:t.pending] {
				t.chosen[i] = candidate{event: m.Event, kind: kindArrived, no: m.of.event, notice: m.of.notice, bytes: m.of.bytes}
			}
		default:
			t.chosen = make([]candidate, 0, t.pending)
			unread = append(unread, t)
			by[t.h.subscription] = t
		}
	}
	if len(unread) == 0 {
		return nil
	}
	var no int64
	d := candidate{kind: kindPending} // one for all, as there are many
	columns := []any{&no, &d.event, &d.no, &d.notice, &d.bytes, &d.at}
	return c.each(func(r rows) (bool, error) {
		err := r.Scan(columns...)
		by[no].chosen = append(by[no].chosen, d)
		return true, err
	}, selectPending,
		column(unread, func(t *take) int64 { return t.h.subscription }),
		column(unread, func(t *take) int64 { return max(t.h.claimedTo, t.sub.skippedTo) }),
		column(unread, func(t *take) int32 { return int32(t.pending) }))
}

// fit drops the chosen deliveries for whose bodies there is no room. A subscription that
// gets nothing for that reason has not had its turn.
func (c *claiming) fit(served map[turnKey]bool) {
	bytes := rules.NewBytes(c.Claim.Bytes)
	had := map[turnKey]bool{}
	for _, t := range c.takes {
		n := 0
		for n < len(t.chosen) && bytes.Take(t.chosen[n].event, int64(t.chosen[n].bytes)) {
			n++
		}
		t.passed = n == 0 && len(t.chosen) > 0
		had[turnKey{t.lane, t.h.subscriber}] = had[turnKey{t.lane, t.h.subscriber}] || !t.passed
		t.cut(n)
		if rate := t.sub.Settings.Rate; rate != 0 && n > 0 {
			_, at, _ := rules.TakeRate(rate, t.h.rateAt.time(), c.now.time(), n)
			t.h.rateAt = timestampOf(at)
		}
	}
	for k, one := range had {
		if !one {
			delete(served, k)
		}
	}
}

// cut keeps the first n of the chosen deliveries.
func (t *take) cut(n int) {
	rest := t.chosen[n:]
	t.chosen = t.chosen[:n:n]
	t.more = t.more || len(rest) > 0
	if i := slices.IndexFunc(rest, func(d candidate) bool { return d.resumed }); i >= 0 {
		t.resumedTo = rest[i].event - 1
	}
}

// lease moves the chosen deliveries to the leases, and has their events read after the
// commit.
func (c *claiming) lease() error {
	var fresh, waits []chosen
	n := 0
	for _, t := range c.takes {
		n += len(t.chosen)
	}
	all := make([]dispatch.Claimed, 0, n)
	index := map[dispatch.DeliveryKey]int{} // of those that waited, in all
	for _, t := range c.takes {
		if len(t.chosen) == 0 {
			continue
		}
		target := *t.sub.Target
		target.Lane = t.lane
		arrived := 0
		for i := range t.chosen {
			d := &t.chosen[i]
			cl := dispatch.Claimed{Key: dispatch.DeliveryKey{Event: d.event, Subscription: t.h.subscription}, Token: c.Claim.Token, Number: 1, Target: &target, At: c.now.time()}
			t.h.lease(c.until)
			t.h.owner = c.Claim.By.Process
			if d.kind == kindPending || d.kind == kindArrived {
				t.h.pending--
				if !t.h.precedes {
					t.h.claimedTo = max(t.h.claimedTo, d.event)
				}
				fresh = append(fresh, chosen{t, d})
			} else {
				t.h.waiting--
				waits = append(waits, chosen{t, d})
				index[cl.Key] = len(all)
			}
			if d.kind == kindArrived {
				arrived++
			}
			all = append(all, cl)
		}
		if arrived > 0 {
			c.arrived[t.h] = c.arrived[t.h][arrived:]
		}
	}
	c.out.Claimed = all
	if by := c.Claim.By; by.Beat != 0 && len(all) > 0 {
		if err := c.joins(storeBeat, by.Process, by.Beat); err != nil {
			return err
		}
	}
	if err := c.leaseFresh(fresh); err != nil {
		return err
	}
	c.moveWaiting(waits, index)
	return nil
}

// chosen is a delivery that a subscription is given.
type chosen struct {
	*take
	*candidate
}

// leaseFresh leases deliveries that were never claimed.
func (c *claiming) leaseFresh(fresh []chosen) error {
	if len(fresh) == 0 {
		return nil
	}
	var pending []pgtype.TID
	for _, d := range fresh {
		if d.kind == kindPending {
			pending = append(pending, d.at)
		}
	}
	if len(pending) > 0 {
		if err := c.joins(removePending, pending); err != nil {
			return err
		}
	}
	if err := c.joins(insertLeases.of(len(fresh)), field(fresh, func(d chosen) int64 { return d.h.subscription }), field(fresh, func(d chosen) int64 { return d.event }),
		field(fresh, func(d chosen) int64 { return d.h.epoch }), field(fresh, func(d chosen) bool { return d.notice }),
		field(fresh, func(d chosen) int32 { return d.bytes }), c.until, c.now, c.Claim.Token, c.Claim.By.Process); err != nil {
		return err
	}
	c.readArrived(column(fresh, func(d chosen) int64 { return d.no }), column(fresh, func(d chosen) int64 { return d.event }))
	return nil
}

// moveWaiting leases deliveries that waited. index says where their claims are.
func (c *claiming) moveWaiting(waits []chosen, index map[dispatch.DeliveryKey]int) {
	if len(waits) == 0 {
		return
	}
	c.readPayloads(column(waits, func(d chosen) int64 { return d.event }))
	c.pipeline.queue(c.query(leaseWaiting,
		column(waits, func(w chosen) int64 { return w.h.subscription }),
		column(waits, func(w chosen) int64 { return w.event }),
		column(waits, func(w chosen) int64 { return w.h.epoch }),
		column(waits, func(w chosen) bool { return w.resumed }),
		c.until, c.now, c.Claim.Token, c.Claim.By.Process,
	).rows(func(r rows) error {
		var k dispatch.DeliveryKey
		var number int
		var spared bool
		err := r.Scan(&k.Subscription, &k.Event, &number, &spared)
		cl := &c.out.Claimed[index[k]]
		cl.Number, cl.Spared = number, spared
		return err
	}))
}

// after sets when to look again at the subscriptions that had a turn.
func (c *claiming) after() error {
	var waiting []*head
	for _, t := range c.takes {
		if !t.passed {
			t.h.resumedTo = t.resumedTo
		}
		if t.h.open && t.h.waiting > 0 && !t.passed {
			waiting = append(waiting, t.h)
		}
	}
	least, err := c.leastWaiting(waiting)
	if err != nil {
		return err
	}
	for _, t := range c.takes {
		if t.h.open && !t.passed {
			c.lookAgain(t, least)
		}
	}
	return nil
}

// leastWaiting reads when the first waiting delivery of each subscription is due.
func (c *claiming) leastWaiting(of []*head) (map[int64]timestamp, error) {
	least := map[int64]timestamp{}
	if len(of) == 0 {
		return least, nil
	}
	err := c.each(func(r rows) (bool, error) {
		var no int64
		var due timestamp
		err := r.Scan(&no, &due)
		if due == none {
			due = never
		}
		least[no] = due
		return true, err
	}, selectLeastWaiting, column(of, func(h *head) int64 { return h.subscription }),
		column(of, func(h *head) int64 { return h.epoch }), column(of, func(h *head) timestamp { return h.waitingFrom }))
	return least, err
}

// lookAgain sets when to look again at a subscription that had a turn, and puts it at the
// tail.
func (c *claiming) lookAgain(t *take, least map[int64]timestamp) {
	h := t.h
	h.turn = c.turns.Add(1)
	next := never
	if h.leased > 0 {
		next = h.leasesEnd
	}
	if h.waiting > 0 {
		h.waitingFrom = least[h.subscription]
	} else {
		h.waitingFrom = never
	}
	limit := t.sub.Settings.MaxInFlight
	switch {
	case limit > 0 && int64(limit) <= h.leased: // until one of them is recorded
	case t.more:
		next = t.granted
		if !t.limited {
			next = c.now
		}
	case h.resumedTo >= 0:
		next = c.now
	case h.waiting > 0:
		next = min(next, h.waitingFrom)
	}
	h.nextDue = max(next, c.now)
	// A subscription whose deliveries only arrived, and were claimed at once, is in no turn.
	// To look at it too early, once in the time of a lease, costs less than to move it each
	// time.
	if was := c.heads.stored[h.subscription]; c.arrivals[turnKey{t.lane, h.subscriber}] && was.nextDue > c.now && was.nextDue <= h.nextDue && h.lane == t.lane {
		h.nextDue, h.turn = was.nextDue, was.turn
		return
	}
	delete(c.arrivals, turnKey{t.lane, h.subscriber})
}
