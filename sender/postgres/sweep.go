package postgres

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/lru"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// selectSweepable finds what there is to sweep, on one snapshot:
	//   - subscriptions that are closing or deleted, and have something that can be ended,
	//     or nothing at all. A closing one gets all events that were committed before its
	//     mark, so none of these may be in the outbox any more;
	//   - subscriptions with a resume that skipped something, of which some is live and not
	//     in flight;
	//   - epochs of such resumes for which the outbox has nothing that they skip any more;
	//   - whether there are subscribers to be forgotten;
	//   - whether there are dead letters that hold back others;
	//   - the firsts of lines that halt;
	//   - the first seq of the outbox, if there are marks below it; else NULL.
	//
	// An expansion deletes from the outbox and adds to a head in one transaction. Heads are
	// locked and read again after this statement, so nothing is missed in between.
	selectSweepable = `WITH low AS MATERIALIZED (SELECT coalesce(min(seq), 9223372036854775807) AS seq FROM surehook_outbox),
		left_ AS MATERIALIZED (
			SELECT l.subscription, l.epoch, ` + isPast + ` AS past FROM surehook_left l
			WHERE EXISTS (SELECT 1 FROM surehook_pending x WHERE x.subscription = l.subscription AND x.event <= l.event)
				OR EXISTS (SELECT 1 FROM surehook_waiting x WHERE x.subscription = l.subscription AND x.event <= l.event AND x.epoch < l.epoch)
				OR EXISTS (SELECT 1 FROM surehook_lines x WHERE x.subscription = l.subscription AND x.event <= l.event AND x.epoch < l.epoch AND x.place < 3 AND NOT ` + isOut + `)
				OR EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.event <= l.event AND x.epoch < l.epoch AND x.until <= {now})
				OR ` + isPast + ` AND NOT EXISTS (SELECT 1 FROM surehook_leases x WHERE x.subscription = l.subscription AND x.epoch < l.epoch)
			ORDER BY l.subscription, l.epoch LIMIT 100),
		halted AS MATERIALIZED (` + selectHalted + `)
		SELECT {now}, ARRAY(SELECT s.no FROM surehook_subscriptions s CROSS JOIN LATERAL (
				SELECT pending + waiting + behind AS idle, leased, leases_end FROM surehook_heads WHERE subscription = s.no OFFSET 0) h
			WHERE s.status IN ('closing', 'deleted') AND CASE s.status
				WHEN 'deleted' THEN h.idle > 0 OR h.leased = 0 OR coalesce(h.leases_end, '-infinity') <= {now}
				ELSE h.idle + h.leased = 0 AND s.until_seq < (SELECT seq FROM low) END
			ORDER BY s.no LIMIT 100),
		ARRAY(SELECT subscription FROM left_), ARRAY(SELECT subscription FROM left_ WHERE past), ARRAY(SELECT epoch FROM left_ WHERE past),
		EXISTS (SELECT 1 FROM surehook_subscribers o WHERE ` + isForgotten + `),
		EXISTS (SELECT 1 FROM surehook_lines WHERE place = 3),
		ARRAY(SELECT subscription FROM halted), ARRAY(SELECT event FROM halted),
		(SELECT (SELECT seq FROM low WHERE seq > m.since_seq) FROM (
			SELECT since_seq FROM surehook_patterns WHERE since_seq IS NOT NULL ORDER BY since_seq LIMIT 1) m)`

	// isPast is the condition that the outbox has nothing any more that a resume l saw there.
	isPast = `coalesce(upper(l.unexpanded) <= (SELECT seq FROM low), true)`

	// If a dispatcher has locked a head, it is working for the subscription, which is swept
	// later.
	lockFreeHeads = `SELECT ` + headColumns + ` FROM surehook_heads WHERE subscription = ANY($1) ORDER BY subscription FOR UPDATE SKIP LOCKED`

	selectGonePending = `SELECT q.event, u.subscription FROM unnest($1::bigint[], $2::bigint[], $4::bigint[]) AS u(subscription, event, swept) CROSS JOIN LATERAL (
		SELECT event FROM surehook_pending WHERE subscription = u.subscription AND event > u.swept AND event <= u.event ORDER BY event LIMIT $3) q LIMIT $3`
	selectGoneWaiting = `SELECT q.event, u.subscription FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $5::bigint[]) AS u(subscription, epoch, event, swept) CROSS JOIN LATERAL (
		SELECT event FROM surehook_waiting WHERE subscription = u.subscription AND event > u.swept AND event <= u.event AND epoch < u.epoch ORDER BY event LIMIT $4) q LIMIT $4`
	selectGoneBehind = `SELECT q.event, u.subscription FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $5::bigint[]) AS u(subscription, epoch, event, swept) CROSS JOIN LATERAL (
		SELECT event FROM surehook_lines x WHERE subscription = u.subscription AND event > u.swept AND event <= u.event AND epoch < u.epoch AND place < 3 AND NOT ` + isOut + ` ORDER BY event LIMIT $4) q LIMIT $4`
	deleteGoneLeases = `DELETE FROM surehook_leases l USING (
			SELECT u.subscription, q.event FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u(subscription, epoch, event) CROSS JOIN LATERAL (
				SELECT event FROM surehook_leases WHERE subscription = u.subscription AND event <= u.event AND epoch < u.epoch AND until <= $4
				ORDER BY event LIMIT $5) q LIMIT $5) g
		WHERE l.subscription = g.subscription AND l.event = g.event RETURNING ` + leaseColumns
	selectFirstLeaseEnd = `SELECT subscription, min(until) FROM surehook_leases WHERE subscription = ANY($1) GROUP BY subscription`

	// markSwept also erases the settings, with what is sealed in them: nothing is posted to a
	// swept subscription any more, since nothing is redelivered or replayed to a deleted one.
	markSwept = `UPDATE surehook_subscriptions SET status = 'swept', swept_at = {now}, settings = '{}', version = version + 1
		WHERE no = ANY(ARRAY(SELECT no FROM surehook_subscriptions WHERE no = ANY($1) AND status IN ('closing', 'deleted') ORDER BY no FOR UPDATE SKIP LOCKED))
		RETURNING no`
	deletePatterns = `DELETE FROM surehook_patterns WHERE subscription = ANY($1)`
)

// sweepable is the result of selectSweepable.
type sweepable struct {
	now        timestamp
	ending     []int64 // subscriptions that are closing or deleted
	skipped    []int64 // subscriptions of which resumes skipped something
	past       []int64 // those of them with a resume that may be over
	epochs     []int64 // the epochs of these resumes
	forgotten  bool    // there are subscribers to be forgotten
	holding    bool    // there are dead letters that hold back others
	halted     []int64 // subscriptions with lines that halt
	haltedAt   []int64 // the firsts of these lines
	clearBelow *int64  // snapshot marks below this seq exclude nothing any more; nil: there are none
}

// Sweep implements dispatch.Store. It leaves to another time what somebody else has
// locked. It also writes the counts since the last time: if it cannot, it sweeps all the same.
func (c *core) Sweep(ctx context.Context, p dispatch.SweepParams) (out dispatch.Swept, err error) {
	var f sweepable
	err = c.dispatching().readOne(ctx, selectSweepable, nil, &f.now, &f.ending, &f.skipped, &f.past, &f.epochs, &f.forgotten, &f.holding, &f.halted, &f.haltedAt, &f.clearBelow)
	if err != nil {
		return out, fail("looking for what is to be swept", err)
	}
	counted := errors.Join(c.storeRollups(ctx, f.now), c.storeHours(ctx, f.now.time(), p.Limit == 0))
	if p.Limit == 0 {
		return out, counted
	}
	counted = errors.Join(counted, c.mergeHours(ctx, f.now.time()))
	out, err = c.sweep(ctx, &f, p)
	return out, errors.Join(counted, err)
}

func (c *core) sweep(ctx context.Context, f *sweepable, p dispatch.SweepParams) (out dispatch.Swept, err error) {
	var freeable []dispatch.DeliveryKey
	if f.holding {
		if freeable, err = c.freeable(ctx); err != nil {
			return out, err
		}
	}
	if len(f.ending)+len(f.skipped)+len(freeable)+len(f.halted) == 0 && !f.forgotten && f.clearBelow == nil {
		return out, nil
	}
	err = c.dispatching().batch(ctx, dispatch.Batch{Announce: p.Announce}, func(b *batch) (err error) {
		b.superseding = rules.SupersedingInSweep(p.Limit)
		freed := 0
		if err = b.sweep(f, p.Cancels(len(freeable)+len(f.halted) > 0)); err == nil {
			freed, err = b.freeAll(freeable, p.NotBefore)
		}
		if err == nil {
			err = b.goOnWithHalted(f.haltedFirsts())
		}
		if err == nil {
			err = b.advance(false)
		}
		if err == nil {
			err = b.endSwept(f.ending)
		}
		if err == nil {
			err = b.execs(forgetSubscribers)
		}
		out = dispatch.Swept{Ended: b.superseding.Ended(), Freed: freed, Notices: b.out.Notices}
		return fail("sweeping", err)
	})
	if err != nil {
		return dispatch.Swept{}, err
	}
	return out, nil
}

func (f *sweepable) haltedFirsts() (all []dispatch.DeliveryKey) {
	for i, no := range f.halted {
		all = append(all, dispatch.DeliveryKey{Subscription: no, Event: f.haltedAt[i]})
	}
	return all
}

func (b *batch) sweep(f *sweepable, limit int) error {
	swept, err := b.cancelGone(slices.Concat(f.ending, f.skipped), limit)
	if err != nil {
		return err
	}
	b.superseding.Add(swept)
	if err := b.clearSkipped(f); err != nil {
		return err
	}
	if f.clearBelow != nil {
		return b.execs(clearSnapshotMarks, *f.clearBelow)
	}
	return nil
}

// cancelGone ends deliveries that read as cancelled, except those in flight. It skips heads
// that somebody has locked.
func (b *batch) cancelGone(subscriptions []int64, limit int) (swept int, err error) {
	var locked []int64
	err = b.each(func(r rows) (bool, error) {
		h, err := scanHead(r)
		if err == nil {
			b.heads.put(h)
			locked = append(locked, h.subscription)
		}
		return true, err
	}, lockFreeHeads, distinct(subscriptions))
	if err != nil {
		return 0, err
	}
	if err := b.readSubscriptions(locked); err != nil {
		return 0, err
	}
	var g gone
	for _, no := range locked {
		g.add(b.subs[no], b.heads.by[no])
	}
	// Those that are behind come first, so that they need not come out before they end.
	keys, err := b.keys(selectGoneBehind, g.behind.of, g.behind.epochs, g.behind.events, limit, b.swept.behind.of(g.behind.of, b.subs))
	if err != nil {
		return 0, err
	}
	b.swept.behind.found(b, g.behind.of, keys)
	if remaining := limit - len(keys); remaining > 0 {
		pending, err := b.keys(selectGonePending, g.pending.of, g.pending.events, remaining, b.swept.pending.of(g.pending.of, b.subs))
		if err != nil {
			return 0, err
		}
		b.swept.pending.found(b, g.pending.of, pending)
		keys = append(keys, pending...)
	}
	if remaining := limit - len(keys); remaining > 0 {
		waiting, err := b.keys(selectGoneWaiting, g.waiting.of, g.waiting.epochs, g.waiting.events, remaining, b.swept.waiting.of(g.waiting.of, b.subs))
		if err != nil {
			return 0, err
		}
		b.swept.waiting.found(b, g.waiting.of, waiting)
		keys = append(keys, waiting...)
	}
	if swept, err = b.cancel(keys); err != nil {
		return 0, err
	}
	lost, err := b.endLost(&g, limit-swept)
	return swept + lost, err
}

// swept remembers how far deleted subscriptions were swept, from the first delivery on. So
// a batch does not pass over the rows of earlier batches, which are dead and may not be
// vacuumed yet. It is a hint, and is forgotten when nothing is found behind it.
type swept struct {
	sync.Mutex
	to *lru.Map[int64, int64]
}

const sweptLimit = 1000

// sweeps are the hints for each table.
type sweeps struct{ pending, waiting, behind swept }

func newSweeps() sweeps {
	none := func() swept { return swept{to: lru.New[int64, int64](sweptLimit)} }
	return sweeps{none(), none(), none()}
}

func (s *swept) of(subscriptions []int64, subs map[int64]*subscription) []int64 {
	s.Lock()
	defer s.Unlock()
	return column(subscriptions, func(no int64) (to int64) {
		if subs[no].gone() {
			to, _ = s.to.Get(no)
		}
		return to
	})
}

// found notes, once the batch is committed, up to where some subscriptions are swept.
func (s *swept) found(b *batch, looked []int64, keys []dispatch.DeliveryKey) {
	last := map[int64]int64{}
	for _, k := range keys {
		last[k.Subscription] = max(last[k.Subscription], k.Event)
	}
	b.after(func(committed bool) {
		if !committed {
			return
		}
		s.Lock()
		defer s.Unlock()
		for _, no := range looked {
			if to := last[no]; to > 0 {
				s.to.Put(no, to)
			} else if len(keys) == 0 {
				s.to.Delete(no)
			}
		}
	})
}

// gone collects the deliveries of subscriptions that are cancelled.
type gone struct{ pending, waiting, behind, leased bounds }

// bounds are columns: for each subscription, deliveries of events up to one, from before an
// epoch.
type bounds struct{ of, epochs, events []int64 }

func (s *bounds) add(h *head, epoch, event int64) {
	s.of, s.epochs, s.events = append(s.of, h.subscription), append(s.epochs, epoch), append(s.events, event)
}

func (g *gone) add(sub *subscription, h *head) {
	before := sub.skipped
	if sub.gone() {
		before = []skipped{{epoch: math.MaxInt64, event: math.MaxInt64}}
	}
	for _, l := range before {
		if h.pending > 0 { // those up to the event were there before the resume
			g.pending.add(h, l.epoch, l.event)
		}
		if h.waiting > 0 {
			g.waiting.add(h, l.epoch, l.event)
		}
		if h.behind > 0 {
			g.behind.add(h, l.epoch, l.event)
		}
		if h.leased > 0 {
			g.leased.add(h, l.epoch, l.event)
		}
	}
}

// endLost ends cancelled deliveries whose last attempts were lost.
func (b *batch) endLost(g *gone, limit int) (n int, err error) {
	if len(g.leased.of) == 0 {
		return 0, nil
	}
	var lost []*live
	err = b.each(func(r rows) (bool, error) {
		l := &live{}
		lost = append(lost, l)
		return true, r.Scan(l.columns()...)
	}, deleteGoneLeases, g.leased.of, g.leased.epochs, g.leased.events, b.now, limit)
	if err != nil {
		return 0, err
	}
	if err := b.readLinesOf(column(lost, func(l *live) dispatch.DeliveryKey { return l.key() })); err != nil {
		return 0, err
	}
	for _, l := range lost {
		h := b.heads.by[l.subscription]
		h.leased--
		if _, err := b.settle(h, b.subs[l.subscription], l, new(rules.Lost(l.forDecision(), l.token, l.claimedAt.time(), time.Time{}, 0))); err != nil {
			return 0, err
		}
	}
	for _, no := range g.leased.of {
		b.heads.by[no].leasesEnd = none
	}
	return len(lost), b.each(func(r rows) (bool, error) {
		var no int64
		var end timestamp
		err := r.Scan(&no, &end)
		b.heads.by[no].leasesEnd = end
		return true, err
	}, selectFirstLeaseEnd, g.leased.of)
}

// endSwept ends subscriptions that have no live deliveries. An expander at work may not see
// a deletion, and may add to a head that has nothing: then they are ended later. Nobody
// expands from here to the commit, so all that takes long is done before.
func (b *batch) endSwept(ending []int64) error {
	var over []int64
	for _, no := range ending {
		if h := b.heads.by[no]; h != nil && h.live() == 0 {
			over = append(over, no)
		}
	}
	if len(over) == 0 {
		return nil
	}
	if err := b.flush(); err != nil {
		return err
	}
	alone := false
	err := b.each(func(rows) (bool, error) {
		alone = true
		return false, nil
	}, expanding)
	if err != nil || !alone {
		return err
	}
	swept, err := b.numbers(markSwept, over)
	if err != nil {
		return err
	}
	for _, no := range swept {
		b.heads.by[no].open, b.subs[no].status = false, statusSwept
		b.heads.by[no].lined = 0 // nothing but dead letters
	}
	if err := b.execs(deleteLines, swept); err != nil {
		return err
	}
	return b.execs(deletePatterns, swept)
}

const (
	// A deleted subscriber whose subscriptions are all swept has nothing that could be
	// signed. It can get no new subscription, so this stays true.
	isForgotten = `o.deleted = 1 AND (SELECT s.no FROM surehook_subscriptions s WHERE s.subscriber = o.no AND s.status <> 'swept' LIMIT 1) IS NULL`
	// forgetSubscribers destroys the secrets of such subscribers, except those that callers
	// have locked.
	forgetSubscribers = `WITH f AS MATERIALIZED (SELECT o.no FROM surehook_subscribers o WHERE ` + isForgotten + ` ORDER BY o.no LIMIT 100 FOR UPDATE SKIP LOCKED),
		u AS (UPDATE surehook_subscribers o SET deleted = 2, keyring_version = keyring_version + 1 FROM f WHERE o.no = f.no)
		DELETE FROM surehook_secrets k USING f WHERE k.subscriber = f.no`
)
