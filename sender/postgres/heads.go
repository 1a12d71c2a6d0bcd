package postgres

import (
	"cmp"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/rules"
)

// head is the row of the live work of a subscription: how far the work is, and how the
// endpoint does.
type head struct {
	at           pgtype.TID // where the row is: it stays there while it is locked
	subscription int64
	subscriber   int64
	lane         sender.Lane
	open         bool
	nextDue      timestamp
	turn         int64

	pending, waiting, leased, dead int64

	leasesEnd   timestamp
	owner       int64
	claimedTo   int64
	waitingFrom timestamp
	epoch       int64
	resumedTo   int64 // -1: nothing waits since an earlier epoch
	rateAt      timestamp
	health      sender.Health
	behind      int64 // how many are behind in its lines,
	lined       int64 // and how many rows these have in all
	missing     bool  // it stands for a row that is missing: see standIn
	precedes    bool  // something came out of a line that is before what the claim has read
}

const headColumns = `ctid, subscription, subscriber, lane, open, next_due, turn, pending, waiting, leased, dead,
	leases_end, owner, claimed_to, waiting_from, epoch, coalesce(resumed_to, -1), rate_at, streak, warned, warned_at, failing_since, last_success, last_failure, recent, behind, lined`

// headWidth is the number of headColumns.
const headWidth = 27

const (
	// lockHeads is the first lock of a transaction that changes deliveries. All
	// transactions take their heads in this order.
	lockHeads = `SELECT ` + headColumns + ` FROM surehook_heads WHERE subscription = ANY($1) ORDER BY subscription FOR UPDATE`
)

// lockHeadsAt takes the subscriptions in their order, with where their rows may be. A row
// that is moved while it waits may be missing in the result.
var lockHeadsAt = overRows(`WITH found AS MATERIALIZED (
			SELECT coalesce((SELECT h.ctid FROM surehook_heads h WHERE h.ctid = u.at AND h.subscription = u.no),
				(SELECT h.ctid FROM surehook_heads h WHERE h.subscription = u.no)) AS at
			FROM unnest($1::bigint[], $2::tid[]) AS u(no, at))
		SELECT h.* FROM found CROSS JOIN LATERAL (SELECT ` + headColumns + ` FROM surehook_heads WHERE ctid = found.at FOR UPDATE) h`)

// updateHeads finds rows by where they are, which costs the same however many dead versions
// of them there are. It fails if it does not find all of them. Most heads keep their owner,
// and have no lines, so these columns are written only if one changes.
var updateHeads, updateWholeHeads = updateHeadsOf("", "", ""), updateHeadsOf(", owner = u.owner, behind = u.behind, lined = u.lined",
	", $24::bigint[], $25::bigint[], $26::bigint[]", ", owner, behind, lined")

// updateHeadsAndLines is updateWholeHeads if something leaves lines in which nothing is behind.
var updateHeadsAndLines = leaveLast(updateWholeHeads)

func updateHeadsOf(set, column, name string) rowwise {
	return overRows(`WITH changed AS (UPDATE surehook_heads h SET lane = u.lane, open = u.open, next_due = u.next_due, turn = u.turn, pending = u.pending,
			waiting = u.waiting, leased = u.leased, dead = u.dead, leases_end = u.leases_end, claimed_to = u.claimed_to, waiting_from = u.waiting_from,
			epoch = u.epoch, resumed_to = u.resumed_to, rate_at = u.rate_at, streak = u.streak, warned = u.warned, warned_at = u.warned_at,
			failing_since = u.failing_since, last_success = u.last_success, last_failure = u.last_failure, recent = u.recent` + set + `
		FROM unnest($1::tid[], $2::smallint[], $3::boolean[], $4::timestamptz[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
			$10::timestamptz[], $11::bigint[], $12::timestamptz[], $13::bigint[], $14::bigint[], $15::timestamptz[], $16::int[], $17::int[],
			$18::timestamptz[], $19::timestamptz[], $20::timestamptz[], $21::timestamptz[], $22::bigint[]` + column + `)
		AS u(at, lane, open, next_due, turn, pending, waiting, leased, dead, leases_end, claimed_to, waiting_from, epoch, resumed_to, rate_at,
			streak, warned, warned_at, failing_since, last_success, last_failure, recent` + name + `)
		WHERE h.ctid = u.at RETURNING h.subscription, h.ctid)
		SELECT subscription, ctid, 1 / (CASE WHEN (SELECT count(*) FROM changed) = $23::int THEN 1 ELSE 0 END) FROM (SELECT 1) one LEFT JOIN changed ON true`)
}

func scanHead(r rows) (h head, err error) {
	var warnedAt, failingSince, lastSuccess, lastFailure timestamp
	var lane int16
	var recent int64
	err = r.Scan(&h.at, &h.subscription, &h.subscriber, &lane, &h.open, &h.nextDue, &h.turn, &h.pending, &h.waiting, &h.leased, &h.dead,
		&h.leasesEnd, &h.owner, &h.claimedTo, &h.waitingFrom, &h.epoch, &h.resumedTo, &h.rateAt,
		&h.health.Streak, &h.health.Warned, &warnedAt, &failingSince, &lastSuccess, &lastFailure, &recent, &h.behind, &h.lined)
	h.health.Recent = sender.Recent(recent)
	h.lane = laneOf(lane)
	h.health.Lane, h.health.WarnedAt = h.lane, warnedAt.time()
	h.health.FailingSince, h.health.LastSuccess, h.health.LastFailure = failingSince.time(), lastSuccess.time(), lastFailure.time()
	return h, err
}

// heads are the heads that a transaction has locked: as they are stored, and as they are to
// be.
type heads struct {
	by     map[int64]*head
	stored map[int64]head
}

func newHeads() heads { return heads{by: map[int64]*head{}, stored: map[int64]head{}} }

func (hs *heads) put(h head) *head {
	hs.stored[h.subscription] = h
	if h.lane == noLane { // it is stored as new when the head is written
		h.lane, h.health.Lane = sender.LaneNew, sender.LaneNew
	}
	hs.by[h.subscription] = &h
	return &h
}

// lower makes a subscription due no later than at, unless it is held.
func (h *head) lower(at timestamp) {
	if h.open {
		h.nextDue = min(h.nextDue, at)
	}
}

// live returns how many deliveries have not ended.
func (h *head) live() int64 { return h.pending + h.waiting + h.leased + h.behind }

// pend counts deliveries that were never claimed, of which first is the first position, and due
// the time since which one is due. The subscription may not be due by its other pending ones:
// a resume may have skipped these.
func (h *head) pend(n, first int64, due timestamp) {
	h.pending += n
	h.claimedTo = min(h.claimedTo, first-1)
	h.lower(due)
}

// lease counts a lease that ends at until.
func (h *head) lease(until timestamp) {
	if h.leased == 0 || h.leasesEnd != none && until < h.leasesEnd {
		h.leasesEnd = until
	}
	h.leased++
}

// catchUp applies to a head what callers have changed in its subscription.
func (h *head) catchUp(sub *subscription, now timestamp) {
	if h.missing {
		h.subscriber, h.epoch = sub.SubscriberNumber, sub.epoch
		return
	}
	if h.epoch < sub.epoch {
		if h.epoch < sub.recovered {
			h.health = rules.Recovered(h.health)
		}
		h.epoch, h.waitingFrom = sub.epoch, always
		if h.waiting > 0 {
			h.resumedTo = sub.resumedFrom
		}
		h.lower(now)
	}
	switch open := sub.opened(); {
	case open && !h.open:
		h.open = true
		if h.live() > 0 {
			h.lower(now)
		}
	case !open:
		h.open = false
	}
	if !h.open {
		h.nextDue = never
	}
}

// changed returns the heads that differ from what is stored, in their order.
func (hs *heads) changed() (all []*head) {
	for _, no := range slices.Sorted(maps.Keys(hs.by)) {
		h := hs.by[no]
		if h.missing {
			continue
		}
		if h.health.Lane != h.lane {
			h.lane = h.health.Lane
		}
		if !h.open {
			h.nextDue = never
		}
		if *h != hs.stored[no] {
			all = append(all, h)
		}
	}
	return all
}

func column[T, V any](rows []T, value func(T) V) []V {
	all := make([]V, len(rows))
	for i, r := range rows {
		all[i] = value(r)
	}
	return all
}

func headArgs(all []*head) []any {
	return []any{
		field(all, func(h *head) pgtype.TID { return h.at }),
		field(all, func(h *head) int16 { return int16(h.lane) }),
		field(all, func(h *head) bool { return h.open }),
		field(all, func(h *head) timestamp { return h.nextDue }),
		field(all, func(h *head) int64 { return h.turn }),
		field(all, func(h *head) int64 { return h.pending }),
		field(all, func(h *head) int64 { return h.waiting }),
		field(all, func(h *head) int64 { return h.leased }),
		field(all, func(h *head) int64 { return h.dead }),
		field(all, func(h *head) timestamp { return h.leasesEnd }),
		field(all, func(h *head) int64 { return h.claimedTo }),
		field(all, func(h *head) timestamp { return h.waitingFrom }),
		field(all, func(h *head) int64 { return h.epoch }),
		field(all, func(h *head) pgtype.Int8 { return pgtype.Int8{Int64: h.resumedTo, Valid: h.resumedTo >= 0} }),
		field(all, func(h *head) timestamp { return h.rateAt }),
		field(all, func(h *head) int32 { return int32(h.health.Streak) }),
		field(all, func(h *head) int32 { return int32(h.health.Warned) }),
		field(all, func(h *head) timestamp { return timestampOf(h.health.WarnedAt) }),
		field(all, func(h *head) timestamp { return timestampOf(h.health.FailingSince) }),
		field(all, func(h *head) timestamp { return timestampOf(h.health.LastSuccess) }),
		field(all, func(h *head) timestamp { return timestampOf(h.health.LastFailure) }),
		field(all, func(h *head) int64 { return int64(h.health.Recent) }),
		len(all),
	}
}

func (b *batch) updateHeads(all []*head) query {
	rare := func(h *head) bool {
		was := b.heads.stored[h.subscription]
		return h.owner != was.owner || h.behind != was.behind || h.lined != was.lined
	}
	last := b.leavesLast
	b.leavesLast = nil
	if len(last) == 0 && !slices.ContainsFunc(all, rare) {
		return b.query(updateHeads.of(len(all)), headArgs(all)...)
	}
	args := append(headArgs(all), field(all, func(h *head) int64 { return h.owner }),
		field(all, func(h *head) int64 { return h.behind }), field(all, func(h *head) int64 { return h.lined }))
	if len(last) == 0 {
		return b.query(updateWholeHeads.of(len(all)), args...)
	}
	return b.query(updateHeadsAndLines.of(len(all)), append(args, subscriptionsOf(last), eventsOf(last))...)
}

// storeHeads writes the heads that changed, and moves the turns of their subscribers.
// served are the subscribers that a claim served, by lane. Nothing else locks anything
// after it.
func (b *batch) storeHeads(served map[turnKey]bool) error {
	all := b.heads.changed()
	moves := map[turnKey]*turnMove{}
	move := func(k turnKey) *turnMove {
		m := moves[k]
		if m == nil {
			m = &turnMove{turnKey: k, low: never, served: served[k]}
			moves[k] = m
		}
		return m
	}
	for k := range served {
		move(k)
	}
	for _, h := range all {
		was := b.heads.stored[h.subscription]
		if h.nextDue <= b.now && was.nextDue > b.now && b.others(h) {
			b.madeDue = true
		}
		k := turnKey{h.lane, h.subscriber}
		if h.nextDue != never && (served[k] || h.nextDue < was.nextDue || h.lane != was.lane) {
			m := move(k)
			m.low = min(m.low, h.nextDue)
		}
	}
	if len(all)+len(b.leavesLast) > 0 {
		var nos []int64
		var at []pgtype.TID
		q := b.updateHeads(all).rows(func(r rows) error {
			nos, at = append(nos, 0), append(at, pgtype.TID{})
			return r.Scan(&nos[len(nos)-1], &at[len(at)-1], nil)
		})
		q.join = joinLast
		b.pipeline.queue(q)
		b.after(func(committed bool) {
			if committed {
				remember(&b.rowAt, b.rowAt.heads, nos, at)
			}
		})
	}
	return b.moveTurns(slices.SortedFunc(maps.Values(moves), func(x, y *turnMove) int {
		return cmp.Or(cmp.Compare(x.lane, y.lane), cmp.Compare(x.subscriber, y.subscriber))
	}))
}

// turnKey names a subscriber's turn in a lane.
type turnKey struct {
	lane       sender.Lane
	subscriber int64
}

// turnMove is the change of a turn.
type turnMove struct {
	turnKey
	low    timestamp // if it was not served, it becomes due no later
	served bool
}

const (
	// lockTurns takes the turns in their order, with where their rows may be.
	lockTurns = `WITH found AS MATERIALIZED (SELECT ` + turnAt + ` AS at FROM unnest($1::smallint[], $2::bigint[], $3::tid[]) AS u(lane, subscriber, at))
		SELECT t.lane FROM found CROSS JOIN LATERAL (SELECT lane FROM surehook_turns WHERE ctid = found.at FOR UPDATE) t`
	turnAt = `coalesce((SELECT t.ctid FROM surehook_turns t WHERE t.ctid = u.at AND t.lane = u.lane AND t.subscriber = u.subscriber),
		(SELECT t.ctid FROM surehook_turns t WHERE t.lane = u.lane AND t.subscriber = u.subscriber))`

	// updateTurns makes a served subscriber due when the first of its subscriptions is, and
	// another one no later than its subscription that changed. If that is due already, the
	// turn goes to the tail of those that are due: no turn is ever due in the past, where
	// turnFrom does not look. Rows below low are dead, and the scan does not pass over
	// them. It is a statement of its own after lockTurns, because it must see what those
	// who had the lock before have committed.
	updateTurns = `UPDATE surehook_turns t SET
			turn = CASE WHEN m.served THEN $5 ELSE t.turn END,
			next_due = CASE WHEN m.served THEN greatest($6, m.least) ELSE least(t.next_due, greatest($6, m.low)) END,
			low = CASE WHEN m.served THEN m.least ELSE least(t.low, m.low) END
		FROM (SELECT u.*, coalesce((SELECT h.next_due FROM surehook_heads h
					WHERE u.served AND h.lane = u.lane AND h.subscriber = u.subscriber AND h.next_due < 'infinity' AND h.next_due >= least(x.low, u.low)
					ORDER BY h.next_due, h.turn LIMIT 1), 'infinity') AS least
				FROM (SELECT u.*, ` + turnAt + ` AS there FROM unnest($1::smallint[], $2::bigint[], $3::timestamptz[], $4::boolean[], $7::tid[])
					AS u(lane, subscriber, low, served, at) OFFSET 0) u
				JOIN surehook_turns x ON x.ctid = u.there) m
		WHERE t.ctid = m.there AND (m.served OR t.next_due > greatest($6, m.low) OR t.low > m.low)
		RETURNING t.lane, t.subscriber, t.ctid`
)

// moveTurns takes the last lock of a transaction.
func (b *batch) moveTurns(moves []*turnMove) error {
	if len(moves) == 0 {
		return nil
	}
	b.moved = true
	lanes := column(moves, func(m *turnMove) int16 { return int16(m.lane) })
	subscribers := column(moves, func(m *turnMove) int64 { return m.subscriber })
	at := rowsAt(&b.rowAt, b.rowAt.turns, column(moves, func(m *turnMove) turnKey { return m.turnKey }))
	if err := b.execs(lockTurns, lanes, subscribers, at); err != nil {
		return err
	}
	var keys []turnKey
	var moved []pgtype.TID
	b.pipeline.queue(b.query(updateTurns, lanes, subscribers,
		column(moves, func(m *turnMove) timestamp { return m.low }),
		column(moves, func(m *turnMove) bool { return m.served }), b.turns.Add(1), b.now, at,
	).rows(func(r rows) error {
		keys, moved = append(keys, turnKey{}), append(moved, pgtype.TID{})
		k := &keys[len(keys)-1]
		return r.Scan(&k.lane, &k.subscriber, &moved[len(moved)-1])
	}))
	b.after(func(committed bool) {
		if committed {
			remember(&b.rowAt, b.rowAt.turns, keys, moved)
		}
	})
	return nil
}

// distinct returns the numbers in their order, each once.
func distinct(nos []int64) []int64 {
	all := slices.Clone(nos)
	slices.Sort(all)
	return slices.Compact(all)
}
