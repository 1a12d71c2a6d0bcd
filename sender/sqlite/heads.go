package sqlite

import (
	"cmp"
	"database/sql"
	"maps"
	"math"
	"slices"

	"github.com/surehook/surehook/sender"
)

// never is the due time of a head that has nothing to do. The tables have NULL for it.
const never = math.MaxInt64

// head is a subscription's row of live work: counts, the next due time, its turn, and the
// health of its endpoint.
type head struct {
	subscription int64
	subscriber   int64
	lane         sender.Lane
	open         bool
	nextDue      int64
	turn         int64

	pending, waiting, leased, dead int64

	leasesEnd int64
	owner     int64
	epoch     int64
	resumedAt int64
	resumedTo int64 // -1: nothing waits since an earlier epoch
	skippedTo int64
	rateAt    int64
	health    sender.Health
	behind    int64 // how many are behind in its lines,
	lined     int64 // and how many rows these have in all
	missing   bool  // it stands for one that is not there: see standIn
}

const headColumns = `subscription, subscriber, lane, open, coalesce(next_due, 9223372036854775807), turn, pending, waiting, leased, dead,
	leases_end, owner, epoch, resumed_at, coalesce(resumed_to, -1), left_to, rate_at, streak, failing_since, last_success, last_failure, warned, warned_at, recent, behind, lined`

// selectDueHeads finds the first heads of each subscriber, in no order.
var selectDueHeads = shareable(func(also string) string {
	return `SELECT ` + headColumns + ` FROM json_each(?1) j CROSS JOIN surehook_heads WHERE subscription IN (SELECT d.subscription FROM surehook_heads d
		WHERE d.lane = ?2 + 0 AND d.subscriber = j.value AND d.next_due <= ?3` + also + ` ORDER BY d.next_due, d.turn LIMIT ?4 + 0)`
}, ` AND `+freeHead(3, 5))

const (
	selectHeads  = `SELECT ` + headColumns + ` FROM surehook_heads WHERE subscription IN (SELECT value FROM json_each(?))`
	updateHealth = `UPDATE surehook_heads SET lane = ?, streak = ?, failing_since = ?, last_success = ?, last_failure = ?, warned = ?, warned_at = ? WHERE subscription = ?`
	updateOwner  = `UPDATE surehook_heads SET owner = ? WHERE subscription = ?`
	lowerTurn    = `UPDATE surehook_turns SET next_due = ?1 WHERE lane = ?2 AND subscriber = ?3 AND (next_due IS NULL OR next_due > ?1)`
)

// updateHeads write a head's counts. The first index is 1 if it also moves to another place
// among those that are due, and the second one if the counts of its lines have changed.
var updateHeads = func() (texts [2][2]string) {
	for due, moves := range [...]string{"", ", next_due = ?, turn = ?"} {
		for lined, counts := range [...]string{"", ", behind = ?, lined = ?"} {
			texts[due][lined] = `UPDATE surehook_heads SET pending = ?, waiting = ?, leased = ?, dead = ?, leases_end = ?, resumed_to = ?, rate_at = ?, recent = ?` +
				moves + counts + ` WHERE subscription = ?`
		}
	}
	return texts
}()

func scanHead(rows *sql.Rows) (h head, err error) {
	// Drivers give int64. A scan into any other type goes by way of text.
	var lane, streak, warned, warnedAt, failingSince, lastSuccess, lastFailure, recent int64
	err = rows.Scan(&h.subscription, &h.subscriber, &lane, &h.open, &h.nextDue, &h.turn, &h.pending, &h.waiting, &h.leased, &h.dead,
		&h.leasesEnd, &h.owner, &h.epoch, &h.resumedAt, &h.resumedTo, &h.skippedTo, &h.rateAt, &streak, &failingSince, &lastSuccess, &lastFailure, &warned, &warnedAt, &recent, &h.behind, &h.lined)
	h.lane = laneOf(lane)
	h.health = sender.Health{
		Lane: h.lane, Streak: int(streak), FailingSince: timeOf(failingSince),
		LastSuccess: timeOf(lastSuccess), LastFailure: timeOf(lastFailure), Warned: int(warned), WarnedAt: timeOf(warnedAt), Recent: sender.Recent(recent),
	}
	return h, err
}

// dueHeads reads the due heads of a lane's subscribers, for many subscribers at once.
type dueHeads struct {
	*batch
	lane        sender.Lane
	subscribers []int64
	upTo        int // the subscribers before this index have been read
	limit       int // how many heads of each were read
	by          map[int64][]*head
}

// of returns up to limit of the first heads of a subscriber. If they were not read yet,
// it reads those of up to ahead subscribers.
func (d *dueHeads) of(i, limit, ahead int) (due []*head, err error) {
	if i >= d.upTo {
		d.upTo, d.limit = min(i+ahead, len(d.subscribers)), limit
		if d.by, err = d.read(d.subscribers[i:d.upTo], limit); err != nil {
			return nil, err
		}
	}
	due = d.by[d.subscribers[i]]
	if len(due) == d.limit && limit > d.limit { // it may have more
		again, err := d.read(d.subscribers[i:i+1], limit)
		return again[d.subscribers[i]], err
	}
	return due[:min(limit, len(due))], nil
}

func (d *dueHeads) read(subscribers []int64, limit int) (map[int64][]*head, error) {
	by := make(map[int64][]*head, len(subscribers))
	err := d.each(func(rows *sql.Rows) (bool, error) {
		h, err := scanHead(rows)
		if err == nil {
			by[h.subscriber] = append(by[h.subscriber], d.heads.put(h))
		}
		return true, err
	}, selectDueHeads.Of(d.sharing.others), d.sharing.args(list(subscribers), d.lane, d.now, limit)...)
	for _, due := range by {
		slices.SortFunc(due, func(a, b *head) int { return cmp.Or(cmp.Compare(a.nextDue, b.nextDue), cmp.Compare(a.turn, b.turn)) })
	}
	return by, err
}

// heads has the heads that a transaction works with, as they are stored and as they are
// to be.
type heads struct {
	w      *work
	by     map[int64]*head
	stored map[int64]head
}

func newHeads(w *work) *heads {
	return &heads{w: w, by: map[int64]*head{}, stored: map[int64]head{}}
}

// load reads the heads that are not here yet.
func (hs *heads) load(subscriptions []int64) error {
	var missing []int64
	for _, no := range subscriptions {
		if hs.by[no] == nil {
			missing = append(missing, no)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err := hs.w.each(func(rows *sql.Rows) (bool, error) {
		h, err := scanHead(rows)
		if err == nil {
			hs.put(h)
		}
		return true, err
	}, selectHeads, list(missing))
	if err != nil {
		return err
	}
	for _, no := range missing {
		if hs.by[no] == nil {
			if err := hs.standIn(no); err != nil {
				return err
			}
		}
	}
	return nil
}

// one reads a head that must be there.
func (hs *heads) one(subscription int64) (*head, error) {
	h, err := hs.any(subscription)
	if err == nil && h.missing {
		return nil, sql.ErrNoRows
	}
	return h, err
}

// any reads a head, or has a stand-in in its place.
func (hs *heads) any(subscription int64) (*head, error) {
	err := hs.load([]int64{subscription})
	return hs.by[subscription], err
}

// put returns the head that is here already, if there is one: it can be newer than
// what was read.
func (hs *heads) put(h head) *head {
	if here := hs.by[h.subscription]; here != nil {
		return here
	}
	hs.stored[h.subscription] = h
	if h.lane == noLane { // the next store writes the lane that replaces it
		hs.w.damage.Tell(hs.w.ctx, h.subscription, "its lane in surehook_heads does not exist", "it is taken for a new one")
		h.lane, h.health.Lane = sender.LaneNew, sender.LaneNew
	}
	hs.by[h.subscription] = &h
	return &h
}

// lower makes a subscription due no later than at, if anything of it may be
// claimed.
func (h *head) lower(at int64) {
	if h.open {
		h.nextDue = min(h.nextDue, at)
	}
}

// healthMoved tells whether more of the health than the last outcomes differs: these are
// written with the counts.
func (h *head) healthMoved(was *head) bool {
	is := h.health
	is.Recent = was.health.Recent
	return is != was.health
}

// live is how many deliveries have not ended.
func (h *head) live() int64 { return h.pending + h.waiting + h.leased + h.behind }

// store writes what has changed.
func (hs *heads) store() error {
	return hs.write(func(h, was *head) bool { return *h != *was })
}

// storeDue writes the heads that a claim would look for in another place. Other changes
// wait for store, so that a head is written once.
func (hs *heads) storeDue() error {
	return hs.write(func(h, was *head) bool {
		return h.nextDue != was.nextDue || h.turn != was.turn || h.healthMoved(was)
	})
}

// write writes the heads that have changed. It makes the turns of their subscribers due
// no later than they are.
func (hs *heads) write(changed func(h, was *head) bool) error {
	var counted change
	var was head
	for _, no := range slices.Sorted(maps.Keys(hs.by)) {
		h := hs.by[no]
		if h.missing {
			continue
		}
		was = hs.stored[no]
		if !h.open {
			h.nextDue = never
		}
		if !changed(h, &was) {
			continue
		}
		if err := counted.add(hs.w, h, &was); err != nil {
			return err
		}
		if err := hs.writeOne(h, &was); err != nil {
			return err
		}
		hs.stored[no] = *h
	}
	return counted.store(hs.w)
}

func (hs *heads) writeOne(h, was *head) error {
	if h.healthMoved(was) {
		h.lane = h.health.Lane
		err := hs.w.execs(updateHealth, h.lane, h.health.Streak, micros(h.health.FailingSince),
			micros(h.health.LastSuccess), micros(h.health.LastFailure), h.health.Warned, micros(h.health.WarnedAt), h.subscription)
		if err != nil {
			return err
		}
	}
	if h.owner != was.owner {
		if err := hs.w.execs(updateOwner, h.owner, h.subscription); err != nil {
			return err
		}
	}
	args := append(make([]any, 0, 13), h.pending, h.waiting, h.leased, h.dead, h.leasesEnd, unless(h.resumedTo, -1), h.rateAt, int64(h.health.Recent))
	due, lined := 0, 0
	if h.nextDue != was.nextDue || h.turn != was.turn {
		due, args = 1, append(args, unless(h.nextDue, never), h.turn)
	}
	if h.behind != was.behind || h.lined != was.lined {
		lined, args = 1, append(args, h.behind, h.lined)
	}
	if err := hs.w.execs(updateHeads[due][lined], append(args, h.subscription)...); err != nil {
		return err
	}
	if h.nextDue != never && (h.nextDue < was.nextDue || h.lane != was.lane) {
		return hs.w.execs(lowerTurn, h.nextDue, h.lane, h.subscriber)
	}
	return nil
}

// unless returns the number, or NULL if the number is the one that stands for NULL.
func unless(n, null int64) any {
	if n == null {
		return nil
	}
	return n
}
