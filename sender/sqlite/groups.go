package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

const (
	deadNewest   = `SELECT x.no, x.subscription, x.event, x.ended_at FROM surehook_ended x INDEXED BY surehook_ended_order WHERE x.status = 'dead_lettered' ORDER BY x.no DESC LIMIT ?1 + 0`
	deadNewestOf = `SELECT x.no, x.subscription, x.event, x.ended_at FROM json_each(?2) j CROSS JOIN surehook_ended x INDEXED BY surehook_ended_of
		WHERE x.subscription = j.value AND x.status = 'dead_lettered' ORDER BY x.no DESC LIMIT ?1 + 0`

	// A group's row has how many there are; the last column, whether the newest that were
	// looked at are too many.
	groupDead = `, d AS MATERIALIZED (SELECT x.subscription, x.ended_at,
				coalesce((SELECT a.class FROM surehook_attempts a WHERE a.event = x.event AND a.subscription = x.subscription ORDER BY a.number DESC LIMIT 1), '') AS class,
				` + lastCode + ` AS code FROM (SELECT * FROM newest LIMIT ?1 - 1) x)
		SELECT s.id, o.id, s.url, g.class, g.code, g.n, g.first, g.last, (SELECT count(*) FROM newest) = ?1
		FROM (SELECT subscription, class, code, count(*) AS n, min(ended_at) AS first, max(ended_at) AS last FROM d GROUP BY subscription, class, code) g
			CROSS JOIN surehook_subscriptions s ON s.no = g.subscription CROSS JOIN surehook_subscribers o ON o.no = s.subscriber
		ORDER BY g.n DESC, s.no, g.class, g.code`
	selectDeadGroups   = `WITH newest AS MATERIALIZED (` + deadNewest + `)` + groupDead
	selectDeadGroupsOf = `WITH newest AS MATERIALIZED (` + deadNewestOf + `)` + groupDead

	unreadNewest   = `SELECT no FROM surehook_notices INDEXED BY surehook_notices_unread WHERE acknowledged_at = 0 ORDER BY no DESC LIMIT ?1 + 0`
	unreadNewestOf = `SELECT no FROM surehook_notices INDEXED BY surehook_notices_of WHERE subscriber = ?2 AND acknowledged_at = 0 ORDER BY no DESC LIMIT ?1 + 0`
	groupNotices   = ` SELECT n.kind, n.subscriber, n.subscription, g.n, g.first, g.last, n.id, n.detail, (SELECT count(*) FROM newest) = ?1
		FROM (SELECT max(n.no) AS no, count(*) AS n, min(n.created_at) AS first, max(n.created_at) AS last
				FROM (SELECT no FROM newest LIMIT ?1 - 1) x CROSS JOIN surehook_notices n ON n.no = x.no GROUP BY n.kind, n.subscriber, n.subscription) g
			CROSS JOIN surehook_notices n ON n.no = g.no ORDER BY g.no DESC`
	selectNoticeGroups   = `WITH newest AS MATERIALIZED (` + unreadNewest + `)` + groupNotices
	selectNoticeGroupsOf = `WITH newest AS MATERIALIZED (` + unreadNewestOf + `)` + groupNotices

	// acknowledgeNotices goes over those that nobody has acknowledged.
	acknowledgeNotices = `UPDATE surehook_notices SET acknowledged_at = ?1 WHERE no IN (SELECT no FROM surehook_notices INDEXED BY surehook_notices_unread
		WHERE acknowledged_at = 0 AND kind = ?2 AND subscriber = ?3 AND subscription = ?4 AND created_at <= ?5 ORDER BY no LIMIT ?6 + 0)`

	selectKinds = `SELECT EXISTS (SELECT 1 FROM surehook_events WHERE id = ?1), EXISTS (SELECT 1 FROM surehook_subscriptions WHERE id = ?1),
		EXISTS (SELECT 1 FROM surehook_subscribers WHERE id = ?1), EXISTS (SELECT 1 FROM surehook_notices WHERE id = ?1),
		EXISTS (SELECT 1 FROM surehook_replays WHERE id = ?1), ?2 <> '' AND EXISTS (SELECT 1 FROM surehook_objects WHERE type = ?2 AND id = ?3)`
)

// DeadLetterGroups implements history.Store.
func (s *Store) DeadLetterGroups(ctx context.Context, q history.DeadLetterQuery) (out history.DeadLetterGroups, err error) {
	err = s.read(ctx, func(w *work) error {
		query, args := selectDeadGroups, []any{history.MaxExamined + 1}
		if q.Subscription != "" || q.Subscriber != "" {
			of, err := w.deadOf(q)
			if err != nil || len(of) == 0 {
				return err
			}
			query, args = selectDeadGroupsOf, append(args, list(of))
		}
		return w.each(func(rows *sql.Rows) (bool, error) {
			var g history.DeadLetterGroup
			var first, last int64
			err := rows.Scan(&g.Subscription, &g.Subscriber, &g.URL, &g.Class, &g.StatusCode, &g.Count, &first, &last, &out.More)
			g.First, g.Last = timeOf(first), timeOf(last)
			out.Groups = append(out.Groups, g)
			return true, err
		}, query, args...)
	})
	if err != nil {
		return history.DeadLetterGroups{}, fail("grouping dead letters", err)
	}
	return out, nil
}

// deadOf returns the subscriptions that a query names, and that have dead letters.
func (w *work) deadOf(q history.DeadLetterQuery) ([]int64, error) {
	if q.Subscription != "" {
		return w.numbers(selectNamed, q.Subscription, q.Subscriber)
	}
	return w.numbers(`SELECT s.no FROM surehook_subscribers o CROSS JOIN surehook_subscriptions s ON s.subscriber = o.no CROSS JOIN surehook_heads h ON h.subscription = s.no
		WHERE o.id = ? AND h.dead > 0`, q.Subscriber)
}

// NoticeGroups implements history.Store.
func (s *Store) NoticeGroups(ctx context.Context, subscriber string) (out history.NoticeGroups, err error) {
	query, args := selectNoticeGroups, []any{history.MaxExamined + 1}
	if subscriber != "" {
		query, args = selectNoticeGroupsOf, append(args, subscriber)
	}
	err = s.read(ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var g history.NoticeGroup
			var first, last int64
			err := rows.Scan(&g.Kind, &g.Subscriber, &g.Subscription, &g.Count, &first, &last, &g.Newest, &g.Detail, &out.More)
			g.First, g.Last = timeOf(first), timeOf(last)
			out.Groups = append(out.Groups, g)
			return true, err
		}, query, args...)
	})
	if err != nil {
		return history.NoticeGroups{}, fail("grouping notices", err)
	}
	return out, nil
}

// AcknowledgeNotices implements history.Store.
func (s *Store) AcknowledgeNotices(ctx context.Context, g history.NoticeGroup, limit int) (done int, err error) {
	err = s.write(ctx, func(w *work) (err error) {
		done, err = w.count(acknowledgeNotices, s.now(), string(g.Kind), g.Subscriber, g.Subscription, micros(g.Last), limit)
		return fail("acknowledging notices", err)
	})
	return done, err
}

// Kinds implements history.Store.
func (s *Store) Kinds(ctx context.Context, id string, object sender.Object) (kinds []history.FoundKind, err error) {
	err = s.read(ctx, func(w *work) error {
		var event, subscription, subscriber, notice, replay, known bool
		err := w.row(selectKinds, id, object.Type, object.ID).Scan(&event, &subscription, &subscriber, &notice, &replay, &known)
		if err != nil {
			return err
		}
		k, err := w.keyOf(id)
		if err == nil {
			_, err = w.delivery(k, s.now())
		}
		if err != nil && !errors.Is(err, errNoDelivery) {
			return err
		}
		for _, f := range []struct {
			kind  history.FoundKind
			there bool
		}{
			{history.FoundEvent, event}, {history.FoundDelivery, err == nil}, {history.FoundSubscription, subscription}, {history.FoundSubscriber, subscriber},
			{history.FoundNotice, notice}, {history.FoundReplay, replay}, {history.FoundObject, known},
		} {
			if f.there {
				kinds = append(kinds, f.kind)
			}
		}
		return nil
	})
	return kinds, fail("looking up an id", err)
}
