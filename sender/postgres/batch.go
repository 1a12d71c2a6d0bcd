package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// batch is a transaction that changes deliveries. It locks their heads first. At its end it
// writes all that it has decided, many rows at once.
type batch struct {
	*work
	dispatch.Batch
	heads heads
	subs  map[int64]*subscription // of the heads
	out   dispatch.Claims

	payloads readings         // of what is claimed
	early    readings         // events that were read while they were expanded, by their numbers
	bodies   *bodies          // those that the last expansion has read; nil: this step expands nothing
	arrived  map[*head][]made // new deliveries that are not among the pending ones yet
	attempts []attempt
	waits    []waits
	ends     []ended
	fresh    []dispatch.DeliveryKey // deliveries that became delivered
	rollup   history.Rollup         // what the batch adds to its minute's rollup
	done     []rules.Ended          // attempts that were recorded, for the hours of their subscriptions
	madeFor  map[int64]int          // how many deliveries each subscription got
	moved    bool                   // turns were moved
	shared   bool                   // other processes are known
	madeDue  bool                   // a subscription that another process holds was made due
	lasting  map[int64]bool         // see findLasting

	leases       map[dispatch.DeliveryKey]*live  // of the results that are not recorded yet
	inLines      map[dispatch.DeliveryKey]inLine // see readLinesOf
	leaving      []leaving                       // deliveries that have ended, of heads with lines
	leavesLast   []dispatch.DeliveryKey          // those of them that leave with the heads' own statement, as nothing is behind them
	leavesLater  bool                            // some of them leave with a statement that is not answered yet
	yields       []waits                         // deliveries that go behind
	linesAhead   map[lineKey]rules.Line          // lines that were read, and into which nothing has come since
	movedLines   map[lineKey]bool                // lines that have something, and nothing out
	waitingAgain []dispatch.DeliveryKey          // deliveries that come out of their lines, and wait again

	superseding rules.Superseding // by newer deliveries
}

// live is a delivery that has not ended.
type live struct {
	event, subscription int64
	token               int64 // of its lease
	number, tries       int
	firstAt, claimedAt  timestamp
	stood               int64 // microseconds
	single              bool
	spared              bool // the attempt before the present one was spared, or the last one
	pending             bool // it was never claimed
	notice              bool // its event tells of a notice
	redacted            bool // its event was redacted
	epoch               int64
	bytes               int32 // the length of its event's body; 0: it may not be known
}

func (l *live) key() dispatch.DeliveryKey {
	return dispatch.DeliveryKey{Event: l.event, Subscription: l.subscription}
}

func (l *live) forDecision() dispatch.Live {
	return dispatch.Live{Key: l.key(), Number: l.number, Tries: l.tries, First: l.firstAt.time(), Single: l.single,
		Stood: time.Duration(l.stood) * time.Microsecond, Notice: l.notice, Spared: l.spared}
}

// take puts into the row what the rules made of it.
func (l *live) take(v *dispatch.Live) {
	l.number, l.tries, l.firstAt, l.stood, l.spared = v.Number, v.Tries, timestampOf(v.First), v.Stood.Microseconds(), v.Spared
}

// attempt, waits and ended are rows to be inserted.
type (
	attempt struct {
		*live
		result  *dispatch.Result
		snippet []byte
		headers sender.Headers
		next    timestamp
	}
	waits struct {
		live
		due    timestamp
		rank   int
		replay int64
	}
	ended struct {
		event, subscription int64
		status              sender.Status
		class               sender.Class
	}
)

// batch runs fn in a transaction that changes deliveries. fn runs again if the transaction
// lost against another one, so fn begins by resetting what it returns.
func (s side) batch(ctx context.Context, in dispatch.Batch, fn func(b *batch) error) error {
	return s.write(ctx, func(w *work) error { return w.batch(in).whole(fn) })
}

func (c *core) batch(ctx context.Context, in dispatch.Batch, fn func(b *batch) error) error {
	return side{core: c}.batch(ctx, in, fn)
}

func (b *batch) whole(fn func(b *batch) error) error {
	if err := fn(b); err != nil {
		return err
	}
	return b.finish(nil)
}

func (w *work) batch(in dispatch.Batch) *batch {
	return &batch{work: w, Batch: in, heads: newHeads(), subs: map[int64]*subscription{}, lasting: map[int64]bool{}, shared: w.processes.Besides(in.Claim.By.Process)}
}

var (
	// insertSuccesses is insertAttempts for attempts that succeeded and have nothing else
	// to store.
	insertSuccesses = overRows(`INSERT INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error)
		SELECT e, s, n, a, d, c, '', '' FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::timestamptz[], $5::bigint[], $6::int[]) AS u(e, s, n, a, d, c)`)
	insertAttempts = overRows(`INSERT INTO surehook_attempts (event, subscription, number, started_at, duration, status_code, class, error, snippet, next_at, headers)
		SELECT e, s, n, a, d, c, k, m, b, t, nullif(h, '') FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::timestamptz[], $5::bigint[], $6::int[], $7::text[], $8::text[], $9::bytea[], $10::timestamptz[], $11::text[]) AS u(e, s, n, a, d, c, k, m, b, t, h)`)
	insertWaiting = overRows(`INSERT INTO surehook_waiting (subscription, event, due, first_at, number, tries, stood, epoch, replay, rank, single, spared, notice, bytes)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::int[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[], $10::smallint[], $11::boolean[], $12::boolean[], $13::boolean[], $14::int[]) AS u`)
	insertEnded = overRows(`INSERT INTO surehook_ended (subscription, event, status, class, ended_at)
		SELECT s, e, t, c, $5 FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS u(s, e, t, c)`)
)

// successes splits the attempts: those for insertSuccesses, and the others.
func (b *batch) successes() (plain, others []attempt) {
	i := 0
	for j, a := range b.attempts {
		if a.result.Class == sender.ClassNone && a.result.Error == "" && len(a.snippet) == 0 && a.headers == "" && a.next == none {
			b.attempts[i], b.attempts[j] = b.attempts[j], b.attempts[i]
			i++
		}
	}
	return b.attempts[:i], b.attempts[i:]
}

// flush writes what was put off.
func (b *batch) flush() error {
	for _, write := range []func() error{b.writeAttempts, b.writeWaits, b.writeEnds} {
		if err := write(); err != nil {
			return err
		}
	}
	b.attempts, b.waits, b.ends, b.fresh = nil, nil, nil, nil
	return nil
}

// writeAttempts writes the attempts, those that succeeded first.
func (b *batch) writeAttempts() error {
	plain, others := b.successes()
	if len(plain) > 0 {
		err := b.joins(insertSuccesses.of(len(plain)),
			field(plain, func(r attempt) int64 { return r.event }),
			field(plain, func(r attempt) int64 { return r.subscription }),
			field(plain, func(r attempt) int32 { return int32(r.result.Number) }),
			field(plain, func(r attempt) timestamp { return timestampOf(r.result.StartedAt) }),
			field(plain, func(r attempt) int64 { return r.result.Duration.Microseconds() }),
			field(plain, func(r attempt) int32 { return int32(r.result.StatusCode) }),
		)
		if err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	return b.joins(insertAttempts.of(len(others)),
		field(others, func(r attempt) int64 { return r.event }),
		field(others, func(r attempt) int64 { return r.subscription }),
		field(others, func(r attempt) int32 { return int32(r.result.Number) }),
		field(others, func(r attempt) timestamp { return timestampOf(r.result.StartedAt) }),
		field(others, func(r attempt) int64 { return r.result.Duration.Microseconds() }),
		field(others, func(r attempt) int32 { return int32(r.result.StatusCode) }),
		field(others, func(r attempt) string { return string(r.result.Class) }),
		field(others, func(r attempt) string { return r.result.Error }),
		field(others, func(r attempt) []byte { return r.snippet }),
		field(others, func(r attempt) timestamp { return r.next }),
		field(others, func(r attempt) string { return string(r.headers) }),
	)
}

func (b *batch) writeWaits() error {
	w := b.waits
	if len(w) == 0 {
		return nil
	}
	return b.joins(insertWaiting.of(len(w)),
		field(w, func(r waits) int64 { return r.subscription }),
		field(w, func(r waits) int64 { return r.event }),
		field(w, func(r waits) timestamp { return r.due }),
		field(w, func(r waits) timestamp { return r.firstAt }),
		field(w, func(r waits) int32 { return int32(r.number) }),
		field(w, func(r waits) int32 { return int32(r.tries) }),
		field(w, func(r waits) int64 { return r.stood }),
		field(w, func(r waits) int64 { return r.epoch }),
		field(w, func(r waits) int64 { return r.replay }),
		field(w, func(r waits) int16 { return int16(r.rank) }),
		field(w, func(r waits) bool { return r.single }),
		field(w, func(r waits) bool { return r.spared }),
		field(w, func(r waits) bool { return r.notice }),
		field(w, func(r waits) int32 { return r.bytes }),
	)
}

// writeEnds writes the ends, and what became delivered for the replays that it is too
// late for.
func (b *batch) writeEnds() error {
	if e := b.ends; len(e) > 0 {
		err := b.joins(insertEnded.of(len(e)),
			field(e, func(r ended) int64 { return r.subscription }),
			field(e, func(r ended) int64 { return r.event }),
			field(e, func(r ended) string { return string(r.status) }),
			field(e, func(r ended) string { return string(r.class) }),
			b.now,
		)
		if err != nil {
			return err
		}
	}
	f := b.fresh
	if len(f) == 0 {
		return nil
	}
	return b.joins(insertLate.of(len(f)),
		field(f, func(k dispatch.DeliveryKey) int64 { return k.Event }),
		field(f, func(k dispatch.DeliveryKey) int64 { return k.Subscription }),
	)
}

// finish writes all that was put off, and then the heads.
func (b *batch) finish(served map[turnKey]bool) error {
	if err := b.advance(false); err != nil {
		return err
	}
	if err := b.keep(func(*head) bool { return true }); err != nil {
		return err
	}
	if err := b.flush(); err != nil {
		return err
	}
	b.tallied()
	b.countHours()
	if err := b.storeHeads(served); err != nil {
		return err
	}
	if b.madeDue {
		b.after(func(committed bool) {
			if committed {
				b.hintOthers()
			}
		})
	}
	return nil
}

const (
	deletePendingKeys = `DELETE FROM surehook_pending p USING unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
		WHERE p.subscription = u.subscription AND p.event = u.event RETURNING p.event, p.subscription`
	deleteWaitingKeys = `DELETE FROM surehook_waiting w USING unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
		WHERE w.subscription = u.subscription AND w.event = u.event RETURNING w.event, w.subscription, w.single,
			coalesce((SELECT a.class FROM surehook_attempts a WHERE a.event = w.event AND a.subscription = w.subscription ORDER BY a.number DESC LIMIT 1), ''), w.epoch`
)

// cancel ends deliveries that are not in flight. Their heads must be locked. It returns how
// many it found.
func (b *batch) cancel(keys []dispatch.DeliveryKey) (n int, err error) {
	return b.endAll(keys, func(l *live) sender.Status { return rules.Cancelled(l.single) })
}

// endAll ends deliveries that are not in flight, each as a rule says. Their heads must be
// locked. It returns how many it found.
func (b *batch) endAll(keys []dispatch.DeliveryKey, as func(l *live) sender.Status) (n int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	events, subscriptions := eventsOf(keys), subscriptionsOf(keys)
	out := map[dispatch.DeliveryKey]bool{}
	ended := func(l *live, class sender.Class) {
		n++
		out[l.key()] = true
		b.end(b.heads.by[l.subscription], l, as(l), class)
	}
	qs := []query{
		b.query(deletePendingKeys, events, subscriptions).rows(func(r rows) error {
			var l live
			if err := r.Scan(&l.event, &l.subscription); err != nil {
				return err
			}
			b.heads.by[l.subscription].pending--
			ended(&l, sender.ClassNone)
			return nil
		}),
		b.query(deleteWaitingKeys, events, subscriptions).rows(func(r rows) error {
			var l live
			var class sender.Class
			if err := r.Scan(&l.event, &l.subscription, &l.single, &class, &l.epoch); err != nil {
				return err
			}
			b.heads.by[l.subscription].waiting--
			ended(&l, class)
			return nil
		}),
	}
	if slices.ContainsFunc(subscriptions, func(no int64) bool { return b.heads.by[no].lined > 0 }) {
		qs = append(qs, b.query(endLines, subscriptions, events).rows(func(r rows) error {
			l, k := live{}, lineKey{}
			var class sender.Class
			var place int16
			var halted bool
			if err := r.Scan(&k.subscription, &k.object, &l.event, &place, &halted, &l.single, &class, &l.epoch); err != nil {
				return err
			}
			l.subscription = k.subscription
			h := b.heads.by[k.subscription]
			h.lined--
			if halted {
				b.lineMoved(k)
			}
			switch {
			case out[l.key()]:
				b.lineMoved(k)
			case place != placeDead:
				h.behind--
				ended(&l, class)
			}
			return nil
		}))
	}
	err = b.send(qs...)
	return n, err
}
