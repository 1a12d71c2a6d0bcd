package sqlite

import (
	"database/sql"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

// selectHeldBack reads what is behind a dead letter that is the first of its line, and other
// dead letters there. ?3: up to where the subscription has skipped.
const selectHeldBack = `SELECT x.event, x.place = 3, x.number, x.single, x.epoch, coalesce(e.id, ''), coalesce(e.created_at, 0), e.notice IS 1
	FROM surehook_lines d CROSS JOIN surehook_lines x INDEXED BY surehook_lines_object ON x.subscription = ?1 AND x.object = d.object AND x.event > ?2
	LEFT JOIN surehook_events e ON e.seq = x.event
	WHERE d.subscription = ?1 AND d.event = ?2 AND d.place = 3 AND (x.place = 3 OR x.place IN (1, 2) AND ` + isTaken + `)
		AND NOT EXISTS (SELECT 1 FROM surehook_lines f INDEXED BY surehook_lines_object WHERE f.subscription = ?1 AND f.object = d.object AND f.event < ?2 AND f.place = 3)
	ORDER BY x.event`

// heldBack is what is behind a dead letter.
type heldBack struct {
	lives []live
	ids   []string // of their events
	held  []rules.Held
}

// expire ends those deliveries that are too old and that these dead letters no longer hold
// back. It returns the dead letters behind which none is left.
func (b *batch) expire(all []dispatch.DeliveryKey, notBefore time.Time) (free []dispatch.DeliveryKey, err error) {
	for _, k := range all {
		left, err := b.expireBehind(k, all, notBefore)
		if err != nil {
			return nil, err
		}
		if !left {
			free = append(free, k)
		}
	}
	return free, nil
}

func (b *batch) expireBehind(k dispatch.DeliveryKey, all []dispatch.DeliveryKey, notBefore time.Time) (left bool, err error) {
	h, err := b.heads.any(k.Subscription)
	if err != nil || h.missing {
		return false, err
	}
	sub, err := b.known(k.Subscription)
	if err != nil || !rules.Expires(sender.SubscriptionStatus(sub.status), notBefore) {
		return false, err
	}
	most, _ := b.superseding.Grants()
	behind, err := b.heldBack(h, k, all, notBefore, most)
	if err != nil {
		return false, err
	}
	ends, left := rules.Expire(sub.Settings.Order, behind.held, notBefore, most)
	if err := b.endExpired(h, behind.lives, ends); err != nil {
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
func (b *batch) heldBack(h *head, k dispatch.DeliveryKey, freed []dispatch.DeliveryKey, notBefore time.Time, most int) (behind heldBack, err error) {
	return behind, b.each(func(rows *sql.Rows) (bool, error) {
		l := live{subscription: k.Subscription, behind: true}
		var x rules.Held
		var id string
		var published int64
		var dead bool
		if err := rows.Scan(&l.event, &dead, &l.number, &l.single, &l.epoch, &id, &published, &x.Notice); err != nil {
			return false, err
		}
		if dead {
			return slices.Contains(freed, l.key()), nil
		}
		x.Published, x.Single = timeOf(published), l.single
		behind.lives, behind.ids, behind.held = append(behind.lives, l), append(behind.ids, id), append(behind.held, x)
		return len(behind.held) <= most && rules.Within(x.Published, notBefore) != nil, nil
	}, selectHeldBack, k.Subscription, k.Event, h.skippedTo)
}

// endExpired ends the first of some deliveries that are behind.
func (b *batch) endExpired(h *head, lives []live, ends []sender.Status) error {
	var superseded, others []live
	for i, end := range ends {
		if end == sender.StatusSuperseded {
			superseded = append(superseded, lives[i])
		} else {
			others = append(others, lives[i])
		}
	}
	b.superseding.Add(len(ends))
	if err := b.endAll(h, superseded, rules.Superseded); err != nil {
		return err
	}
	return b.endAll(h, others, rules.DeadLettered)
}
