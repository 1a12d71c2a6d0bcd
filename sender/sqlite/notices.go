package sqlite

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

	insertNotice = `INSERT INTO surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, acknowledged_at, notified_at,
		notify_due, notify_tries)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0, ?9, 0)`
	selectNoticeByID  = `SELECT ` + noticeColumns + ` FROM surehook_notices WHERE id = ?`
	acknowledgeNotice = `UPDATE surehook_notices SET acknowledged_at = ? WHERE id = ? AND acknowledged_at = 0`
	selectDueNotices  = `SELECT ` + noticeColumns + ` FROM surehook_notices
		WHERE notified_at = 0 AND acknowledged_at = 0 AND notify_due <= ? ORDER BY notify_due, no LIMIT ? + 0`
	claimNotice  = `UPDATE surehook_notices SET notify_due = ?, notify_tries = notify_tries + 1 WHERE no = ?`
	markNotified = `UPDATE surehook_notices SET notified_at = ? WHERE id = ? AND notified_at = 0`
	putOffNotice = `UPDATE surehook_notices SET notify_due = ? WHERE id = ? AND notified_at = 0`
)

// notify stores a notice, and publishes the event that is made of it.
func (b *batch) notify(n sender.Notice) error {
	n = rules.Stamped(n, timeOf(b.now))
	err := b.execs(insertNotice, n.ID, string(n.Kind), n.Subscriber, n.Subscription, n.Delivery, n.Replay, n.Detail, n.Percent, micros(n.CreatedAt))
	if err != nil {
		return err
	}
	b.out.Notices = append(b.out.Notices, n)
	draft, ok := rules.Announced(b.Announce, n)
	if !ok {
		return nil
	}
	if _, err := b.subscriberNo(draft.Subscriber); errors.Is(err, sender.ErrNotFound) && draft.Subscriber != "" {
		return nil // nobody is registered who could get it
	}
	_, err = b.publish(&draft, b.now)
	return err
}

type noticeRow struct {
	no    int64
	tries int
	sender.Notice
}

func scanNotice(row interface{ Scan(...any) error }) (n noticeRow, err error) {
	var created, acknowledged, notified int64
	err = row.Scan(&n.no, &n.ID, &n.Kind, &n.Subscriber, &n.Subscription, &n.Delivery, &n.Replay, &n.Detail, &n.Percent,
		&created, &acknowledged, &notified, &n.tries)
	n.CreatedAt, n.AcknowledgedAt, n.NotifiedAt = timeOf(created), timeOf(acknowledged), timeOf(notified)
	return n, err
}

// Notices implements history.Store.
func (s *Store) Notices(ctx context.Context, q history.NoticeQuery) (page []sender.Notice, next string, err error) {
	limit, before, err := rules.Number(q.Limit, q.Cursor, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	query, args := noticePage(&q, before, limit+1)
	err = s.read(ctx, func(w *work) error {
		err := w.each(func(rows *sql.Rows) (bool, error) {
			n, err := scanNotice(rows)
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
		if err != nil || next != "" {
			return err
		}
		query, args := noticesLooked(&q, args[0])
		return w.each(func(rows *sql.Rows) (bool, error) {
			err := rows.Scan(&before)
			next = rules.NumberCursor(before)
			return true, err
		}, query, args...)
	})
	if err != nil {
		return nil, "", fail("listing notices", err)
	}
	return page, next, nil
}

// noticesOf selects the notices that a list looks at, in the order of an index: those about
// a subscription, of a subscriber, that nobody has acknowledged, or all. An index by all
// that a query may ask for would be one too many: so a list looks at a bounded number.
func noticesOf(q *history.NoticeQuery, before any) (from string, args []any) {
	args = []any{before}
	switch {
	case q.Subscription != "":
		from, args = ` FROM surehook_notices INDEXED BY surehook_notices_about WHERE no < ? AND subscription = ?`, append(args, q.Subscription)
	case q.Subscriber != "":
		from, args = ` FROM surehook_notices INDEXED BY surehook_notices_of WHERE no < ? AND subscriber = ?`, append(args, q.Subscriber)
	case q.Unread:
		from = ` FROM surehook_notices INDEXED BY surehook_notices_unread WHERE no < ? AND acknowledged_at = 0`
	default:
		from = ` FROM surehook_notices WHERE no < ?`
	}
	return from + ` ORDER BY no DESC`, args
}

func noticePage(q *history.NoticeQuery, before int64, limit int) (query string, args []any) {
	from, args := noticesOf(q, before)
	query = `SELECT ` + noticeColumns + ` FROM (SELECT *` + from + ` LIMIT ?) n WHERE true`
	args = append(args, history.MaxExamined)
	for _, f := range []struct{ column, value string }{{"subscriber", q.Subscriber}, {"kind", string(q.Kind)}} {
		if f.value != "" {
			query, args = query+` AND `+f.column+` = ?`, append(args, f.value)
		}
	}
	if q.Unread {
		query += ` AND acknowledged_at = 0`
	}
	return query + ` ORDER BY no DESC LIMIT ?`, append(args, limit)
}

// noticesLooked finds the last notice that a list has looked at, if it has looked at as many
// as it may.
func noticesLooked(q *history.NoticeQuery, before any) (query string, args []any) {
	from, args := noticesOf(q, before)
	return `SELECT no` + from + ` LIMIT 1 OFFSET ?`, append(args, history.MaxExamined-1)
}

// AcknowledgeNotice implements history.Store.
func (s *Store) AcknowledgeNotice(ctx context.Context, id, subscriber string) (n sender.Notice, err error) {
	err = s.write(ctx, func(w *work) error {
		row, err := scanNotice(w.row(selectNoticeByID, id))
		if errors.Is(err, sql.ErrNoRows) || err == nil && subscriber != "" && row.Subscriber != subscriber {
			return fmt.Errorf("%w: notice %q", sender.ErrNotFound, id)
		}
		if err != nil {
			return fail("reading a notice", err)
		}
		n = row.Notice
		if !n.AcknowledgedAt.IsZero() {
			return nil
		}
		now := s.now()
		n.AcknowledgedAt = timeOf(now)
		return fail("acknowledging a notice", w.execs(acknowledgeNotice, now, id))
	})
	return n, err
}

// ClaimNotices implements dispatch.Store. With nothing to claim it only reads.
func (s *Store) ClaimNotices(ctx context.Context, lease time.Duration, limit int) (claimed []dispatch.ClaimedNotice, err error) {
	const doing = "claiming notices"
	some := false
	err = s.read(ctx, func(w *work) error {
		return w.each(func(*sql.Rows) (bool, error) {
			some = true
			return false, nil
		}, selectDueNotices, s.now(), 1)
	})
	if err != nil || !some {
		return nil, fail(doing, err)
	}
	err = s.write(ctx, func(w *work) error {
		claimed = nil
		now := s.now()
		var due []noticeRow
		err := w.each(func(rows *sql.Rows) (bool, error) {
			n, err := scanNotice(rows)
			due = append(due, n)
			return true, err
		}, selectDueNotices, now, limit)
		if err != nil {
			return fail(doing, err)
		}
		for _, n := range due {
			if err := w.execs(claimNotice, now+lease.Microseconds(), n.no); err != nil {
				return fail(doing, err)
			}
			claimed = append(claimed, dispatch.ClaimedNotice{Notice: n.Notice, Tries: n.tries + 1})
		}
		return nil
	})
	return claimed, err
}

// SettleNotice implements dispatch.Store.
func (s *Store) SettleNotice(ctx context.Context, id string, again time.Duration) error {
	return s.write(ctx, func(w *work) error {
		if again == 0 {
			return fail("marking a notice", w.execs(markNotified, s.now(), id))
		}
		return fail("putting a notice off", w.execs(putOffNotice, s.now()+again.Microseconds(), id))
	})
}
