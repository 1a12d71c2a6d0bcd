package postgres

import (
	"maps"
	"slices"

	"github.com/surehook/surehook/sender"
)

const (
	// lockWoken locks the heads of subscriptions that callers changed. A head that somebody
	// else has locked is left to the next step: a step waits only for heads that it has
	// results for.
	lockWoken = `SELECT ` + headColumns + ` FROM surehook_heads
		WHERE subscription = ANY(ARRAY(SELECT subscription FROM surehook_wakes LIMIT 100)) ORDER BY subscription FOR UPDATE SKIP LOCKED`
	// deleteWakes runs when the heads are locked, and before the subscriptions are read: so
	// it deletes no wake whose change is not seen.
	deleteWakes = `DELETE FROM surehook_wakes WHERE subscription = ANY($1) RETURNING subscription`

	leaseColumns = `l.subscription, l.event, l.token, l.number, l.tries, l.first_at, l.stood, l.claimed_at, l.single, l.spared, l.epoch, l.notice, l.redacted, l.bytes`
)

// takeLeases takes the leases that are held under a token, which guards the row. They are
// looked up one by one, which is right even if the statistics say that there are few.
var takeLeases = overRows(`WITH q AS MATERIALIZED (
		SELECT x.at FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u(subscription, event, token) CROSS JOIN LATERAL (
			SELECT ctid AS at FROM surehook_leases WHERE subscription = u.subscription AND event = u.event AND token = u.token OFFSET 0) x)
	DELETE FROM surehook_leases l USING q WHERE l.ctid = q.at
	RETURNING ` + leaseColumns)

// turnsFrom is where the scans of a claim begin in each lane.
type turnsFrom [sender.Lanes]timestamp

func (c *core) turnsFrom() (f turnsFrom) {
	for lane := range f {
		f[lane] = always
		if !c.scanFrom.off {
			f[lane] = c.scanFrom.turns[lane].from(c.now())
		}
	}
	return f
}

// around is the result of a look, before a transaction or at its beginning. What it did not
// find need not be asked for.
type around struct {
	now   timestamp
	woken bool                    // callers changed subscriptions
	due   [sender.Lanes]timestamp // when something is due next in each lane; none: nothing is
}

func (a *around) columns() []any { return []any{&a.woken, &a.due[0], &a.due[1], &a.due[2]} }

// next returns when something is due next; never: nothing is.
func (a *around) next() timestamp {
	next := never
	for _, due := range a.due {
		if due != none {
			next = min(next, due)
		}
	}
	return next
}

// hasDue tells whether a lane has something due, as far as is known.
func (a *around) hasDue(lane int) bool {
	return a == nil || a.due[lane] != none && a.due[lane] <= a.now
}

// found is what a batch has locked.
type found struct {
	leases map[sender.DeliveryKey]*live // the leases that were taken
	due    [sender.Lanes][]dueSubscriber
}

// load locks the heads of subscriptions that have results or new deliveries. Then it takes
// the leases, and locks heads that callers have woken, or that are due, if nobody else has
// locked them. At last it reads the subscriptions. So a transaction waits for locks only
// before it has others, and in their order.
func (b *batch) load(f turnsFrom, recipients []int64, a *around) (found, error) {
	woke := a == nil || a.woken
	out := found{leases: make(map[sender.DeliveryKey]*live, len(b.Results))}
	nos := make([]int64, len(b.Results))
	events := make([]int64, len(b.Results))
	tokens := make([]int64, len(b.Results))
	for i := range b.Results {
		r := &b.Results[i]
		nos[i], events[i], tokens[i] = r.Key.Subscription, r.Key.Event, r.Token
	}
	var qs []query
	var scans []func(r rows) error
	ask := func(q query, scan func(r rows) error) { qs, scans = append(qs, q), append(scans, scan) }

	var others []int64 // that are locked besides known
	put := func(h head) *head {
		if here := b.heads.by[h.subscription]; here != nil {
			return here
		}
		others = append(others, h.subscription)
		return b.heads.put(h)
	}
	known := distinct(append(recipients, nos...))
	if len(known) > 0 {
		ask(b.lockQuery(known), func(r rows) error {
			h, err := scanHead(r)
			b.heads.put(h)
			return err
		})
	}
	if len(nos) > 0 {
		var l live
		columns := l.columns()
		taken := make([]live, 0, len(nos))
		ask(query{b.text(takeLeases.of(len(nos))), []any{given(nos), given(events), given(tokens)}}, func(r rows) error {
			err := r.Scan(columns...)
			taken = append(taken, l)
			out.leases[l.key()] = &taken[len(taken)-1]
			return err
		})
	}
	if woke {
		ask(query{b.text(lockWoken), nil}, func(r rows) error {
			h, err := scanHead(r)
			put(h)
			return err
		})
	}
	least := turnsFrom{never, never, never}
	for lane := range b.Claim.Lanes {
		if b.Claim.Lanes[lane].Slots > 0 && a.hasDue(lane) {
			ask(b.dueQuery(sender.Lane(lane), f[lane]), func(r rows) error { return scanDue(r, &out.due[lane], put, &least[lane]) })
		}
	}
	var woken []int64
	wakes := func(r rows) error {
		var no int64
		err := r.Scan(&no)
		woken = append(woken, no)
		return err
	}
	if len(known) > 0 {
		if woke {
			ask(query{b.text(deleteWakes), []any{known}}, wakes)
		}
		ask(query{b.text(selectTargets), []any{known}}, func(r rows) error { return b.scanSubscription(r, b.subs) })
	}
	if len(qs) > 0 {
		if err := b.many(b.ctx, qs, func(n int, r rows) error { return scans[n](r) }); err != nil {
			return out, err
		}
	}
	if err := b.allLocked(known); err != nil {
		return out, err
	}
	if err := b.standIn(known); err != nil {
		return out, err
	}
	for lane := range b.Claim.Lanes {
		if b.Claim.Lanes[lane].Slots > 0 && a.hasDue(lane) {
			b.scanFrom.turns[lane].found(least[lane], b.now)
		}
	}
	for _, l := range out.leases {
		b.heads.by[l.subscription].leased--
	}
	if len(others) > 0 && woke {
		b.pipeline.queue(query{b.text(deleteWakes), []any{others}}, wakes)
	}
	if err := b.readSubscriptions(slices.Sorted(maps.Keys(b.heads.by))); err != nil {
		return out, err
	}
	for _, no := range woken {
		if h := b.heads.by[no]; h.live() > 0 {
			h.lower(b.now)
		}
	}
	return out, nil
}

// columns returns where leaseColumns are scanned to.
func (l *live) columns() []any {
	return []any{&l.subscription, &l.event, &l.token, &l.number, &l.tries, &l.firstAt, &l.stood, &l.claimedAt, &l.single, &l.spared, &l.epoch, &l.notice, &l.redacted, &l.bytes}
}
