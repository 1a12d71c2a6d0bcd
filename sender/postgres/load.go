package postgres

import (
	"maps"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const (
	// lockWoken locks the heads of subscriptions that callers changed. A head that somebody
	// else has locked is left to the next step: a step waits only for heads that it has
	// results for. It passes over wakes of heads that are missing, which stay: otherwise a
	// hundred of them would keep the others from being found.
	lockWoken = `SELECT ` + headColumns + ` FROM surehook_heads
		WHERE subscription = ANY(ARRAY(SELECT w.subscription FROM surehook_wakes w
			WHERE (SELECT h.subscription FROM surehook_heads h WHERE h.subscription = w.subscription LIMIT 1) IS NOT NULL LIMIT 100)) ORDER BY subscription FOR UPDATE SKIP LOCKED`
	// deleteWakes runs when the heads are locked, and before the subscriptions are read: so
	// it deletes no wake whose change is not seen.
	deleteWakes = `DELETE FROM surehook_wakes WHERE subscription = ANY($1) RETURNING subscription`

	leaseColumns = `l.subscription, l.event, l.token, l.number, l.tries, l.first_at, l.stood, l.claimed_at, l.single, l.spared, l.epoch, l.notice, l.redacted, l.bytes`
)

// takeLeases takes the leases that are held under a token, which guards the row. They are
// looked up one by one, which is right even if the statistics say that there are few, and are
// deleted by one scan.
var takeLeases = overRows(`DELETE FROM surehook_leases l WHERE l.ctid = ANY(ARRAY(
		SELECT x.at FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u(subscription, event, token) CROSS JOIN LATERAL (
			SELECT ctid AS at FROM surehook_leases WHERE subscription = u.subscription AND event = u.event AND token = u.token OFFSET 0) x))
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

// around is the result of a look, before a transaction or at its beginning. Rows that it
// did not find need not be asked for.
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
	leases map[dispatch.DeliveryKey]*live // the leases that were taken
	due    [sender.Lanes][]dueSubscriber
}

// load locks the heads of subscriptions that have results or new deliveries, unless they are
// locked already. Then it takes the leases, and locks heads that callers have woken, or that
// are due, if nobody else has locked them. At last it reads the subscriptions. So a
// transaction waits for locks only before it has others, and in their order.
func (l *loading) load(recipients []int64) (found, error) {
	var qs []query
	if !l.locked {
		l.known = distinct(append(recipients, l.results()...))
		qs = l.lockKnown()
	}
	qs = append(qs, l.lockOthers()...)
	if !l.locked || l.wakes() { // a wake may have come after the subscriptions were read
		qs = append(qs, l.readKnown()...)
	}
	if len(qs) > 0 {
		if err := l.send(qs...); err != nil {
			return l.out, err
		}
	}
	return l.out, l.catchUp()
}

// loading is a load at work.
type loading struct {
	*batch
	from   turnsFrom
	seen   *around
	known  []int64 // subscriptions with results or new deliveries
	locked bool    // the expansion has locked their heads, taken the leases and read the subscriptions
	others []int64 // subscriptions whose heads are locked besides
	woken  []int64 // subscriptions whose wakes were deleted
	least  turnsFrom
	out    found
}

func (b *batch) loading(from turnsFrom, seen *around) *loading {
	return &loading{
		batch: b, from: from, seen: seen, least: turnsFrom{never, never, never},
		out: found{leases: make(map[dispatch.DeliveryKey]*live, len(b.Results))},
	}
}

// results are the subscriptions that have some.
func (l *loading) results() []int64 {
	return column(l.Results, func(r dispatch.Result) int64 { return r.Key.Subscription })
}

// wakes tells whether callers changed subscriptions, as far as is known.
func (l *loading) wakes() bool { return l.seen == nil || l.seen.woken }

// looksAt tells whether a lane has slots, and something due, as far as is known.
func (l *loading) looksAt(lane int) bool { return l.Claim.Lanes[lane].Slots > 0 && l.seen.hasDue(lane) }

// lockKnown locks the heads of the known subscriptions, and takes the leases of the
// results.
func (l *loading) lockKnown() (qs []query) {
	if len(l.known) > 0 {
		qs = append(qs, l.headsOf(l.lockQuery(l.known)))
	}
	return append(qs, l.takeLeases()...)
}

// headsOf reads the heads that a statement locks.
func (l *loading) headsOf(q query) query {
	return q.rows(func(r rows) error {
		h, err := scanHead(r)
		l.heads.put(h)
		return err
	})
}

// targetsOf reads the subscriptions that a statement finds.
func (l *loading) targetsOf(q query) query {
	return q.rows(func(r rows) error { return l.scanSubscription(r, l.subs) })
}

func (l *loading) takeLeases() (qs []query) {
	if len(l.Results) == 0 {
		return nil
	}
	var row live
	columns := row.columns()
	taken := make([]live, 0, len(l.Results))
	return append(qs, l.query(takeLeases.of(len(l.Results)), given(l.results()),
		field(l.Results, func(r dispatch.Result) int64 { return r.Key.Event }),
		field(l.Results, func(r dispatch.Result) int64 { return r.Token }),
	).rows(func(r rows) error {
		err := r.Scan(columns...)
		taken = append(taken, row)
		l.out.leases[row.key()] = &taken[len(taken)-1]
		return err
	}))
}

// put adds the head of a subscription, unless it is a known one.
func (l *loading) put(h head) *head {
	if here := l.heads.by[h.subscription]; here != nil {
		return here
	}
	l.others = append(l.others, h.subscription)
	return l.heads.put(h)
}

// lockOthers locks heads that callers have woken, or that are due.
func (l *loading) lockOthers() (qs []query) {
	if l.wakes() {
		qs = append(qs, l.query(lockWoken).rows(func(r rows) error {
			h, err := scanHead(r)
			l.put(h)
			return err
		}))
	}
	for lane := range l.Claim.Lanes {
		if l.looksAt(lane) {
			qs = append(qs, l.dueQuery(sender.Lane(lane), l.from[lane]).rows(func(r rows) error {
				return scanDue(r, &l.out.due[lane], l.put, &l.least[lane])
			}))
		}
	}
	return qs
}

// deleteWakesOf deletes the wakes of subscriptions whose heads are locked.
func (l *loading) deleteWakesOf(subscriptions []int64) query {
	return l.query(deleteWakes, subscriptions).rows(func(r rows) error {
		var no int64
		err := r.Scan(&no)
		l.woken = append(l.woken, no)
		return err
	})
}

func (l *loading) readKnown() (qs []query) {
	if len(l.known) == 0 {
		return nil
	}
	if l.wakes() {
		qs = append(qs, l.deleteWakesOf(l.known))
	}
	return append(qs, l.targetsOf(l.query(selectTargets, l.known)))
}

// catchUp checks what was locked, and brings the heads up to their subscriptions.
func (l *loading) catchUp() error {
	if err := l.allLocked(l.known); err != nil {
		return err
	}
	if err := l.standIn(l.known); err != nil {
		return err
	}
	for lane := range l.Claim.Lanes {
		if l.looksAt(lane) {
			l.scanFrom.turns[lane].found(l.least[lane], l.now)
		}
	}
	for _, lease := range l.out.leases {
		l.heads.by[lease.subscription].leased--
	}
	if len(l.others) > 0 && l.wakes() {
		l.pipeline.queue(l.deleteWakesOf(l.others))
	}
	if err := l.readSubscriptions(slices.Sorted(maps.Keys(l.heads.by))); err != nil {
		return err
	}
	for _, no := range l.woken {
		if h := l.heads.by[no]; h.live() > 0 {
			h.lower(l.now)
		}
	}
	return nil
}

// columns returns where leaseColumns are scanned to.
func (l *live) columns() []any {
	return []any{&l.subscription, &l.event, &l.token, &l.number, &l.tries, &l.firstAt, &l.stood, &l.claimedAt, &l.single, &l.spared, &l.epoch, &l.notice, &l.redacted, &l.bytes}
}
