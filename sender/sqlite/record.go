package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	insertWaiting = `INSERT INTO surehook_waiting (subscription, event, due, number, tries, first_at, stood, single, spared, epoch, rank)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	insertEnd     = `INSERT INTO surehook_ended (subscription, event, status, class, ended_at) VALUES (?, ?, ?, ?, ?)`
	selectSkipped = `SELECT EXISTS (SELECT 1 FROM surehook_left WHERE subscription = ? AND epoch > ? AND event >= ?)`
)

const insertAttempts = `INSERT OR FAIL INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error, snippet, next_at, headers) VALUES `

// newAttempts inserts many attempts. newSucceeded inserts many that succeeded: its text
// has the values that are the same in all of these.
var (
	newAttempts  = newManyRows(insertAttempts, `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''))`)
	newSucceeded = newManyRows(insertAttempts, `(?, ?, ?, ?, ?, ?, '', '', NULL, 0, NULL)`)
)

// live is a delivery that has not ended.
type live struct {
	event, subscription int64
	token               int64 // of its lease
	number, tries       int64
	firstAt, claimedAt  int64
	stood               int64
	single              bool
	spared              bool // the attempt before the one in hand was spared, or the last one was
	pending             bool // it was never claimed
	behind              bool // it is behind in its line
	notice              bool // its event tells of a notice
	redacted            bool // its event was redacted
	epoch               int64
}

// dueDelivery is a delivery that a claim has found, with its event.
type dueDelivery struct {
	live
	due     int64
	info    sender.EventInfo
	size    int64  // of its body; -1: the event is not there
	body    []byte // if the claim reads it
	resumed bool   // it waits since an earlier epoch
}

func (l *live) key() dispatch.DeliveryKey {
	return dispatch.DeliveryKey{Event: l.event, Subscription: l.subscription}
}

func (l *live) forDecision() dispatch.Live {
	return dispatch.Live{Key: l.key(), Number: int(l.number), Tries: int(l.tries), First: timeOf(l.firstAt), Single: l.single,
		Stood: time.Duration(l.stood) * time.Microsecond, Notice: l.notice, Spared: l.spared}
}

// take sets the fields that the rules decide.
func (l *live) take(v *dispatch.Live) {
	l.number, l.tries, l.firstAt, l.stood, l.spared = int64(v.Number), int64(v.Tries), micros(v.First), v.Stood.Microseconds(), v.Spared
}

// batch is the work of one transaction of a dispatcher. Other methods that change
// deliveries use parts of it.
type batch struct {
	*work
	dispatch.Batch
	store     *Store
	registry  *registryCache
	sharing   sharing
	now       int64
	bytes     *rules.Bytes // of the bodies of what is claimed
	read      bodies
	heads     *heads
	expanded  dispatch.Expanded
	out       dispatch.Claims
	attempts  []any              // rows of newAttempts, to be inserted
	succeeded []any              // rows of newSucceeded
	rollup    history.Rollup     // what is added to the minute's
	ended     []rules.Ended      // attempts that were recorded, for the hours of their subscriptions
	madeFor   map[int64]int      // how many deliveries each subscription got
	ahead     map[int64]*decided // what filters say, as it was read before the transaction
	undecided *undecided         // what the next step has to read
	moved     []lineKey          // lines that something has left
	leaving   map[*head][]int64  // what has ended, and leaves its line together with others

	superseding rules.Superseding // by newer deliveries
}

// Step implements dispatch.Store. With nothing to do it only reads.
func (s *Store) Step(ctx context.Context, p dispatch.ExpandParams, in dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	if len(in.Results)+len(in.Notices) == 0 {
		next, now := int64(never), s.now()
		some := false
		err := s.read(ctx, func(w *work) (err error) {
			if p.Events > 0 {
				if some, err = w.unexpanded(); err != nil || some {
					return err
				}
			}
			next, err = w.nextDue(&in.Claim, s.sharing(&in.Claim), now)
			return err
		})
		if err != nil {
			return dispatch.Expanded{}, dispatch.Claims{}, fail("looking for what is due", err)
		}
		if !some && next > now {
			return dispatch.Expanded{}, dispatch.Claims{Now: timeOf(now), NextDue: dueTime(next)}, nil
		}
	}
	ahead, err := s.decideAhead(ctx, p)
	if err != nil {
		return dispatch.Expanded{}, dispatch.Claims{}, fail("reading events for filters", err)
	}
	var b batch
	err = s.write(ctx, func(w *work) error {
		k, err := s.registry(w)
		if err != nil {
			return fail("reading the registry", err)
		}
		b = batch{work: w, Batch: in, store: s, registry: k, now: s.now(), sharing: s.sharing(&in.Claim), bytes: s.bytes.Again(in.Claim.Bytes), read: bodies{of: s.bodies}, heads: newHeads(w), ahead: ahead}
		defer clear(s.bodies)
		b.out.Now = timeOf(b.now)
		return fail("expanding, recording and claiming", b.run(p))
	})
	if err != nil {
		return dispatch.Expanded{}, dispatch.Claims{}, err
	}
	s.undecided.Store(b.undecided)
	s.giveBodies(ctx, &b.out)
	return b.expanded, b.out, nil
}

func dueTime(due int64) time.Time {
	if due == never {
		return time.Time{}
	}
	return timeOf(due)
}

func (b *batch) run(p dispatch.ExpandParams) error {
	if err := b.store.beginMinute(b.work, b.now); err != nil {
		return err
	}
	if err := b.expand(p); err != nil {
		return err
	}
	if err := b.recordAll(); err != nil {
		return err
	}
	if err := b.advance(); err != nil {
		return err
	}
	if err := b.heads.storeDue(); err != nil {
		return err
	}
	for _, n := range b.Notices {
		if err := b.notify(n); err != nil {
			return err
		}
	}
	for lane := range b.Claim.Lanes {
		if err := b.claim(sender.Lane(lane)); err != nil {
			return err
		}
	}
	if by := b.Claim.By; by.Beat != 0 && len(b.out.Claimed) > 0 {
		if err := b.execs(storeBeat, by.Process, by.Beat); err != nil {
			return err
		}
	}
	if err := b.storeHeads(); err != nil {
		return err
	}
	if err := b.flush(); err != nil {
		return err
	}
	next, err := b.nextDue(&b.Claim, b.sharing, b.now)
	b.out.NextDue = dueTime(next)
	return err
}

// flush writes the rows that were put off, many with each statement.
func (b *batch) flush() error {
	if len(b.attempts)+len(b.succeeded)+b.expanded.Events+b.expanded.Deliveries == 0 {
		return nil
	}
	err := b.execMany(newAttempts, b.attempts)
	if err == nil {
		err = b.execMany(newSucceeded, b.succeeded)
	}
	b.attempts, b.succeeded = nil, nil
	if err == nil {
		err = b.store.tally(b.work, b.now, &b.rollup)
		b.rollup = history.Rollup{}
		b.countHours()
	}
	return err
}

func (b *batch) recordAll() error {
	if len(b.Results) == 0 {
		return nil
	}
	leases := make([]lease, len(b.Results))
	for i := range b.Results {
		leases[i] = lease{b.Results[i].Key, b.Results[i].Token}
	}
	taken, err := b.takeLeases(leases)
	if err != nil {
		return err
	}
	b.out.Recorded = make([]dispatch.Outcome, len(b.Results))
	b.succeeded = make([]any, 0, len(b.Results)*newSucceeded.columns)
	for i := range b.Results {
		r, out := &b.Results[i], &b.out.Recorded[i]
		l := taken[i]
		if l == nil {
			out.Lost = true
			continue
		}
		sub, err := b.registry.subscription(b.work, l.subscription)
		if err != nil {
			return err
		}
		out.Single = l.single
		if out.Decision, err = b.settle(b.heads.by[l.subscription], sub, l, r); err != nil {
			return err
		}
	}
	return nil
}

// settle stores an attempt whose lease is taken away, and what the rules decide of it.
func (b *batch) settle(h *head, sub *subscription, l *live, r *dispatch.Result) (dispatch.Decision, error) {
	skipped := false
	if !sub.gone() {
		var err error
		if skipped, err = b.skipped(h, l.epoch, l.event); err != nil {
			return dispatch.Decision{}, err
		}
	}
	var line rules.Line
	if r.Class != sender.ClassNone {
		var err error
		if line, err = b.lineOf(h, l.event); err != nil {
			return dispatch.Decision{}, err
		}
	}
	v, err := rules.Settle(l.forDecision(), h.health, *r, rules.Standing{
		Claimed: timeOf(l.claimedAt), Gone: sub.gone(), Skipped: skipped, Redacted: l.redacted,
		Settings: sub.Settings, Newer: line.Overtaken(sub.Settings.Order, l.event),
		Resumed: l.epoch < h.epoch, Active: sub.status == statusActive, Closing: sub.status == statusClosing,
	}, b.Decide, timeOf(b.now))
	if err != nil {
		return v.Decision, err
	}
	ended := rules.Ended{Result: r, Became: v.Status, Single: l.single, Lane: h.health.Lane}
	h.health = v.Health
	next := int64(0)
	if v.Status == sender.StatusAwaitingRetry {
		l.take(&v.Live)
		next = micros(v.Due)
		err = b.goOn(h, l, next, &line)
	} else if err = b.end(h, l, v.Status, r.Class); err == nil {
		err = b.leave(h, sub, l.event, v.Status)
	}
	rules.CountAttempt(&b.rollup, ended)
	b.ended = append(b.ended, ended)
	b.attempted(l, r, &v, next)
	if err == nil && sub.Settings.MaxInFlight > 0 && h.pending+h.waiting > 0 {
		h.lower(b.now) // the attempt may have kept the others back
	}
	if err == nil && sub.status != statusMissing {
		err = b.consequences(h, sub, l, &v.Decision)
	}
	return v.Decision, err
}

// attempted puts an attempt among those to be inserted.
func (b *batch) attempted(l *live, r *dispatch.Result, v *rules.Verdict, next int64) {
	if r.Class == sender.ClassNone && r.Error == "" && v.Snippet == nil && v.Headers == "" && next == 0 {
		// Drivers take int64 as it is; an int goes by way of reflection.
		b.succeeded = append(b.succeeded, l.event, l.subscription, int64(r.Number), micros(r.StartedAt), r.Duration.Microseconds(), int64(r.StatusCode))
		return
	}
	b.attempts = append(b.attempts, l.event, l.subscription, r.Number, micros(r.StartedAt), r.Duration.Microseconds(),
		r.StatusCode, string(r.Class), r.Error, v.Snippet, next, string(v.Headers))
}

// consequences disables the subscription and stores notices, as a decision says.
func (b *batch) consequences(h *head, sub *subscription, l *live, d *dispatch.Decision) error {
	if d.Disable != "" {
		if err := b.disable(h, sub, d.Disable); err != nil {
			return err
		}
	}
	for _, n := range rules.Notices(d, sub.Subscriber, sub.Subscription) {
		var event string
		switch err := b.row(`SELECT id FROM surehook_events WHERE seq = ?`, l.event).Scan(&event); {
		case err == nil:
			n.Delivery = deliveryID(event, l.subscription)
		case !errors.Is(err, sql.ErrNoRows): // without the event the delivery is not there either
			return err
		}
		if err := b.notify(n); err != nil {
			return err
		}
	}
	return nil
}

// skipped tells whether a resume has skipped a delivery that was in an epoch.
func (b *batch) skipped(h *head, epoch, event int64) (bool, error) {
	if event > h.skippedTo {
		return false, nil
	}
	var skipped bool
	err := b.row(selectSkipped, h.subscription, epoch, event).Scan(&skipped)
	return skipped, err
}

// wait makes a delivery, which is in none of the tables, one that waits.
func (b *batch) wait(h *head, l *live, due int64, rank int) error {
	h.waiting++
	h.lower(due)
	return b.execs(insertWaiting, l.subscription, l.event, due, l.number, l.tries, l.firstAt, l.stood, l.single, l.spared, h.epoch, rank)
}

// waitResumed makes a delivery without an attempt wait among those of before the last resume,
// which a claim takes first, in the order of the events. It may have looked at them up to there.
func (b *batch) waitResumed(h *head, l *live) error {
	h.waiting++
	h.resumedTo = min(h.resumedTo, l.event-1)
	h.lower(b.now)
	return b.execs(insertWaiting, l.subscription, l.event, b.now, l.number, l.tries, l.firstAt, l.stood, l.single, l.spared, h.epoch-1, rankFresh)
}

// end ends a delivery that is in none of the tables.
func (b *batch) end(h *head, l *live, status sender.Status, class sender.Class) error {
	switch status {
	case sender.StatusDelivered:
		return b.delivered(l)
	case sender.StatusDeadLettered:
		h.dead++
	}
	return b.execs(insertEnd, l.subscription, l.event, string(status), string(class), b.now)
}

// interrupted stores an attempt whose lease has ended without a result, and
// reports whether its delivery is to be attempted again now.
func (b *batch) interrupted(h *head, sub *subscription, d *dueDelivery) (again bool, err error) {
	r := rules.Lost(d.forDecision(), d.token, timeOf(d.claimedAt), d.info.CreatedAt, b.Claim.Chance)
	if err := b.execs(deleteLease, d.subscription, d.event); err != nil {
		return false, err
	}
	h.leased--
	decision, err := b.settle(h, sub, &d.live, &r)
	if err != nil {
		return false, err
	}
	target := sub.Target
	target.Lane = h.lane
	b.out.Interrupted = append(b.out.Interrupted, dispatch.Recorded{Outcome: dispatch.Outcome{Decision: decision, Single: d.single}, Target: &target, Event: d.info, Result: r})
	return decision.Status == sender.StatusAwaitingRetry && micros(decision.Due) <= b.now && !d.behind, nil
}
