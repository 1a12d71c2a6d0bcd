package postgres

import (
	"context"
	"math"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	selectFacts = `SELECT s.status, s.held_at, s.disabled_reason, s.settings, h.lane,
			CASE WHEN h.epoch < s.recovered THEN 0 ELSE h.streak END, CASE WHEN h.epoch < s.recovered THEN 0 ELSE h.warned END,
			CASE WHEN h.epoch >= s.recovered THEN h.failing_since END, h.last_success, h.last_failure, h.leased, h.rate_at,
			s.epoch, greatest(s.left_to, h.claimed_to), CASE WHEN h.epoch < s.epoch THEN '-infinity' ELSE h.waiting_from END,
			CASE WHEN h.epoch < s.epoch AND h.waiting > 0 THEN s.resumed_from ELSE coalesce(h.resumed_to, -1) END
		FROM surehook_subscriptions s JOIN surehook_heads h ON h.subscription = s.no WHERE s.no = $1`

	// Deliveries that go before another one, counted up to a bound ($3).
	pendingBefore = `SELECT count(*) FROM (SELECT 1 FROM surehook_pending WHERE subscription = $1 AND event > $4 AND event < $2 LIMIT $3) x`
	pendingDue    = `SELECT count(*) FILTER (WHERE due < $2) FROM (SELECT due FROM surehook_pending WHERE subscription = $1 AND event > $4 ORDER BY event LIMIT $3) x`
	waitingDue    = `SELECT count(*) FROM (SELECT 1 FROM surehook_waiting
		WHERE subscription = $1 AND epoch = $4 AND rank = $5 AND due >= $6 AND due < $2 LIMIT $3) x`
	resumedBefore = `SELECT count(*) FROM (SELECT 1 FROM surehook_waiting WHERE subscription = $1 AND epoch < $4 AND event > $5 AND event < $2 LIMIT $3) x`
)

// Facts implements history.Store.
func (c *core) Facts(ctx context.Context, id string) (f history.Facts, err error) {
	err = c.read(ctx, func(w *work) error {
		k, err := w.keyOf(id)
		if err != nil {
			return err
		}
		d, err := w.delivery(k)
		if err != nil {
			return err
		}
		f.Now, f.Delivery = w.now.time(), d.Delivery
		if f.Delivery.Attempts, err = w.attempts(w.query(selectTellingAttempts, k.Event, k.Subscription)); err != nil {
			return err
		}
		return w.facts(&f, k, d)
	})
	return f, aboutDelivery(id, err)
}

// claimOrder is what decides in which order the deliveries of a subscription are claimed.
type claimOrder struct {
	subscription int64
	epoch        int64
	after        int64     // pending deliveries that may be claimed have a higher position
	waitingFrom  timestamp // no waiting delivery of the epoch is due before
	resumedTo    int64     // -1: nothing waits since an earlier epoch
}

func (w *work) facts(f *history.Facts, k dispatch.DeliveryKey, d *delivery) error {
	var heldAt, failing, success, failure, rateAt timestamp
	var settings string
	q := claimOrder{subscription: k.Subscription}
	err := w.row(selectFacts, k.Subscription).Scan(&f.Status, &heldAt, &f.Reason, &settings, &f.Health.Lane, &f.Health.Streak, &f.Health.Warned,
		&failing, &success, &failure, &f.InFlight, &rateAt, &q.epoch, &q.after, &q.waitingFrom, &q.resumedTo)
	if err != nil {
		return err
	}
	f.Settings = sender.ReadSettings([]byte(settings))
	f.HeldSince = heldAt.time()
	f.Health.FailingSince, f.Health.LastSuccess, f.Health.LastFailure = failing.time(), success.time(), failure.time()
	if d.deleted {
		f.Status = ""
	}
	if rate := f.Settings.Rate; rate > 0 {
		if granted, _, again := rules.TakeRate(rate, rateAt.time(), f.Now, 1); granted == 0 {
			f.RateAgain = again
		}
	}
	if d.Status == sender.StatusDeadLettered {
		return w.row(holdsBack, k.Subscription, k.Event).Scan(&f.HoldsBack)
	}
	if d.live == nil {
		return nil
	}
	if d.behind {
		if err := w.row(waitedFor, k.Subscription, k.Event).Scan(&f.Behind, &f.BehindDead); err != nil {
			return err
		}
		f.Behind = deliveryID(f.Behind, k.Subscription)
	}
	f.Tries, f.Single, f.Spared = d.live.tries, d.live.single, d.live.spared
	if d.live.epoch < q.epoch && !d.live.pending { // resumed since
		f.Tries, f.Spared = min(f.Tries, 1), false
		if d.live.claimedAt == none {
			f.Tries = 0
		}
	}
	if d.live.claimedAt != none {
		f.Leased, f.Lease = d.live.claimedAt.time(), d.due.time()
		return nil
	}
	if f.Delivery.NextAttemptAt.IsZero() || f.Delivery.NextAttemptAt.After(f.Now) {
		return nil
	}
	f.Ahead, err = w.ahead(&q, d)
	return err
}

// ahead counts the deliveries that go before a due one, in the order of a claim.
func (w *work) ahead(q *claimOrder, d *delivery) (n int, err error) {
	const (
		most       = history.MaxAhead + 1
		everything = int64(math.MaxInt64)
	)
	var qs []query
	count := func(text string, before any, args ...any) {
		qs = append(qs, w.query(text, append([]any{q.subscription, before, most}, args...)...).rows(func(r rows) error {
			var more int
			err := r.Scan(&more)
			n = min(n+more, most)
			return err
		}))
	}
	resumed := !d.live.pending && d.live.epoch < q.epoch
	switch {
	case resumed:
		count(resumedBefore, d.live.event, q.epoch, q.resumedTo)
	case q.resumedTo >= 0:
		count(resumedBefore, everything, q.epoch, q.resumedTo)
	}
	switch {
	case resumed:
	case d.rank == rankReplay:
		count(pendingBefore, everything, q.after)
		count(waitingDue, w.now, q.epoch, rankFresh, q.waitingFrom)
		count(waitingDue, d.due, q.epoch, rankReplay, q.waitingFrom)
	case d.live.pending:
		count(pendingBefore, d.live.event, q.after)
		count(waitingDue, d.due, q.epoch, rankFresh, q.waitingFrom)
	default:
		count(pendingDue, d.due, q.after)
		count(waitingDue, d.due, q.epoch, rankFresh, q.waitingFrom)
	}
	err = w.send(qs...)
	return n, err
}
