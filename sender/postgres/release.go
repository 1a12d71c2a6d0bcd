package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// selectLeasedUnder reads all leases: there are as many as attempts in flight.
const selectLeasedUnder = `SELECT coalesce(array_agg(subscription), '{}'), coalesce(array_agg(event), '{}'), coalesce(array_agg(token), '{}')
	FROM (SELECT subscription, event, token FROM surehook_leases WHERE token = ANY($1) ORDER BY subscription, event LIMIT $2) l`

const selectCreated = `SELECT u.event, e.created_at FROM unnest($1::bigint[]) AS u(event) JOIN surehook_feed f ON f.position = u.event JOIN surehook_events e ON e.no = f.event`

// LeasedUnder implements dispatch.Store.
func (c *core) LeasedUnder(ctx context.Context, tokens []int64, limit int) ([]dispatch.Release, error) {
	var subscriptions, events, under []int64
	err := c.dispatching().readOne(ctx, selectLeasedUnder, []any{tokens, limit}, &subscriptions, &events, &under)
	found := make([]dispatch.Release, len(under))
	for i, token := range under {
		found[i] = dispatch.Release{Key: dispatch.DeliveryKey{Event: events[i], Subscription: subscriptions[i]}, Token: token}
	}
	return found, fail("reading leases", err)
}

// Release implements dispatch.Store.
func (c *core) Release(ctx context.Context, rs []dispatch.Release) error {
	if len(rs) == 0 {
		return nil
	}
	return c.dispatching().batch(ctx, dispatch.Batch{}, func(b *batch) error { return fail("releasing", b.release(rs)) })
}

func (b *batch) release(rs []dispatch.Release) error {
	if err := b.lock(column(rs, func(r dispatch.Release) int64 { return r.Key.Subscription })); err != nil {
		return err
	}
	if err := b.standIn(column(rs, func(r dispatch.Release) int64 { return r.Key.Subscription })); err != nil {
		return err
	}
	leases, err := b.takeLeasesOf(rs)
	if err != nil || len(leases) == 0 {
		return err
	}
	created, err := b.createdOf(column(rs, func(r dispatch.Release) int64 { return r.Key.Event }))
	if err != nil {
		return err
	}
	if err := b.readLinesOf(slices.Collect(maps.Keys(leases))); err != nil {
		return err
	}
	var unsent, cancelled, superseded []dispatch.DeliveryKey
	for _, r := range rs {
		l := leases[r.Key]
		if l == nil || l.token != r.Token {
			continue
		}
		delete(leases, r.Key)
		if l.number == 1 {
			unsent = append(unsent, r.Key)
		}
		sub := b.subs[l.subscription]
		skipped, err := b.skipped(sub, l)
		if err != nil {
			return err
		}
		goesOn := false
		switch {
		case sub.gone() || l.redacted || skipped:
			cancelled = append(cancelled, r.Key)
		case b.inLines[r.Key].Overtaken(sub.Settings.Order, l.event):
			superseded = append(superseded, r.Key)
		default:
			goesOn = true
		}
		b.takeBack(b.heads.by[l.subscription], l, created[l.event], r.Due, goesOn)
	}
	if len(unsent) > 0 {
		if err := b.execs(removeKeptOf, eventsOf(unsent), subscriptionsOf(unsent)); err != nil {
			return err
		}
	}
	return b.endReleased(cancelled, superseded)
}

// takeLeasesOf takes the leases that are released and are still held under their tokens.
func (b *batch) takeLeasesOf(rs []dispatch.Release) (map[dispatch.DeliveryKey]*live, error) {
	leases := make(map[dispatch.DeliveryKey]*live, len(rs))
	err := b.each(func(r rows) (bool, error) {
		var l live
		err := r.Scan(l.columns()...)
		leases[l.key()] = &l
		return true, err
	}, takeLeases.of(len(rs)),
		field(rs, func(r dispatch.Release) int64 { return r.Key.Subscription }),
		field(rs, func(r dispatch.Release) int64 { return r.Key.Event }),
		field(rs, func(r dispatch.Release) int64 { return r.Token }))
	return leases, err
}

// createdOf reads when events were made.
func (b *batch) createdOf(events []int64) (map[int64]timestamp, error) {
	created := map[int64]timestamp{}
	err := b.each(func(r rows) (bool, error) {
		var event int64
		var at timestamp
		err := r.Scan(&event, &at)
		created[event] = at
		return true, err
	}, selectCreated, events)
	return created, err
}

// endReleased ends released deliveries that do not go on.
func (b *batch) endReleased(cancelled, superseded []dispatch.DeliveryKey) error {
	if len(cancelled)+len(superseded) == 0 {
		return nil
	}
	if err := b.flush(); err != nil {
		return err
	}
	if _, err := b.cancel(cancelled); err != nil {
		return err
	}
	_, err := b.endAll(superseded, b.superseded)
	return err
}

// takeBack undoes a claim whose lease was taken away. A delivery that does not go on is ended
// afterwards.
func (b *batch) takeBack(h *head, l *live, created timestamp, due time.Time, goesOn bool) {
	h.leased--
	amongResumed := due.IsZero() && l.number == 1 && h.resumedTo >= 0 && !b.subs[l.subscription].skips(h.epoch-1, l.event)
	back, due := rules.TakeBack(l.forDecision(), l.claimedAt.time(), created.time(), l.epoch < h.epoch, due, b.now.time())
	l.take(&back)
	h.lower(b.now) // its lease may have kept others back: see Settings.MaxInFlight
	switch {
	case goesOn && amongResumed && !b.inLines[l.key()].Yields(l.event):
		b.waitResumed(h, l)
	case goesOn:
		b.goOn(h, l, timestampOf(due))
	default:
		b.wait(h, l, timestampOf(due), rankFresh, 0)
	}
}
