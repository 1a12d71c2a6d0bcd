package postgres

import (
	"context"
	"errors"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	deadNewest   = `SELECT subscription, event, ended_at FROM surehook_ended WHERE status = 'dead_lettered' ORDER BY no DESC LIMIT $1`
	deadNewestOf = `SELECT x.* FROM unnest($2::bigint[]) AS u(subscription) CROSS JOIN LATERAL (
			SELECT subscription, event, ended_at FROM surehook_ended WHERE subscription = u.subscription AND status = 'dead_lettered' ORDER BY no DESC LIMIT $1) x`

	// groupDead looks up how the last attempt of each ended. The last column tells whether
	// there may be more than were looked at.
	groupDead = ` SELECT s.id, o.id, s.url, g.class, g.code, g.n, g.first, g.last, `
	groupsOf  = `
		FROM (SELECT x.subscription, coalesce(a.class, '') AS class, coalesce(a.status_code, 0) AS code, count(*) AS n, min(x.ended_at) AS first, max(x.ended_at) AS last
				FROM newest x LEFT JOIN LATERAL (
					SELECT class, status_code FROM surehook_attempts WHERE event = x.event AND subscription = x.subscription ORDER BY number DESC LIMIT 1) a ON true
				GROUP BY 1, 2, 3) g
			JOIN surehook_subscriptions s ON s.no = g.subscription JOIN surehook_subscribers o ON o.no = s.subscriber
		ORDER BY g.n DESC, s.no, g.class COLLATE "C", g.code`
	selectDeadGroups   = `WITH newest AS MATERIALIZED (` + deadNewest + `)` + groupDead + `(SELECT count(*) FROM newest) = $1` + groupsOf
	selectDeadGroupsOf = `WITH newest AS MATERIALIZED (` + deadNewestOf + `)` + groupDead +
		`(SELECT max(n) FROM (SELECT count(*) AS n FROM newest GROUP BY subscription) c) = $1` + groupsOf
	selectDeadOf = `SELECT s.no FROM surehook_subscriptions s JOIN surehook_heads h ON h.subscription = s.no
		WHERE s.subscriber = (SELECT no FROM surehook_subscribers WHERE id = $1) AND h.dead > 0`

	// Notices that nobody has acknowledged, the newest first. With an addressee, only the
	// addressee's newest notices are looked at.
	unread         = `SELECT acknowledged_at IS NULL, id, kind, subscriber, subscription, detail, created_at FROM surehook_notices `
	selectUnread   = unread + `WHERE acknowledged_at IS NULL ORDER BY no DESC LIMIT $1`
	selectUnreadOf = unread + `WHERE subscriber >= $2 AND (subscriber, no) <= ($2, 9223372036854775807) ORDER BY subscriber DESC, no DESC LIMIT $1`

	// acknowledgeNotices goes over those that nobody has acknowledged.
	acknowledgeNotices = `UPDATE surehook_notices SET acknowledged_at = $1 WHERE no = ANY(ARRAY(
			SELECT no FROM surehook_notices WHERE acknowledged_at IS NULL AND kind = $2 AND subscriber = $3 AND subscription = $4 AND created_at <= $5 ORDER BY no LIMIT $6))
		AND acknowledged_at IS NULL`

	selectKinds = `SELECT EXISTS (SELECT 1 FROM surehook_events WHERE id = $1), EXISTS (SELECT 1 FROM surehook_subscriptions WHERE id = $1),
		EXISTS (SELECT 1 FROM surehook_subscribers WHERE id = $1), EXISTS (SELECT 1 FROM surehook_notices WHERE id = $1),
		EXISTS (SELECT 1 FROM surehook_replays WHERE id = $1), $2::text <> '' AND EXISTS (SELECT 1 FROM surehook_objects WHERE type = $2 AND id = $3)`
)

// DeadLetterGroups implements history.Store.
func (c *core) DeadLetterGroups(ctx context.Context, q history.DeadLetterQuery) (out history.DeadLetterGroups, err error) {
	if !storable(q.Subscription) || !storable(q.Subscriber) {
		return out, nil
	}
	err = c.read(ctx, func(w *work) error {
		query, args := selectDeadGroups, []any{int64(history.MaxExamined)}
		if q.Subscription != "" || q.Subscriber != "" {
			text, named := selectDeadOf, []any{q.Subscriber}
			if q.Subscription != "" {
				text, named = selectNamed, []any{q.Subscription, q.Subscriber}
			}
			of, err := w.numbers(text, named...)
			if err != nil || len(of) == 0 {
				return err
			}
			query, args = selectDeadGroupsOf, []any{int64(rules.Ahead(history.MaxExamined, len(of))), of}
		}
		return w.each(func(r rows) (bool, error) {
			var g history.DeadLetterGroup
			var first, last timestamp
			err := r.Scan(&g.Subscription, &g.Subscriber, &g.URL, &g.Class, &g.StatusCode, &g.Count, &first, &last, &out.More)
			g.First, g.Last = first.time(), last.time()
			out.Groups = append(out.Groups, g)
			return true, err
		}, query, args...)
	})
	if err != nil {
		return history.DeadLetterGroups{}, fail("grouping dead letters", err)
	}
	return out, nil
}

// NoticeGroups implements history.Store.
func (c *core) NoticeGroups(ctx context.Context, subscriber string) (out history.NoticeGroups, err error) {
	if !storable(subscriber) {
		return out, nil
	}
	query, args := selectUnread, []any{int64(history.MaxExamined)}
	if subscriber != "" {
		query, args = selectUnreadOf, append(args, subscriber)
	}
	n := 0
	err = c.read(ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var notice sender.Notice
			var created timestamp
			var unread bool
			err := r.Scan(&unread, &notice.ID, &notice.Kind, &notice.Subscriber, &notice.Subscription, &notice.Detail, &created)
			notice.CreatedAt = created.time()
			if unread {
				out.Add(&notice)
			}
			n++
			return true, err
		}, query, args...)
	})
	if err != nil {
		return history.NoticeGroups{}, fail("grouping notices", err)
	}
	out.More = n == history.MaxExamined
	return out, nil
}

// AcknowledgeNotices implements history.Store.
func (c *core) AcknowledgeNotices(ctx context.Context, g history.NoticeGroup, limit int) (done int, err error) {
	if !storable(string(g.Kind)) || !storable(g.Subscriber) || !storable(g.Subscription) {
		return 0, nil
	}
	err = c.write(ctx, func(w *work) error {
		n, err := w.exec(acknowledgeNotices, w.now, string(g.Kind), g.Subscriber, g.Subscription, timestampOf(g.Last), limit)
		done = int(n)
		return fail("acknowledging notices", err)
	})
	return done, err
}

// Kinds implements history.Store.
func (c *core) Kinds(ctx context.Context, id string, object sender.Object) (kinds []history.FoundKind, err error) {
	if !storable(id) || !storable(object.Type) || !storable(object.ID) {
		return nil, nil
	}
	err = c.read(ctx, func(w *work) error {
		var event, subscription, subscriber, notice, replay, known bool
		err := w.row(selectKinds, id, object.Type, object.ID).Scan(&event, &subscription, &subscriber, &notice, &replay, &known)
		if err != nil {
			return err
		}
		k, err := w.keyOf(id)
		if err == nil {
			_, err = w.delivery(k)
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
