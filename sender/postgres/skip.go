package postgres

import (
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// A resume and an expansion do not wait for each other. The resume notes which events it saw
// in the outbox, and skips: they were committed before it. An expansion that sees the resume
// cancels their deliveries when it makes them. One that does not see it leaves them live. It
// keeps the subscription's head locked until its end, so whoever sees the resume first, with
// the head locked, finds them all. There is nothing else behind the last position that the
// resume saw but what was expanded meanwhile.

const (
	// selectUnexpandedSkips cuts the ranges to the numbers at hand, once for each row. A million
	// waiting events with gaps between them can make ranges of many kilobytes, and to ask these
	// for each delivery would read them each time.
	selectUnexpandedSkips = `WITH u AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u(event, subscription, no)),
		l AS MATERIALIZED (SELECT k.subscription, x.unexpanded * (SELECT int8multirange(int8range(min(no), max(no), '[]')) FROM u) AS unexpanded
			FROM (SELECT DISTINCT subscription FROM u) k CROSS JOIN LATERAL (SELECT unexpanded FROM surehook_left WHERE subscription = k.subscription OFFSET 0) x)
		SELECT event, subscription FROM u WHERE EXISTS (SELECT 1 FROM l WHERE l.subscription = u.subscription AND u.no <@ l.unexpanded)`

	// selectUnseen leaves out what is in flight: see batch.skipped.
	selectUnseen = `SELECT q.event, u.subscription FROM unnest($1::bigint[], $2::bigint[]) AS u(subscription, epoch)
		CROSS JOIN LATERAL (SELECT epoch, seen, unexpanded FROM surehook_left WHERE subscription = u.subscription AND epoch > u.epoch AND NOT isempty(unexpanded) OFFSET 0) l
		CROSS JOIN LATERAL (
			SELECT event FROM surehook_pending WHERE subscription = u.subscription AND event > l.seen
			UNION SELECT event FROM surehook_waiting WHERE subscription = u.subscription AND event > l.seen AND epoch < l.epoch
			UNION SELECT event FROM surehook_lines x WHERE subscription = u.subscription AND event > l.seen AND epoch < l.epoch AND place < 3 AND NOT ` + isOut + `) q
		CROSS JOIN LATERAL (SELECT event FROM surehook_feed WHERE position = q.event OFFSET 0) f WHERE f.event <@ l.unexpanded LIMIT $3`
	unseenAtOnce = 1000

	isUnexpandedSkip = `SELECT EXISTS (SELECT 1 FROM surehook_left l WHERE l.subscription = $1 AND l.epoch > $2 AND l.seen < $3
		AND (SELECT event FROM surehook_feed WHERE position = $3) <@ l.unexpanded)`
)

// skip ends new deliveries of events that resumes have skipped. The heads are locked.
func (e *expansion) skip() error {
	if e == nil {
		return nil
	}
	var keys []dispatch.DeliveryKey
	var numbers []int64
	for _, m := range e.made {
		if e.subs[m.Subscription].skipsUnexpanded(0) {
			keys, numbers = append(keys, m.DeliveryKey), append(numbers, m.of.event)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	keys, err := e.keys(selectUnexpandedSkips, eventsOf(keys), subscriptionsOf(keys), numbers)
	if err != nil {
		return err
	}
	skipped := make(map[dispatch.DeliveryKey]bool, len(keys))
	for _, k := range keys {
		skipped[k] = true
		e.ends = append(e.ends, ended{k.Event, k.Subscription, sender.StatusCancelled, sender.ClassNone})
	}
	e.made = slices.DeleteFunc(e.made, func(m made) bool { return skipped[m.DeliveryKey] })
	return nil
}

// cancelUnseen ends what resumes have skipped and expansions have made that had not seen them.
// The heads are locked, and are as they were before they were brought up to the resumes.
func (b *batch) cancelUnseen(locked []int64) error {
	var of, epochs []int64
	for _, no := range locked {
		if h := b.heads.by[no]; h.epoch < b.subs[no].epoch && h.live() > h.leased && b.subs[no].skipsUnexpanded(h.epoch) {
			of, epochs = append(of, no), append(epochs, h.epoch)
		}
	}
	for len(of) > 0 {
		keys, err := b.keys(selectUnseen, of, epochs, unseenAtOnce)
		if err != nil {
			return err
		}
		if _, err := b.cancel(keys); err != nil {
			return err
		}
		if err := b.flush(); err != nil || len(keys) < unseenAtOnce {
			return err
		}
	}
	return nil
}

// skipped tells whether a resume skipped a delivery that was in flight.
func (b *batch) skipped(sub *subscription, l *live) (skipped bool, err error) {
	if sub.skips(l.epoch, l.event) || !sub.skipsUnexpanded(l.epoch) {
		return sub.skips(l.epoch, l.event), nil
	}
	err = b.row(isUnexpandedSkip, l.subscription, l.epoch, l.event).Scan(&skipped)
	return skipped, err
}
