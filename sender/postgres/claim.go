package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/turns"
	"github.com/surehook/surehook/sender"
)

const (
	// leasePending leases the first pending deliveries of subscriptions, up to a number
	// of each. Their heads are locked, so nobody else does. OFFSET 0 has the events
	// looked up one by one, which is right however few there were a moment ago.
	leasePending = `WITH q AS MATERIALIZED (
			SELECT u.subscription, u.epoch, p.event, p.no, p.notice, p.at FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[]) AS u(subscription, after, epoch, n)
			CROSS JOIN LATERAL (
				SELECT x.event, x.no, x.notice, x.ctid AS at, row_number() OVER () AS i FROM (
					SELECT event, no, notice, ctid FROM surehook_pending WHERE subscription = u.subscription AND event > u.after ORDER BY event LIMIT $5) x) p
			WHERE p.i <= u.n),
		d AS (DELETE FROM surehook_pending p USING q WHERE p.ctid = q.at),
		l AS (INSERT INTO surehook_leases (subscription, event, until, token, owner, number, tries, first_at, claimed_at, stood, epoch, single, notice, redacted)
			SELECT subscription, event, $6, $8::bigint, $9::bigint, 1, 1, $7, $7, 0, epoch, false, notice, false FROM q)
		SELECT q.subscription, q.event, 1, false, ` + eventColumns + ` FROM q CROSS JOIN LATERAL (SELECT * FROM surehook_events WHERE no = q.no OFFSET 0) e`

	// leaseWaiting leases deliveries that were found to be due. The schedules of those
	// that were resumed start anew. The order says which index is meant.
	leaseWaiting = `WITH q AS MATERIALIZED (
			SELECT x.at, u.epoch, u.resumed FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[]) AS u(subscription, event, epoch, resumed)
			CROSS JOIN LATERAL (
				SELECT ctid AS at FROM surehook_waiting WHERE subscription = u.subscription AND event BETWEEN u.event AND u.event ORDER BY event LIMIT 1) x),
		d AS (DELETE FROM surehook_waiting w USING q WHERE w.ctid = q.at RETURNING w.*, q.epoch AS present, q.resumed),
		ev AS MATERIALIZED (
			SELECT d.*, ` + eventColumns + ` FROM d CROSS JOIN LATERAL (
				SELECT * FROM surehook_events WHERE no = (SELECT event FROM surehook_feed WHERE position = d.event) OFFSET 0) e),
		l AS (INSERT INTO surehook_leases (subscription, event, until, token, owner, number, tries, first_at, claimed_at, stood, epoch, single, spared, notice, redacted)
			SELECT subscription, event, $5, $7::bigint, $8::bigint, number + 1, CASE WHEN resumed THEN 1 ELSE tries + 1 END,
				CASE WHEN resumed THEN $6 ELSE coalesce(first_at, $6) END, $6, CASE WHEN resumed THEN 0 ELSE stood END, present, single, spared AND NOT resumed, notice, false FROM ev)
		SELECT subscription, event, number + 1, spared AND NOT resumed, ` + eventNames + ` FROM ev`

	// insertLeases leases what has arrived, and was never pending.
	insertLeases = `INSERT INTO surehook_leases (subscription, event, until, token, owner, number, tries, first_at, claimed_at, stood, epoch, single, notice, redacted)
		SELECT s, e, $5, $7::bigint, $8::bigint, 1, 1, $6, $6, 0, p, false, x, false FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[]) AS u(s, e, p, x)`
	selectArrived = `SELECT e.no, ` + eventColumns + ` FROM surehook_events e WHERE e.no = ANY($1)`

	eventColumns = `e.id AS event_id, e.type, e.object_type, e.object_id, e.created_at, e.notice, e.url, e.body`
	eventNames   = `event_id, type, object_type, object_id, created_at, notice, url, body`

	// What is claimed and turns out to be redacted is cancelled.
	deleteRedacted = `WITH q AS MATERIALIZED (
			SELECT x.at FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, event)
			CROSS JOIN LATERAL (SELECT ctid AS at FROM surehook_leases WHERE subscription = u.subscription AND event = u.event OFFSET 0) x)
		DELETE FROM surehook_leases l USING q WHERE l.ctid = q.at RETURNING l.subscription, l.event, l.single,
			coalesce((SELECT a.class FROM surehook_attempts a WHERE a.event = l.event AND a.subscription = l.subscription ORDER BY a.number DESC LIMIT 1), '')`
)

// turnStands is how long a turn is left where it is of which nothing has room here: to
// move it in every claim costs as much as some deliveries do. For ever it cannot stay,
// since scans begin at the oldest one, and what others have left behind there is dead.
const turnStands = time.Second

// claiming is a claim at work.
type claiming struct {
	*batch
	found map[*head]*candidates
	full  map[int64]bool // subscribers that have a subscription without room
	takes []*take
	until moment
}

// take is what a subscription is given.
type take struct {
	h       *head
	sub     *subscription
	lane    sender.Lane
	pending int
	chosen  []candidate // in order; nil: the pending ones are all
	granted moment      // when its rate grants more, if it has one
	limited bool        // by its rate
	more    bool        // it has others that are due
	got     []sender.Claimed
}

// claimAll claims in all lanes, and returns the subscribers that were served.
func (b *batch) claimAll(due [sender.Lanes][]dueSubscriber) (map[turnKey]bool, error) {
	c := claiming{batch: b, until: b.now.plus(b.Claim.Lease), full: b.full()}
	b.alsoDue(&due)
	served := map[turnKey]bool{}
	var all []*head
	most := 0
	for lane := range due {
		due[lane] = sortDue(due[lane], sender.Lane(lane), b.now)
		p := &b.Claim.Lanes[lane]
		for _, s := range due[lane] {
			all = append(all, s.heads...)
			for _, h := range s.heads {
				most = max(most, min(p.Slots, turns.Room(h.subscription, b.Claim.SubscriptionRoom, p.PerSubscription)))
			}
		}
	}
	if len(b.waits) > 0 { // they may be due
		if err := b.flush(); err != nil {
			return nil, err
		}
	}
	err := b.lost(all, most)
	if err == nil {
		// What has arrived is leased at once where nothing else can be due.
		err = b.keep(func(h *head) bool { return b.heads.stored[h.subscription].pending > 0 || !h.plain(b) })
	}
	if err == nil {
		c.found, err = b.look(all, most)
	}
	if err != nil {
		return nil, err
	}
	for lane := range due {
		c.claim(sender.Lane(lane), sortDue(due[lane], sender.Lane(lane), b.now), served)
	}
	if err := c.lease(); err != nil {
		return nil, err
	}
	if err := b.keep(func(*head) bool { return true }); err != nil {
		return nil, err
	}
	return served, c.after()
}

// claim lets the subscribers that are due in a lane take turns, then each one's
// subscriptions. What one leaves of its share goes to those behind it.
func (c *claiming) claim(lane sender.Lane, due []dueSubscriber, served map[turnKey]bool) {
	p := c.Claim.Lanes[lane]
	atOnce := min(len(due), turns.AtOnce(p.Slots))
	for i, s := range due {
		if p.Slots <= 0 {
			break
		}
		if len(s.heads) == 0 && c.full[s.subscriber] && s.due > c.now.plus(-turnStands) {
			continue
		}
		most := min(turns.Share(p.Slots, atOnce-i), turns.Room(s.subscriber, p.SubscriberRoom, p.PerSubscriber))
		heads := min(len(s.heads), turns.AtOnce(most))
		given := 0
		for j, h := range s.heads {
			if given == most {
				break
			}
			room := turns.Room(h.subscription, c.Claim.SubscriptionRoom, p.PerSubscription)
			given += c.choose(lane, h, min(room, turns.Share(most-given, heads-j)))
		}
		p.Slots -= given
		served[turnKey{lane, s.subscriber}] = true
	}
}

// choose decides what of a subscription is claimed, up to a number.
func (c *claiming) choose(lane sender.Lane, h *head, most int) int {
	sub := c.subs[h.subscription]
	t := &take{h: h, sub: sub, lane: lane, granted: c.now}
	c.takes = append(c.takes, t)
	if !h.open {
		return 0
	}
	if rate := sub.Settings.Rate; rate != 0 {
		granted, _, again := sender.TakeRate(rate, h.rateAt.time(), c.now.time(), most)
		t.limited = granted < most
		most, t.granted = granted, momentOf(again)
	}
	if limit := sub.Settings.MaxInFlight; limit > 0 {
		most = min(most, limit-int(h.leased))
	}
	most = max(most, 0)
	n := 0
	if cs := c.found[h]; cs != nil {
		n = min(most, len(cs.list))
		t.chosen = cs.list[:n:n]
		t.more = cs.more || n < len(cs.list)
		for _, chosen := range t.chosen {
			if chosen.kind == kindPending {
				t.pending++
			}
		}
		h.resumedTo = cs.moved
		if i := slices.IndexFunc(cs.list[n:], func(left candidate) bool { return left.resumed }); i >= 0 {
			h.resumedTo = cs.list[n+i].event - 1
		}
	} else {
		n = int(min(int64(most), h.pending))
		t.pending = n
		t.more = h.pending > int64(n)
	}
	if rate := sub.Settings.Rate; rate != 0 && n > 0 {
		_, at, _ := sender.TakeRate(rate, h.rateAt.time(), c.now.time(), n)
		h.rateAt = momentOf(at)
	}
	return n
}

// lease moves what was chosen, and reads the events.
func (c *claiming) lease() error {
	type waiting struct {
		*take
		candidate
	}
	var pending []*take
	var waits []waiting
	most := 0
	by := make(map[int64]*take, len(c.takes))
	n, missing := 0, 0
	for _, t := range c.takes {
		n += t.most()
		missing += min(t.pending, len(c.arrived[t.h]))
	}
	all := make([]sender.Claimed, n)
	arrived := make([]made, 0, missing)
	n = 0
	for _, t := range c.takes {
		by[t.h.subscription] = t
		t.got = all[n : n : n+t.most()]
		n += t.most()
		if here := c.arrived[t.h]; t.pending > 0 && len(here) > 0 { // nothing else is pending
			arrived = append(arrived, here[:t.pending]...)
			c.arrived[t.h] = here[t.pending:]
		} else if t.pending > 0 {
			pending = append(pending, t)
			most = max(most, t.pending)
		}
		for _, chosen := range t.chosen {
			if chosen.kind != kindPending {
				waits = append(waits, waiting{t, chosen})
			}
		}
	}
	var qs []query
	var scans []func(r rows) error
	var redacted []sender.DeliveryKey
	// Rows are scanned into this one.
	var cl sender.Claimed
	var created moment
	event := []any{&cl.Event.ID, &cl.Event.Type, &cl.Event.Object.Type, &cl.Event.Object.ID, &created, &cl.Event.Notice, &cl.Event.URL, &cl.Body}
	delivery := append([]any{&cl.Key.Subscription, &cl.Key.Event, &cl.Number, &cl.Spared}, event...)
	got := func() *head {
		t := by[cl.Key.Subscription]
		cl.Token, cl.At, cl.Event.CreatedAt = c.Claim.Token, c.now.time(), created.time()
		t.h.lease(c.until)
		if len(cl.Body) == 0 {
			redacted = append(redacted, cl.Key)
		} else {
			t.got = append(t.got, cl)
		}
		return t.h
	}
	pends := func() {
		h := got()
		h.pending--
		h.claimedTo = max(h.claimedTo, cl.Key.Event)
	}
	if len(pending) > 0 {
		qs = append(qs, query{c.text(leasePending), []any{
			column(pending, func(t *take) int64 { return t.h.subscription }),
			column(pending, func(t *take) int64 { return max(t.h.claimedTo, t.sub.leftTo) }),
			column(pending, func(t *take) int64 { return t.h.epoch }),
			column(pending, func(t *take) int32 { return int32(t.pending) }),
			most, c.until, c.now, c.Claim.Token, c.Claim.By.Process,
		}})
		scans = append(scans, func(r rows) error {
			err := r.Scan(delivery...)
			if err == nil {
				pends()
			}
			return err
		})
	}
	if len(waits) > 0 {
		qs = append(qs, query{c.text(leaseWaiting), []any{
			column(waits, func(w waiting) int64 { return w.h.subscription }),
			column(waits, func(w waiting) int64 { return w.event }),
			column(waits, func(w waiting) int64 { return w.h.epoch }),
			column(waits, func(w waiting) bool { return w.resumed }),
			c.until, c.now, c.Claim.Token, c.Claim.By.Process,
		}})
		scans = append(scans, func(r rows) error {
			err := r.Scan(delivery...)
			if err == nil {
				got().waiting--
			}
			return err
		})
	}
	if len(arrived) > 0 {
		if err := c.execs(insertLeases, column(arrived, func(m made) int64 { return m.Subscription }), column(arrived, func(m made) int64 { return m.Event }),
			column(arrived, func(m made) int64 { return by[m.Subscription].h.epoch }), column(arrived, func(m made) bool { return m.of.notice }),
			c.until, c.now, c.Claim.Token, c.Claim.By.Process); err != nil {
			return err
		}
		slices.SortFunc(arrived, func(x, y made) int { return cmp.Compare(x.of.event, y.of.event) })
		qs = append(qs, query{c.text(selectArrived), []any{slices.Compact(column(arrived, func(m made) int64 { return m.of.event }))}})
		var no int64
		numbered := append([]any{&no}, event...)
		scans = append(scans, func(r rows) error {
			if err := r.Scan(numbered...); err != nil {
				return err
			}
			i, _ := slices.BinarySearchFunc(arrived, no, func(m made, no int64) int { return cmp.Compare(m.of.event, no) })
			for ; i < len(arrived) && arrived[i].of.event == no; i++ {
				cl.Key, cl.Number, cl.Spared = arrived[i].DeliveryKey, 1, false
				pends()
				missing--
			}
			return nil
		})
	}
	if len(qs) == 0 {
		return nil
	}
	if by := c.Claim.By; by.Beat != 0 {
		if err := c.execs(storeBeat, by.Process, by.Beat); err != nil {
			return err
		}
	}
	if err := c.many(c.ctx, qs, func(n int, r rows) error { return scans[n](r) }); err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("the events of %d deliveries that have arrived are missing", missing)
	}
	c.claimed(all[:0])
	return c.cancelRedacted(redacted)
}

// most is how much may be got.
func (t *take) most() int { return max(t.pending, len(t.chosen)) }

// claimed puts what was leased in the order in which it was chosen. into is where it is
// already, but for what was not got.
func (c *claiming) claimed(into []sender.Claimed) {
	for _, t := range c.takes {
		if len(t.got) == 0 {
			continue
		}
		place := make(map[int64]int, len(t.chosen))
		for i, chosen := range t.chosen {
			place[chosen.event] = i
		}
		slices.SortFunc(t.got, func(x, y sender.Claimed) int {
			return cmp.Or(cmp.Compare(place[x.Key.Event], place[y.Key.Event]), cmp.Compare(x.Key.Event, y.Key.Event))
		})
		target := *t.sub.Target
		target.Lane = t.lane
		for i := range t.got {
			t.got[i].Target = &target
		}
		into = append(into, t.got...)
	}
	c.out.Claimed = into
}

func (c *claiming) cancelRedacted(keys []sender.DeliveryKey) error {
	if len(keys) == 0 {
		return nil
	}
	return c.each(func(r rows) (bool, error) {
		var l live
		var class sender.Class
		err := r.Scan(&l.subscription, &l.event, &l.single, &class)
		h := c.heads.by[l.subscription]
		h.leased--
		if l.single {
			c.delivered(&l)
		} else {
			c.end(h, &l, sender.StatusCancelled, class)
		}
		return true, err
	}, deleteRedacted, column(keys, func(k sender.DeliveryKey) int64 { return k.Subscription }),
		column(keys, func(k sender.DeliveryKey) int64 { return k.Event }))
}

// after says when to look again at the subscriptions that had a turn.
func (c *claiming) after() error {
	var waiting []*head
	for _, t := range c.takes {
		if t.h.open && t.h.waiting > 0 {
			waiting = append(waiting, t.h)
		}
	}
	least := map[int64]moment{}
	if len(waiting) > 0 {
		err := c.each(func(r rows) (bool, error) {
			var no int64
			var due moment
			err := r.Scan(&no, &due)
			if due == none {
				due = never
			}
			least[no] = due
			return true, err
		}, selectLeastWaiting, column(waiting, func(h *head) int64 { return h.subscription }),
			column(waiting, func(h *head) int64 { return h.epoch }), column(waiting, func(h *head) moment { return h.waitingFrom }))
		if err != nil {
			return err
		}
	}
	for _, t := range c.takes {
		h := t.h
		if !h.open {
			continue
		}
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
	}
	return nil
}
