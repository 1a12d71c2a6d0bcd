package sqlite

import (
	"database/sql"
	"errors"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

var (
	selectDueTurns = shareable(func(also string) string {
		return `SELECT subscriber FROM surehook_turns t WHERE lane = ?1 + 0 AND next_due <= ?2` + also + ` ORDER BY next_due, turn LIMIT ?3 + 0`
	}, ` AND `+freeTurn(2, 4))
	selectNextTurn = shareable(func(also string) string {
		return `SELECT next_due FROM surehook_turns t WHERE lane = ?1 + 0 AND next_due IS NOT NULL` + also + ` ORDER BY next_due LIMIT 1`
	}, ` AND (next_due > ?2 OR `+freeTurn(2, 3)+`)`)
)

const (
	// updateTurns gives each subscriber the due time of the first of its subscriptions.
	// If that one is due now, the subscriber goes to the tail of those that are due.
	updateTurns = `UPDATE surehook_turns SET turn = ?1, next_due = max(?2, (SELECT min(h.next_due) FROM surehook_heads h
			WHERE h.lane = surehook_turns.lane AND h.subscriber = surehook_turns.subscriber AND h.next_due IS NOT NULL))
		WHERE lane = ?3 AND subscriber IN (SELECT value FROM json_each(?4))`

	// leasePending takes rows of [subscription, the event before the first, the last
	// event, epoch].
	leasePending = `INSERT OR FAIL INTO surehook_leases (subscription, event, until, token, owner, number, tries, first_at, stood, claimed_at, single, epoch)
		SELECT p.subscription, p.event, ?1, ?4, ?5, 1, 1, ?2, 0, ?2, 0, j.value ->> 3 FROM json_each(?3) j CROSS JOIN surehook_pending p
		WHERE p.subscription = j.value ->> 0 AND p.event > j.value ->> 1 AND p.event <= j.value ->> 2`
	// deletePending takes a range: pending deliveries are claimed from the first event
	// on.
	deletePending = `DELETE FROM surehook_pending WHERE subscription = ? AND event > ? AND event <= ?`
	leaseWaiting  = `INSERT INTO surehook_leases (subscription, event, until, token, owner, number, tries, first_at, stood, claimed_at, single, spared, epoch)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	deleteWaiting = `DELETE FROM surehook_waiting WHERE subscription = ? AND event = ?`
)

// nextDue returns when a claim in these lanes finds something next, or never.
func (w *work) nextDue(p *dispatch.ClaimParams, by sharing, now int64) (int64, error) {
	next := int64(never)
	for lane := range p.Lanes {
		if p.Lanes[lane].Slots <= 0 {
			continue
		}
		args := []any{lane}
		if by.others {
			args = append(args, now, by.process)
		}
		due, err := w.least(selectNextTurn.Of(by.others), args...)
		if err != nil {
			return 0, err
		}
		next = min(next, due)
	}
	return next, nil
}

// claim lets the subscribers that are due in a lane take turns, and within each of them
// its subscriptions. If one leaves some of its share, those behind it get the rest.
func (b *batch) claim(lane sender.Lane) error {
	p := b.Claim.Lanes[lane]
	if p.Slots <= 0 || b.bytes.Over() {
		return nil
	}
	// Only those with an entry of their own can be without room.
	due, err := b.numbers(selectDueTurns.Of(b.sharing.others), b.sharing.args(lane, b.now, p.Slots+len(p.SubscriberRoom)+len(b.Claim.SubscriptionRoom))...)
	if err != nil {
		return err
	}
	due = withRoom(due, p.SubscriberRoom, p.PerSubscriber)
	heads := dueHeads{batch: b, lane: lane, subscribers: due}
	var served []int64
	var claims []*claimed
	atOnce := min(len(due), rules.AtOnce(p.Slots))
	for i, subscriber := range due {
		if p.Slots <= 0 {
			break
		}
		most := min(rules.Share(p.Slots, atOnce-i), rules.Room(subscriber, p.SubscriberRoom, p.PerSubscriber))
		of, err := heads.of(i, most+len(b.Claim.SubscriptionRoom), p.Slots)
		if err != nil {
			return err
		}
		before := len(claims)
		if claims, err = b.claimSubscriber(claims, of, most, p.PerSubscription); err != nil {
			return err
		}
		for _, c := range claims[before:] {
			p.Slots -= c.used
		}
		if len(of) > 0 && len(claims) == before {
			continue // its subscriptions have no room here; to move its turn each time would cost as much as deliveries do
		}
		served = append(served, subscriber)
	}
	if len(served) == 0 {
		return nil
	}
	if err := b.finish(claims); err != nil {
		return err
	}
	served = slices.DeleteFunc(served, func(subscriber int64) bool { return allPassed(claims, subscriber) })
	if err := b.heads.storeDue(); err != nil {
		return err
	}
	return b.execs(updateTurns, b.store.turns.Add(1), b.now, lane, list(served))
}

// claimSubscriber begins the claims of a subscriber's subscriptions, in turn.
func (b *batch) claimSubscriber(claims []*claimed, due []*head, most, perSubscription int) ([]*claimed, error) {
	room := func(h *head) int { return rules.Room(h.subscription, b.Claim.SubscriptionRoom, perSubscription) }
	usable := make([]*head, 0, len(due))
	for _, h := range due {
		if room(h) <= 0 {
			continue
		}
		others, err := b.others(h)
		if err != nil {
			return nil, err
		}
		if !others {
			usable = append(usable, h)
		}
	}
	given, remaining := 0, min(len(usable), rules.AtOnce(most))
	for _, h := range usable {
		if given == most {
			break
		}
		c, err := b.claimSubscription(h, min(room(h), rules.Share(most-given, remaining)))
		if err != nil {
			return nil, err
		}
		claims = append(claims, c)
		given += c.used
		remaining--
	}
	return claims, nil
}

// claimSubscription begins to claim the oldest due deliveries of a subscription. It
// counts the slots that they use, and finds them, unless finish can find them together
// with others. A lost attempt that ends its delivery uses a slot too, so that a claim's
// work is bounded.
func (b *batch) claimSubscription(h *head, most int) (*claimed, error) {
	sub, err := b.registry.subscription(b.work, h.subscription)
	if err != nil {
		return nil, err
	}
	c := &claimed{batch: b, h: h, sub: sub}
	if sub.status == statusMissing {
		h.open = false
		return c, nil
	}
	granted := b.within(h, sub, most)
	if c.used, err = c.claimLost(most, granted); err != nil {
		return nil, err
	}
	if err := b.advance(); err != nil {
		return nil, err
	}
	c.more = true
	if remaining := min(most-c.used, granted-c.begun); remaining > 0 {
		switch remaining = max(0, min(remaining, c.room())); {
		case h.fresh():
			c.pending, c.more = min(remaining, int(h.pending)), int(h.pending) > remaining
			c.used += c.pending
		default:
			f, err := b.due(h, remaining)
			if err != nil {
				return nil, err
			}
			c.due, c.more = f.due, f.more
			c.used += len(f.due)
		}
	}
	return c, nil
}

// fit gives up the first delivery whose body exceeds the bound of the claim, and all
// behind it.
func (c *claimed) fit() {
	n := 0
	for n < len(c.due) && c.fits(&c.due[n]) {
		n++
	}
	remaining := c.due[n:]
	c.due = c.due[:n:n]
	c.passed = len(remaining) > 0 && c.used == len(remaining)
	c.more = c.more || len(remaining) > 0
	c.used -= len(remaining)
	if i := slices.IndexFunc(remaining, func(d dueDelivery) bool { return d.resumed }); i >= 0 {
		c.h.resumedTo = remaining[i].event - 1
	}
}

func (c *claimed) fits(d *dueDelivery) bool {
	return d.redacted || c.bytes.Take(d.event, max(0, d.size))
}

// allPassed tells whether the claim visited subscriptions of a subscriber, and no body of
// theirs fitted. Then the subscriber has not had its turn.
func allPassed(claims []*claimed, subscriber int64) bool {
	any := false
	for _, c := range claims {
		if c.h.subscriber == subscriber {
			if any = true; !c.passed {
				return false
			}
		}
	}
	return any
}

// finish finds the pending deliveries, and claims them and those that were found before.
func (b *batch) finish(claims []*claimed) error {
	defer func() { clear(b.store.found[:cap(b.store.found)]) }()
	if err := b.findPending(claims); err != nil {
		return err
	}
	found := 0
	for _, c := range claims {
		c.fit()
		found += len(c.due)
	}
	b.out.Claimed = slices.Grow(b.out.Claimed, found)
	for _, c := range claims {
		for i := range c.due {
			if err := c.claim(&c.due[i]); err != nil {
				return err
			}
		}
	}
	if err := b.leasePending(claims); err != nil {
		return err
	}
	for _, c := range claims {
		c.again = b.spend(c.h, c.sub, c.begun)
		if c.passed {
			continue
		}
		c.h.turn = b.store.turns.Add(1)
		if err := c.reschedule(); err != nil {
			return err
		}
	}
	return nil
}

// reschedule sets when a claim looks at the subscription next. If it is still due, it
// goes to the tail of those that are.
func (c *claimed) reschedule() (err error) {
	next := c.again
	switch {
	case c.room() <= 0:
		next = c.h.leasesEnd // or when one of them is recorded
	case !c.more:
		next, err = c.leastOf(c.h)
	}
	c.h.nextDue = max(next, c.now)
	return err
}

const selectLeastWaiting = `SELECT min(
		coalesce((SELECT min(due) FROM surehook_waiting WHERE subscription = ?1 + 0 AND epoch = ?2 + 0 AND rank = 0), 9223372036854775807),
		coalesce((SELECT min(due) FROM surehook_waiting WHERE subscription = ?1 + 0 AND epoch = ?2 + 0 AND rank = 1), 9223372036854775807))`

// leastOf returns when something of a subscription that has nothing due is due next.
func (b *batch) leastOf(h *head) (next int64, err error) {
	next = never
	if h.leased > 0 {
		next = h.leasesEnd
	}
	if h.waiting > 0 {
		waiting, err := b.least(selectLeastWaiting, h.subscription, h.epoch)
		if err != nil {
			return 0, err
		}
		next = min(next, waiting)
	}
	return next, nil
}

// claimed is a subscription whose deliveries are being claimed.
type claimed struct {
	*batch
	h       *head
	sub     *subscription
	target  *dispatch.Target
	used    int // slots
	begun   int // attempts
	due     []dueDelivery
	pending int   // how many finish adds to due
	more    bool  // other deliveries are due
	again   int64 // when the others may be claimed
	upTo    int64 // the last pending event to be leased
	fresh   int64 // how many pending ones are to be leased
	passed  bool  // the body of its first one did not fit
}

// room is how many more attempts its Settings.MaxInFlight allows.
func (c *claimed) room() int {
	if limit := c.sub.Settings.MaxInFlight; limit > 0 {
		return limit - int(c.h.leased)
	}
	return math.MaxInt
}

// claimLost records up to most attempts whose leases have ended. It claims up to granted of
// their deliveries again, if they are due now.
func (c *claimed) claimLost(most, granted int) (used int, err error) {
	lost, err := c.lost(c.h, most)
	if err != nil {
		return 0, err
	}
	for i := range lost {
		again, err := c.interrupted(c.h, c.sub, &lost[i])
		if err != nil {
			return 0, err
		}
		// The lost ones that follow still count as leased, but take no room.
		if again && c.h.open && c.begun < granted && c.room()+len(lost)-i-1 > 0 && c.fits(&lost[i]) {
			if err := c.claim(&lost[i]); err != nil {
				return 0, err
			}
		}
	}
	return len(lost), nil
}

func (c *claimed) claim(d *dueDelivery) error {
	if d.redacted {
		return c.cancel(c.h, []live{d.live})
	}
	if !c.h.open { // a lost attempt has just disabled the subscription
		return nil
	}
	d.number++
	d.tries++
	if d.firstAt == 0 {
		d.firstAt = c.now
	}
	if d.pending {
		c.upTo = max(c.upTo, d.event)
		c.fresh++
	} else {
		if err := c.execs(deleteWaiting, d.subscription, d.event); err != nil {
			return err
		}
		c.h.waiting--
		if err := c.execs(leaseWaiting, d.subscription, d.event, c.leaseEnd(), c.Claim.Token, c.Claim.By.Process, d.number, d.tries, d.firstAt, d.stood, c.now, d.single, d.spared, c.h.epoch); err != nil {
			return err
		}
	}
	c.h.lease(c.leaseEnd())
	c.h.owner = c.Claim.By.Process
	if c.target == nil {
		t := c.sub.Target
		t.Lane = c.h.lane
		c.target = &t
	}
	c.begun++
	c.out.Claimed = append(c.out.Claimed, dispatch.Claimed{
		Key: d.key(), Token: c.Claim.Token, Number: int(d.number), Target: c.target, Event: d.info, Body: d.body, At: timeOf(c.now), Spared: d.spared,
	})
	return nil
}

// leasePending moves the pending deliveries that are claimed to the leases.
func (b *batch) leasePending(claims []*claimed) error {
	rows := []byte{'['}
	for _, c := range claims {
		if c.upTo > 0 {
			rows = appendNumbers(rows, c.h.subscription, c.h.skippedTo, c.upTo, c.h.epoch)
		}
	}
	if len(rows) == 1 {
		return nil
	}
	if err := b.execs(leasePending, b.leaseEnd(), b.now, string(append(rows, ']')), b.Claim.Token, b.Claim.By.Process); err != nil {
		return err
	}
	for _, c := range claims {
		if c.upTo == 0 {
			continue
		}
		c.h.pending -= c.fresh
		if err := b.execs(deletePending, c.h.subscription, c.h.skippedTo, c.upTo); err != nil {
			return err
		}
	}
	return nil
}

// leaseEnd is when the leases of this claim end.
func (b *batch) leaseEnd() int64 { return b.now + b.Claim.Lease.Microseconds() }

// lease counts a lease that ends at until.
func (h *head) lease(until int64) {
	if h.leased == 0 || until < h.leasesEnd {
		h.leasesEnd = until
	}
	h.leased++
}

// least returns the one number of a query, or never if there is none.
func (w *work) least(query string, args ...any) (int64, error) {
	var n sql.NullInt64
	if err := w.row(query, args...).Scan(&n); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	if !n.Valid {
		return never, nil
	}
	return n.Int64, nil
}

func (w *work) numbers(query string, args ...any) (all []int64, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var n int64
		err := rows.Scan(&n)
		all = append(all, n)
		return true, err
	}, query, args...)
	return all, err
}

func withRoom(all []int64, rooms map[int64]int, otherwise int) []int64 {
	some := all[:0]
	for _, no := range all {
		if rules.Room(no, rooms, otherwise) > 0 {
			some = append(some, no)
		}
	}
	return some
}
