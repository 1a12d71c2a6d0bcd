package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// Dead letters, the newest first, with how their last attempts ended.
	deadEnds = `SELECT x.subscription, x.ended_at, a.class, a.status_code FROM (SELECT no, subscription, event, ended_at FROM surehook_ended INDEXED BY `
	deadLast = `) x LEFT JOIN surehook_attempts a ON a.event = x.event AND a.subscription = x.subscription
		AND a.number = (SELECT max(number) FROM surehook_attempts WHERE event = x.event AND subscription = x.subscription)`
	selectDeadEnds   = deadEnds + `surehook_ended_order WHERE status = 'dead_lettered' ORDER BY no DESC LIMIT ?1 + 0` + deadLast
	selectDeadEndsOf = deadEnds + `surehook_ended_of WHERE subscription = ?2 AND status = 'dead_lettered' ORDER BY no DESC LIMIT ?1 + 0` + deadLast
	selectDeadOwner  = `SELECT s.id, o.id, s.url FROM surehook_subscriptions s CROSS JOIN surehook_subscribers o ON o.no = s.subscriber WHERE s.no = ?`
	selectWithDead   = `SELECT s.no FROM surehook_subscribers o CROSS JOIN surehook_subscriptions s ON s.subscriber = o.no CROSS JOIN surehook_heads h ON h.subscription = s.no
		WHERE o.id = ? AND h.dead > 0`

	// Notices that nobody has acknowledged, the newest first. With an addressee, only the
	// addressee's newest notices are looked at.
	unread         = `SELECT acknowledged_at, id, kind, subscriber, subscription, detail, created_at FROM surehook_notices `
	selectUnread   = unread + `INDEXED BY surehook_notices_unread WHERE acknowledged_at = 0 ORDER BY no DESC LIMIT ?1 + 0`
	selectUnreadOf = unread + `INDEXED BY surehook_notices_of WHERE subscriber = ?2 ORDER BY no DESC LIMIT ?1 + 0`

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
		groups := deadGroups{work: w, by: map[deadKey]*history.DeadLetterGroup{}}
		if q.Subscription == "" && q.Subscriber == "" {
			err = groups.look(history.MaxExamined, selectDeadEnds)
		} else {
			err = groups.of(q)
		}
		if err == nil {
			out, err = groups.done()
		}
		return err
	})
	if err != nil {
		return history.DeadLetterGroups{}, fail("grouping dead letters", err)
	}
	return out, nil
}

type deadKey struct {
	subscription int64
	class        sender.Class
	code         int64
}

// deadGroups groups dead letters.
type deadGroups struct {
	*work
	by   map[deadKey]*history.DeadLetterGroup
	more bool
}

// of looks at those that a query names, at as many of each subscription.
func (g *deadGroups) of(q history.DeadLetterQuery) error {
	query, args := selectWithDead, []any{q.Subscriber}
	if q.Subscription != "" {
		query, args = selectNamed, []any{q.Subscription, q.Subscriber}
	}
	of, err := g.numbers(query, args...)
	for _, no := range of {
		if err == nil {
			err = g.look(rules.Ahead(history.MaxExamined, len(of)), selectDeadEndsOf, no)
		}
	}
	return err
}

func (g *deadGroups) look(limit int, query string, args ...any) error {
	n := 0
	err := g.each(func(rows *sql.Rows) (bool, error) {
		var k deadKey
		var at int64
		var class sql.NullString
		var code sql.NullInt64
		err := rows.Scan(&k.subscription, &at, &class, &code)
		k.class, k.code = sender.Class(class.String), code.Int64
		ended := timeOf(at)
		if g.by[k] == nil {
			g.by[k] = &history.DeadLetterGroup{Class: k.class, StatusCode: int(k.code), First: ended, Last: ended}
		}
		g.by[k].Add(ended)
		n++
		return true, err
	}, query, append([]any{limit}, args...)...)
	g.more = g.more || n == limit
	return err
}

// done returns the groups in their order.
func (g *deadGroups) done() (out history.DeadLetterGroups, err error) {
	keys := slices.SortedFunc(maps.Keys(g.by), func(a, b deadKey) int {
		return cmp.Or(cmp.Compare(g.by[b].Count, g.by[a].Count), cmp.Compare(a.subscription, b.subscription), cmp.Compare(a.class, b.class), cmp.Compare(a.code, b.code))
	})
	for _, k := range keys {
		group := g.by[k]
		if err := g.row(selectDeadOwner, k.subscription).Scan(&group.Subscription, &group.Subscriber, &group.URL); err != nil {
			return out, err
		}
		out.Groups = append(out.Groups, *group)
	}
	out.More = g.more
	return out, nil
}

// NoticeGroups implements history.Store.
func (s *Store) NoticeGroups(ctx context.Context, subscriber string) (out history.NoticeGroups, err error) {
	query, args := selectUnread, []any{history.MaxExamined}
	if subscriber != "" {
		query, args = selectUnreadOf, append(args, subscriber)
	}
	n := 0
	err = s.read(ctx, func(w *work) error {
		return w.each(func(rows *sql.Rows) (bool, error) {
			var notice sender.Notice
			var acknowledged, created int64
			err := rows.Scan(&acknowledged, &notice.ID, &notice.Kind, &notice.Subscriber, &notice.Subscription, &notice.Detail, &created)
			notice.CreatedAt = timeOf(created)
			if acknowledged == 0 {
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
