package postgres

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// isHeldBack is the condition that a row x is behind a dead letter u, or a dead letter
	// there, in u's line.
	isHeldBack = `x.subscription = u.subscription AND (x.object, x.event) > (u.object, u.event) AND x.object <= u.object AND (x.place = 3 OR ` + isTaken + `)`

	// selectExpiring reads which dead letters that are the first of their lines have something
	// behind them that is too old.
	selectExpiring = `SELECT u.subscription, u.event FROM (
			SELECT l.subscription, l.event, l.object FROM unnest($1::bigint[], $2::bigint[]) AS k(subscription, event)
			CROSS JOIN LATERAL (SELECT subscription, event, object FROM surehook_lines WHERE subscription = k.subscription AND event = k.event AND place = 3 OFFSET 0) l) u
		JOIN surehook_subscriptions s ON s.no = u.subscription
		CROSS JOIN LATERAL (SELECT x.event FROM surehook_lines x WHERE ` + isHeldBack + ` AND x.place < 3 ORDER BY x.object, x.event LIMIT 1) n
		JOIN surehook_feed f ON f.position = n.event JOIN surehook_events e ON e.no = f.event
		WHERE e.created_at < $3 AND NOT EXISTS (SELECT 1 FROM surehook_lines x WHERE x.subscription = u.subscription AND x.object = u.object AND x.event < u.event AND x.place = 3 OFFSET 0)
		ORDER BY u.subscription, u.event`

	// selectHeldBack reads up to $3 rows behind one of these.
	selectHeldBack = `SELECT x.event, x.place = 3, x.single, e.id, e.created_at, coalesce(e.notice, false)
		FROM (SELECT x.event, x.place, x.single FROM surehook_lines u JOIN surehook_subscriptions s ON s.no = u.subscription
			CROSS JOIN LATERAL (SELECT x.* FROM surehook_lines x WHERE ` + isHeldBack + ` ORDER BY x.object, x.event LIMIT $3) x
			WHERE u.subscription = $1 AND u.event = $2) x
		LEFT JOIN surehook_feed f ON f.position = x.event LEFT JOIN surehook_events e ON e.no = f.event ORDER BY x.event`
)

// heldBack is what is behind a dead letter.
type heldBack struct {
	keys []dispatch.DeliveryKey
	ids  []string // of their events
	held []rules.Held
}

// expire ends those deliveries that are too old and that these dead letters no longer hold
// back. It returns the dead letters behind which none is left. Their heads are locked.
func (b *batch) expire(all []dispatch.DeliveryKey, notBefore time.Time) (free []dispatch.DeliveryKey, err error) {
	expires := func(k dispatch.DeliveryKey) bool {
		return rules.Expires(sender.SubscriptionStatus(b.subs[k.Subscription].status), notBefore)
	}
	asked := slices.DeleteFunc(slices.Clone(all), func(k dispatch.DeliveryKey) bool { return !expires(k) })
	if len(asked) == 0 {
		return all, nil
	}
	var expiring []dispatch.DeliveryKey
	err = b.each(func(r rows) (bool, error) {
		var k dispatch.DeliveryKey
		err := r.Scan(&k.Subscription, &k.Event)
		expiring = append(expiring, k)
		return true, err
	}, selectExpiring, subscriptionsOf(asked), eventsOf(asked), timestampOf(notBefore))
	if err != nil {
		return nil, err
	}
	stays := map[dispatch.DeliveryKey]bool{}
	for _, k := range expiring {
		if stays[k], err = b.expireBehind(k, all, notBefore); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(k dispatch.DeliveryKey) bool { return stays[k] }), nil
}

func (b *batch) expireBehind(k dispatch.DeliveryKey, all []dispatch.DeliveryKey, notBefore time.Time) (left bool, err error) {
	sub := b.subs[k.Subscription]
	most, _ := b.superseding.Grants()
	behind, err := b.heldBack(k, all, notBefore, most)
	if err != nil {
		return false, err
	}
	ends, left := rules.Expire(sub.Settings.Order, behind.held, notBefore, most)
	as := map[dispatch.DeliveryKey]sender.Status{}
	for i, end := range ends {
		as[behind.keys[i]] = end
	}
	b.superseding.Add(len(ends))
	if _, err := b.endAll(behind.keys[:len(ends)], func(l *live) sender.Status { return as[l.key()] }); err != nil {
		return left, err
	}
	n, at, ok := rules.ExpireNotice(sub.Subscriber, behind.held, ends)
	if !ok {
		return left, nil
	}
	n.Subscription, n.Delivery = sub.Subscription, deliveryID(behind.ids[at], k.Subscription)
	return left, b.notify(n)
}

// heldBack reads what rules.Expire needs. It passes over dead letters that are freed, too.
func (b *batch) heldBack(k dispatch.DeliveryKey, freed []dispatch.DeliveryKey, notBefore time.Time, most int) (behind heldBack, err error) {
	return behind, b.each(func(r rows) (bool, error) {
		at := dispatch.DeliveryKey{Subscription: k.Subscription}
		var dead bool
		var x rules.Held
		var id pgtype.Text
		var published timestamp
		if err := r.Scan(&at.Event, &dead, &x.Single, &id, &published, &x.Notice); err != nil {
			return false, err
		}
		if dead {
			return slices.Contains(freed, at), nil
		}
		x.Published = published.time()
		behind.keys, behind.ids, behind.held = append(behind.keys, at), append(behind.ids, id.String), append(behind.held, x)
		return len(behind.held) <= most && rules.Within(x.Published, notBefore) != nil, nil
	}, selectHeldBack, k.Subscription, k.Event, most+len(freed))
}
