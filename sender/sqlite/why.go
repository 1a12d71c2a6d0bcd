package sqlite

import (
	"context"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	selectFacts = `SELECT s.status, s.disabled_at, s.disabled_reason, s.settings,
			h.lane, h.streak, h.failing_since, h.last_success, h.last_failure, h.leased, h.rate_at, h.epoch, h.left_to, coalesce(h.resumed_to, -1)
		FROM surehook_subscriptions s JOIN surehook_heads h ON h.subscription = s.no WHERE s.no = ?`
	selectLease = `SELECT until FROM surehook_leases WHERE subscription = ? AND event = ?`

	// These count the deliveries that go before one, up to a bound (?3).
	pendingBefore = `SELECT count(*) FROM (SELECT 1 FROM surehook_pending WHERE subscription = ?1 AND event > ?4 AND event < ?2 LIMIT ?3)`
	pendingDue    = `SELECT count(CASE WHEN due < ?2 THEN 1 END) FROM (SELECT due FROM surehook_pending WHERE subscription = ?1 AND event > ?4 ORDER BY event LIMIT ?3)`
	waitingDue    = `SELECT count(*) FROM (SELECT 1 FROM surehook_waiting WHERE subscription = ?1 AND epoch = ?4 AND rank = ?5 AND due < ?2 LIMIT ?3)`
	resumedBefore = `SELECT count(*) FROM (SELECT 1 FROM surehook_waiting WHERE subscription = ?1 AND epoch < ?4 AND event > ?5 AND event < ?2 LIMIT ?3)`
	waitingOne    = `SELECT due, rank FROM surehook_waiting WHERE subscription = ? AND event = ?`
	pendingOne    = `SELECT due, 0 FROM surehook_pending WHERE subscription = ? AND event = ?`
)

// Facts implements history.Store.
func (s *Store) Facts(ctx context.Context, id string) (f history.Facts, err error) {
	err = s.read(ctx, func(w *work) error {
		k, err := w.keyOf(id)
		if err != nil {
			return err
		}
		now := s.now()
		d, err := w.delivery(k, now)
		if err != nil {
			return err
		}
		f.Now, f.Delivery = timeOf(now), d.Delivery
		if f.Delivery.Attempts, err = w.readAttempts(selectTellingAttempts, k.Event, k.Subscription); err != nil {
			return err
		}
		return w.facts(&f, k, d, now)
	})
	return f, aboutDelivery(id, err)
}

func (w *work) facts(f *history.Facts, k dispatch.DeliveryKey, d *delivery, now int64) error {
	var held, failing, success, failure, rateAt int64
	var settings []byte
	h := head{subscription: k.Subscription}
	err := w.row(selectFacts, k.Subscription).Scan(&f.Status, &held, &f.Reason, &settings, &f.Health.Lane, &f.Health.Streak, &failing,
		&success, &failure, &f.InFlight, &rateAt, &h.epoch, &h.skippedTo, &h.resumedTo)
	if err != nil {
		return err
	}
	f.Settings = sender.ReadSettings(settings)
	f.HeldSince = timeOf(held)
	f.Health.FailingSince, f.Health.LastSuccess, f.Health.LastFailure = timeOf(failing), timeOf(success), timeOf(failure)
	if d.deleted {
		f.Status = ""
	}
	if rate := f.Settings.Rate; rate > 0 {
		if granted, _, again := rules.TakeRate(rate, timeOf(rateAt), timeOf(now), 1); granted == 0 {
			f.RateAgain = again
		}
	}
	if d.Status == sender.StatusDeadLettered {
		return w.row(holdsBack, k.Subscription, k.Event).Scan(&f.HoldsBack)
	}
	if d.live == nil {
		return nil
	}
	if d.live.behind {
		if err := w.row(waitedFor, k.Subscription, k.Event).Scan(&f.Behind, &f.BehindDead); err != nil {
			return err
		}
		f.Behind = deliveryID(f.Behind, k.Subscription)
	}
	f.Tries, f.Single, f.Spared = int(d.live.tries), d.live.single, d.live.spared
	if d.live.epoch < h.epoch && !d.live.pending { // resumed since
		f.Tries, f.Spared = min(f.Tries, 1), false
		if d.live.claimedAt == 0 {
			f.Tries = 0
		}
	}
	if d.live.claimedAt != 0 {
		var until int64
		if err := w.row(selectLease, k.Subscription, k.Event).Scan(&until); err != nil {
			return err
		}
		f.Leased, f.Lease = timeOf(d.live.claimedAt), timeOf(until)
		return nil
	}
	if f.Delivery.NextAttemptAt.IsZero() || f.Delivery.NextAttemptAt.After(f.Now) {
		return nil
	}
	f.Ahead, err = w.ahead(&h, k, d.live, now)
	return err
}

// ahead counts the deliveries that go before one that is due, in the order of batch.due.
func (w *work) ahead(h *head, k dispatch.DeliveryKey, l *live, now int64) (n int, err error) {
	const most = history.MaxAhead + 1
	count := func(query string, args ...any) {
		if err == nil {
			var more int
			err = w.row(query, args...).Scan(&more)
			n = min(n+more, most)
		}
	}
	if !l.pending && l.epoch < h.epoch {
		count(resumedBefore, h.subscription, k.Event, most, h.epoch, h.resumedTo)
		return n, err
	}
	if h.resumedTo >= 0 {
		count(resumedBefore, h.subscription, int64(everything), most, h.epoch, h.resumedTo)
	}
	var due, rank int64
	one := waitingOne
	if l.pending {
		one = pendingOne
	}
	if err := w.row(one, k.Subscription, k.Event).Scan(&due, &rank); err != nil {
		return 0, err
	}
	switch {
	case rank == rankReplay:
		count(pendingBefore, h.subscription, int64(everything), most, h.skippedTo)
		count(waitingDue, h.subscription, now, most, h.epoch, rankFresh)
		count(waitingDue, h.subscription, due, most, h.epoch, rankReplay)
	case l.pending:
		count(pendingBefore, h.subscription, k.Event, most, h.skippedTo)
		count(waitingDue, h.subscription, due, most, h.epoch, rankFresh)
	default:
		count(pendingDue, h.subscription, due, most, h.skippedTo)
		count(waitingDue, h.subscription, due, most, h.epoch, rankFresh)
	}
	return n, err
}
