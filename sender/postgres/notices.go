package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	noticeColumns = `no, id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, acknowledged_at, notified_at, notify_tries`

	acknowledgeNotice = `UPDATE surehook_notices SET acknowledged_at = coalesce(acknowledged_at, $3) WHERE id = $1 AND ($2::text = '' OR subscriber = $2)
		RETURNING ` + noticeColumns
	dueNotices   = ` FROM surehook_notices WHERE notified_at IS NULL AND acknowledged_at IS NULL AND notify_due <= `
	anyDueNotice = `SELECT EXISTS (SELECT 1` + dueNotices + `{now})`
	claimNotices = `WITH d AS MATERIALIZED (SELECT no, notify_due` + dueNotices + `$1 ORDER BY notify_due, no LIMIT $3 FOR UPDATE SKIP LOCKED),
		n AS (UPDATE surehook_notices n SET notify_due = $2, notify_tries = notify_tries + 1 FROM d WHERE n.no = d.no RETURNING n.*, d.notify_due AS was_due)
		SELECT ` + noticeColumns + ` FROM n ORDER BY was_due, no`
	markNotified = `UPDATE surehook_notices SET notified_at = $2 WHERE id = $1 AND notified_at IS NULL`
	putOffNotice = `UPDATE surehook_notices SET notify_due = $2 WHERE id = $1 AND notified_at IS NULL`
)

type noticeRow struct {
	no    int64
	tries int
	sender.Notice
}

func scanNotice(r interface{ Scan(...any) error }) (n noticeRow, err error) {
	var created, acknowledged, notified timestamp
	err = r.Scan(&n.no, &n.ID, &n.Kind, &n.Subscriber, &n.Subscription, &n.Delivery, &n.Replay, &n.Detail, &n.Percent,
		&created, &acknowledged, &notified, &n.tries)
	n.CreatedAt, n.AcknowledgedAt, n.NotifiedAt = created.time(), acknowledged.time(), notified.time()
	return n, err
}

// Notices implements history.Store.
func (c *core) Notices(ctx context.Context, q history.NoticeQuery) (page []sender.Notice, next string, err error) {
	limit, before, err := rules.Number(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	if !storable(q.Subscription) || !storable(q.Subscriber) || !storable(string(q.Kind)) {
		return nil, "", nil
	}
	query, args := noticePage(&q)
	err = c.read(ctx, func(w *work) (err error) {
		page, next, err = list(w, limit, before, q.Matches, func(r rows) (int64, sender.Notice, error) {
			n, err := scanNotice(r)
			return n.no, n.Notice, err
		}, query, args...)
		return err
	})
	if err != nil {
		return nil, "", fail("listing notices", err)
	}
	return page, next, nil
}

// noticePage reads the $2 notices before the number $1, in the order of an index: those
// about a subscription, of a subscriber, that nobody has acknowledged, or all. The other
// conditions of a query are looked at afterwards: an index for each would be too many.
func noticePage(q *history.NoticeQuery) (query string, more []any) {
	switch {
	case q.Subscription != "":
		return noticesBy("subscription"), []any{q.Subscription}
	case q.Subscriber != "":
		return noticesBy("subscriber"), []any{q.Subscriber}
	case q.Unread:
		return selectNotices + `no < $1 AND acknowledged_at IS NULL ORDER BY no DESC LIMIT $2`, nil
	}
	return selectNotices + `no < $1 ORDER BY no DESC LIMIT $2`, nil
}

const selectNotices = `SELECT ` + noticeColumns + ` FROM surehook_notices WHERE `

// noticesBy reads those whose column is $3, in an order that only the column's index has. If
// the order were that of the numbers alone, a planner that thinks little of a value could go
// over all notices by these.
func noticesBy(column string) string {
	return selectNotices + column + ` >= $3 AND (` + column + `, no) < ($3, $1) ORDER BY ` + column + ` DESC, no DESC LIMIT $2`
}

// AcknowledgeNotice implements history.Store.
func (c *core) AcknowledgeNotice(ctx context.Context, id, subscriber string) (n sender.Notice, err error) {
	if !storable(id) || !storable(subscriber) {
		return sender.Notice{}, fmt.Errorf("%w: notice %q", sender.ErrNotFound, id)
	}
	err = c.write(ctx, func(w *work) error {
		row, err := scanNotice(w.row(acknowledgeNotice, id, subscriber, w.now))
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: notice %q", sender.ErrNotFound, id)
		}
		n = row.Notice
		return fail("acknowledging a notice", err)
	})
	if err != nil {
		return sender.Notice{}, err
	}
	return n, nil
}

// ClaimNotices implements dispatch.Store. With nothing to claim it only reads.
func (c *core) ClaimNotices(ctx context.Context, lease time.Duration, limit int) (claimed []dispatch.ClaimedNotice, err error) {
	const doing = "claiming notices"
	some := false
	if err := c.dispatching().readOne(ctx, anyDueNotice, nil, &some); err != nil || !some {
		return nil, fail(doing, err)
	}
	err = c.dispatching().write(ctx, func(w *work) error {
		claimed = nil
		return fail(doing, w.each(func(r rows) (bool, error) {
			n, err := scanNotice(r)
			claimed = append(claimed, dispatch.ClaimedNotice{Notice: n.Notice, Tries: n.tries})
			return true, err
		}, claimNotices, w.now, w.now.plus(lease), limit))
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// SettleNotice implements dispatch.Store.
func (c *core) SettleNotice(ctx context.Context, id string, again time.Duration) error {
	return c.dispatching().write(ctx, func(w *work) error {
		if again == 0 {
			return fail("marking a notice", w.execs(markNotified, soughtID(id), w.now))
		}
		return fail("putting a notice off", w.execs(putOffNotice, soughtID(id), w.now.plus(again)))
	})
}

const (
	// A caller who is changing the subscription has its row locked, perhaps for long: then
	// it is not disabled now.
	disableSubscription = `UPDATE surehook_subscriptions SET status = 'disabled', held_at = $2, disabled_reason = $3, version = version + 1
		WHERE no = (SELECT no FROM surehook_subscriptions WHERE no = $1 AND status = 'active' FOR UPDATE SKIP LOCKED)`
	selectEventID = `SELECT e.id FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = $1`
)

// disable disables an active subscription while its results are recorded, and reports
// whether it did. If somebody is changing the subscription, the next failure tries again.
func (b *batch) disable(h *head, sub *subscription, reason string) (bool, error) {
	n, err := b.exec(disableSubscription, sub.SubscriptionNo, b.now, reason)
	if err != nil || n == 0 {
		return false, err
	}
	h.open, sub.status = false, string(sender.SubscriptionDisabled)
	return true, nil
}

// consequences applies a decision to the subscription, and stores the notices that people
// get of it.
func (b *batch) consequences(h *head, sub *subscription, l *live, d *dispatch.Decision) error {
	if d.Disable != "" {
		if disabled, err := b.disable(h, sub, d.Disable); err != nil {
			return err
		} else if !disabled {
			d.Disable = ""
		}
	}
	for _, n := range rules.Notices(d, sub.Subscriber, sub.Subscription) {
		var event string
		switch err := b.row(selectEventID, l.event).Scan(&event); {
		case err == nil:
			n.Delivery = deliveryID(event, l.subscription)
		case !errors.Is(err, sql.ErrNoRows): // without the event there is no delivery either
			return err
		}
		if err := b.notify(n); err != nil {
			return err
		}
	}
	return nil
}

const insertNotice = `INSERT INTO surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, notify_due)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)`

// notify stores a notice, and publishes the event that announces it.
func (b *batch) notify(n sender.Notice) error {
	n = rules.Stamped(n, b.now.time())
	err := b.execs(insertNotice, n.ID, string(n.Kind), n.Subscriber, n.Subscription, n.Delivery, n.Replay, n.Detail, n.Percent, timestampOf(n.CreatedAt))
	if err != nil {
		return err
	}
	b.out.Notices = append(b.out.Notices, n)
	draft, ok := rules.Announced(b.Announce, n)
	if !ok {
		return nil
	}
	if draft.Subscriber != "" {
		if _, err := b.subscriberNo(draft.Subscriber); errors.Is(err, sender.ErrNotFound) {
			return nil // nobody could get it
		} else if err != nil {
			return err
		}
	}
	_, err = b.publish([]sender.Draft{draft})
	return err
}
