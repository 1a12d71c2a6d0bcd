package postgres

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// selectDeadInLines reads dead letters that hold back others, and whether they are dead
	// letters still: one may have been pruned.
	selectDeadInLines = `SELECT l.subscription, l.event, s.status, s.settings, EXISTS (SELECT 1 FROM surehook_ended x
			WHERE x.subscription = l.subscription AND x.event = l.event AND x.status = 'dead_lettered' OFFSET 0)
		FROM (SELECT subscription, event FROM surehook_lines WHERE place = 3 AND (subscription, event) > ($1, $2) ORDER BY subscription, event LIMIT $3) l
		JOIN surehook_subscriptions s ON s.no = l.subscription ORDER BY l.subscription, l.event`

	// selectHalted reads the firsts of lines that halt.
	selectHalted = `SELECT subscription, event FROM surehook_lines WHERE halts LIMIT 100`

	// deadLook is how many of them a sweep looks at.
	deadLook = 500

	// waitedFor reads which delivery one that is behind waits for, and whether that is a
	// dead letter.
	waitedFor = `SELECT coalesce((SELECT e.id FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = l.event), ''), l.place = 3 FROM surehook_lines l
		WHERE l.subscription = $1 AND l.event = (SELECT coalesce(
			(SELECT event FROM surehook_lines WHERE subscription = $1 AND object = me.object AND preceded),
			(SELECT event FROM surehook_lines WHERE subscription = $1 AND object = me.object ORDER BY event LIMIT 1))
			FROM surehook_lines me WHERE me.subscription = $1 AND me.event = $2)`
	holdsBack = `SELECT EXISTS (SELECT 1 FROM surehook_lines WHERE subscription = $1 AND event = $2 AND place = 3)`

	// oldestBehind reads when the first event was published that a dead letter holds back.
	oldestBehind = `SELECT e.created_at FROM surehook_lines me JOIN surehook_subscriptions s ON s.no = me.subscription
		CROSS JOIN LATERAL (SELECT x.event FROM surehook_lines x WHERE x.subscription = me.subscription AND x.object = me.object AND x.event > me.event
			AND x.place < 3 AND ` + isTaken + ` ORDER BY x.event LIMIT 1) n
		JOIN surehook_feed f ON f.position = n.event JOIN surehook_events e ON e.no = f.event
		WHERE me.subscription = $1 AND me.event = $2 AND me.place = 3`

	selectObjectsAt = `SELECT f.position, ` + objectOf + ` FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = ANY($1)`
)

func nameOf(o sender.Object) string { return o.Type + " " + o.ID }

// deadLooked is up to where the sweeps have looked at dead letters in lines.
type deadLooked struct {
	sync.Mutex
	dispatch.DeliveryKey
}

// freeable finds dead letters that are not to hold back others any more: among the next
// ones, behind those that the sweep before has looked at.
func (c *core) freeable(ctx context.Context) (found []dispatch.DeliveryKey, err error) {
	c.deadLooked.Lock()
	defer c.deadLooked.Unlock()
	from, last, n := c.deadLooked.DeliveryKey, dispatch.DeliveryKey{}, 0
	err = c.dispatching().read(ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var status sender.SubscriptionStatus
			var settings string
			var dead bool
			err := r.Scan(&last.Subscription, &last.Event, &status, &settings, &dead)
			if set := sender.ReadSettings([]byte(settings)); !dead || !rules.Holds(&set, status) {
				found = append(found, last)
			}
			n++
			return true, err
		}, selectDeadInLines, from.Subscription, from.Event, deadLook)
	})
	if c.deadLooked.DeliveryKey = last; n < deadLook {
		c.deadLooked.DeliveryKey = dispatch.DeliveryKey{}
	}
	return found, fail("looking at dead letters that hold back others", err)
}

// freeAll takes dead letters out of their lines, once nothing is behind them that is too old to
// go on, and returns how many. It skips heads that somebody has locked.
func (b *batch) freeAll(all []dispatch.DeliveryKey, notBefore time.Time) (int, error) {
	free, err := b.lockHeadsOf(all)
	if err == nil {
		free, err = b.expire(free, notBefore)
	}
	if err != nil {
		return 0, err
	}
	return b.free(free)
}

// goOnWithHalted lets lines advance that halted, by their firsts. It skips heads that
// somebody has locked.
func (b *batch) goOnWithHalted(all []dispatch.DeliveryKey) error {
	halted, err := b.lockHeadsOf(all)
	if err != nil || len(halted) == 0 {
		return err
	}
	return b.each(func(r rows) (bool, error) {
		var k lineKey
		var moved bool
		err := r.Scan(&k.subscription, &k.object, &moved)
		if moved {
			b.lineMoved(k)
		}
		return true, err
	}, clearHalted, subscriptionsOf(halted), eventsOf(halted))
}

// lockHeadsOf locks the heads of deliveries, unless somebody has locked them, and returns the
// deliveries whose heads are locked now.
func (b *batch) lockHeadsOf(all []dispatch.DeliveryKey) (found []dispatch.DeliveryKey, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	var locked []int64
	err = b.each(func(r rows) (bool, error) {
		h, err := scanHead(r)
		if err == nil && b.heads.by[h.subscription] == nil {
			b.heads.put(h)
			locked = append(locked, h.subscription)
		}
		return true, err
	}, lockFreeHeads, distinct(subscriptionsOf(all)))
	if err != nil {
		return nil, err
	}
	if err := b.readSubscriptions(locked); err != nil {
		return nil, err
	}
	for _, k := range all {
		if b.heads.by[k.Subscription] != nil {
			found = append(found, k)
		}
	}
	return found, nil
}

// free takes dead letters out of their lines, whose heads are locked.
func (b *batch) free(all []dispatch.DeliveryKey) (n int, err error) {
	if len(all) == 0 {
		return 0, nil
	}
	err = b.each(func(r rows) (bool, error) {
		var k lineKey
		var moved bool
		err := r.Scan(&k.subscription, &k.object, &moved)
		if moved {
			b.lineMoved(k)
		}
		b.heads.by[k.subscription].lined--
		n++
		return true, err
	}, freeLines, subscriptionsOf(all), eventsOf(all))
	return n, err
}

// freeFrom takes a delivery that is sent again out of the line in which it may hold back
// others as a dead letter.
func (b *batch) freeFrom(h *head, k dispatch.DeliveryKey) error {
	if h.lined == 0 {
		return nil
	}
	_, err := b.free([]dispatch.DeliveryKey{k})
	return err
}

// PassOver implements history.Store.
func (c *core) PassOver(ctx context.Context, id string, notBefore time.Time) error {
	err := c.batch(ctx, dispatch.Batch{}, func(b *batch) error {
		k, err := b.keyOf(id)
		if err != nil {
			return err
		}
		if _, _, err := b.lockOne(k.Subscription); err != nil {
			return err
		}
		if _, err := b.delivery(k); err != nil {
			return err
		}
		var oldest timestamp
		if err := b.row(oldestBehind, k.Subscription, k.Event).Scan(&oldest); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := rules.Within(oldest.time(), notBefore); err != nil {
			return err
		}
		n, err := b.free([]dispatch.DeliveryKey{k})
		if err == nil && n == 0 {
			err = rules.HoldsNothing(id)
		}
		return err
	})
	if err != nil {
		return aboutDelivery(id, err)
	}
	c.Wake()
	return nil
}
