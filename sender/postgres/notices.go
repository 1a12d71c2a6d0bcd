package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/surehook/surehook/sender"
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
	var created, acknowledged, notified moment
	err = r.Scan(&n.no, &n.ID, &n.Kind, &n.Subscriber, &n.Subscription, &n.Delivery, &n.Replay, &n.Detail, &n.Percent,
		&created, &acknowledged, &notified, &n.tries)
	n.CreatedAt, n.AcknowledgedAt, n.NotifiedAt = created.time(), acknowledged.time(), notified.time()
	return n, err
}

// Notices implements sender.HistoryStore.
func (c *core) Notices(ctx context.Context, q sender.NoticeQuery) (page []sender.Notice, next string, err error) {
	limit, before, err := rules.Number(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	if !storable(q.Subscription) || !storable(q.Subscriber) || !storable(string(q.Kind)) {
		return nil, "", nil
	}
	query, args := noticePage(q, before, limit+1)
	err = c.read(ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			n, err := scanNotice(r)
			if err != nil {
				return false, err
			}
			if len(page) == limit {
				next = rules.NumberCursor(before)
				return false, nil
			}
			page, before = append(page, n.Notice), n.no
			return true, nil
		}, query, args...)
	})
	if err != nil {
		return nil, "", fail("listing notices", err)
	}
	return page, next, nil
}

func noticePage(q sender.NoticeQuery, before int64, limit int) (query string, args []any) {
	query, args = `SELECT `+noticeColumns+` FROM surehook_notices WHERE no < $1`, []any{before}
	for _, f := range []struct{ column, value string }{
		{"subscription", q.Subscription}, {"subscriber", q.Subscriber}, {"kind", string(q.Kind)},
	} {
		if f.value != "" {
			args = append(args, f.value)
			query += fmt.Sprintf(` AND %s = $%d`, f.column, len(args))
		}
	}
	if q.Unread {
		query += ` AND acknowledged_at IS NULL`
	}
	args = append(args, limit)
	return query + fmt.Sprintf(` ORDER BY no DESC LIMIT $%d`, len(args)), args
}

// AcknowledgeNotice implements sender.HistoryStore.
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

// ClaimNotices implements sender.DispatchStore. With nothing to claim it only reads.
func (c *core) ClaimNotices(ctx context.Context, lease time.Duration, limit int) (claimed []sender.ClaimedNotice, err error) {
	const doing = "claiming notices"
	some := false
	if err := c.dispatching().readOne(ctx, anyDueNotice, nil, &some); err != nil || !some {
		return nil, fail(doing, err)
	}
	err = c.dispatching().write(ctx, func(w *work) error {
		claimed = nil
		return fail(doing, w.each(func(r rows) (bool, error) {
			n, err := scanNotice(r)
			claimed = append(claimed, sender.ClaimedNotice{Notice: n.Notice, Tries: n.tries})
			return true, err
		}, claimNotices, w.now, w.now.plus(lease), limit))
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// Notified implements sender.DispatchStore.
func (c *core) Notified(ctx context.Context, id string) error {
	return c.dispatching().write(ctx, func(w *work) error {
		return fail("marking a notice", w.execs(markNotified, soughtID(id), w.now))
	})
}

// PutOffNotice implements sender.DispatchStore.
func (c *core) PutOffNotice(ctx context.Context, id string, after time.Duration) error {
	return c.dispatching().write(ctx, func(w *work) error {
		return fail("putting a notice off", w.execs(putOffNotice, soughtID(id), w.now.plus(after)))
	})
}
