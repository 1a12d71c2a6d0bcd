package postgres

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

var errNoDelivery = fmt.Errorf("%w: delivery", sender.ErrNotFound)

// storable tells whether PostgreSQL can hold a text. A text that it cannot hold is nobody's
// id.
func storable(text string) bool { return ident.Storable("", text) == nil }

const selectPosition = `SELECT f.position, e.id FROM surehook_events e JOIN surehook_feed f ON f.event = e.no WHERE e.id IN ($1, $2)`

// keyOf finds the delivery with an id.
func (w *work) keyOf(id string) (k dispatch.DeliveryKey, err error) {
	rest, _ := strings.CutPrefix(id, deliveryPrefix)
	cut := strings.LastIndexByte(rest, '_')
	if cut < 0 || !storable(rest) {
		return k, errNoDelivery
	}
	k.Subscription, err = strconv.ParseInt(rest[cut+1:], 36, 64)
	if err != nil {
		return k, errNoDelivery
	}
	var eventID string
	err = w.row(selectPosition, eventPrefix+rest[:cut], rest[:cut]).Scan(&k.Event, &eventID)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && deliveryID(eventID, k.Subscription) != id: // numbers can be written in several ways
		return k, errNoDelivery
	}
	return k, err
}

// delivery is all that the tables say about one delivery.
type delivery struct {
	sender.Delivery
	live    *live
	due     timestamp // as stored, if it is live: when it is due, or its lease ends
	rank    int       // if it waits
	behind  bool      // it is live, and behind in its line
	deleted bool      // its subscription is deleted
	held    bool      // its subscription is paused or disabled
	bytes   int32     // the length of its body
	skipped bool      // it is live, and a resume skipped it, or its event was redacted
}

const (
	// selectDeliveries reads any number of deliveries in one round trip. For a pending one
	// the event alone tells whether a resume skipped it.
	selectDeliveries = `SELECT u.event, u.subscription, e.id, e.type, e.object_type, e.object_id, e.version, e.created_at, e.notice, e.url, coalesce(e.traceparent, ''), octet_length(e.body),
			s.id, s.url, s.status, o.id, s.epoch, s.resumed_at, a.n, a.delivered, a.class, a.code, coalesce(d.status, ''),
			l.pending IS NOT NULL, l.due, coalesce(l.number, 0), coalesce(l.tries, 0), l.first_at, coalesce(l.stood, 0), l.claimed_at,
			coalesce(l.single, false), coalesce(l.spared, false), coalesce(l.epoch, 0), coalesce(l.rank, 0), coalesce(l.pending, false), coalesce(l.behind, false),
			s.left_to >= 0 AND EXISTS (SELECT 1 FROM surehook_left x WHERE x.subscription = s.no AND x.epoch > l.epoch AND (x.event >= u.event OR x.seen < u.event AND e.no <@ x.unexpanded))
		FROM unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
			JOIN surehook_feed f ON f.position = u.event JOIN surehook_events e ON e.no = f.event
			JOIN surehook_subscriptions s ON s.no = u.subscription JOIN surehook_subscribers o ON o.no = s.subscriber
			LEFT JOIN surehook_ended d ON d.subscription = u.subscription AND d.event = u.event
			CROSS JOIN LATERAL (
				SELECT count(*) AS n, coalesce(bool_or(class = ''), false) AS delivered, coalesce((array_agg(class ORDER BY number DESC))[1], '') AS class,
					coalesce((array_agg(status_code ORDER BY number DESC))[1], 0) AS code
				FROM surehook_attempts WHERE event = u.event AND subscription = u.subscription) a
			LEFT JOIN LATERAL (
				SELECT due, 0 AS number, 0 AS tries, NULL::timestamptz AS first_at, 0::bigint AS stood, NULL::timestamptz AS claimed_at,
						false AS single, false AS spared, 0::bigint AS epoch, 0 AS rank, true AS pending, false AS behind
					FROM surehook_pending WHERE subscription = u.subscription AND event = u.event
				UNION ALL SELECT until, number, tries, first_at, stood, claimed_at, single, spared, epoch, 0, false, false
					FROM surehook_leases WHERE subscription = u.subscription AND event = u.event
				UNION ALL SELECT due, number, tries, first_at, stood, NULL, single, spared, epoch, rank, false, false
					FROM surehook_waiting WHERE subscription = u.subscription AND event = u.event
				UNION ALL SELECT due, number, tries, first_at, stood, NULL, single, spared, epoch, rank, place = 1, true
					FROM surehook_lines WHERE subscription = u.subscription AND event = u.event AND place < 3
				ORDER BY behind LIMIT 1) l ON true`
	attemptsOf = `SELECT number, started_at, duration, status_code, class, error, snippet, next_at, coalesce(headers, '')
		FROM surehook_attempts WHERE event = $1 AND subscription = $2 AND number `
	selectAttempts = attemptsOf + `< $3::bigint ORDER BY number DESC LIMIT $4::bigint`
	// selectTellingAttempts finds the attempts that explain a delivery.
	selectTellingAttempts = attemptsOf + `IN (
			SELECT min(number) FROM surehook_attempts WHERE event = $1 AND subscription = $2
			UNION ALL SELECT min(number) FROM surehook_attempts WHERE event = $1 AND subscription = $2 AND class = ''
			UNION ALL SELECT max(number) FROM surehook_attempts WHERE event = $1 AND subscription = $2)
		ORDER BY number DESC`
	selectBody = `SELECT e.body FROM surehook_feed f JOIN surehook_events e ON e.no = f.event WHERE f.position = $1`
)

// deliveries reads deliveries without their bodies and attempts. A key that no delivery has
// is missing in what it returns.
func (w *work) deliveries(keys []dispatch.DeliveryKey) (map[dispatch.DeliveryKey]*delivery, error) {
	all := make(map[dispatch.DeliveryKey]*delivery, len(keys))
	if len(keys) == 0 {
		return all, nil
	}
	err := w.each(func(r rows) (bool, error) {
		k, d, err := w.scanDelivery(r)
		if err == nil && d.Status != "" {
			all[k] = d
		}
		return true, err
	}, selectDeliveries, column(keys, func(k dispatch.DeliveryKey) int64 { return k.Event }),
		column(keys, func(k dispatch.DeliveryKey) int64 { return k.Subscription }))
	return all, err
}

// delivery reads one delivery, or returns errNoDelivery.
func (w *work) delivery(k dispatch.DeliveryKey) (*delivery, error) {
	all, err := w.deliveries([]dispatch.DeliveryKey{k})
	if err == nil && all[k] == nil {
		err = errNoDelivery
	}
	return all[k], err
}

func (w *work) scanDelivery(r rows) (k dispatch.DeliveryKey, d *delivery, err error) {
	d = &delivery{}
	var l live
	var created, resumedAt timestamp
	var epoch int64
	var status string
	var delivered, isLive bool
	var ended sender.Status
	err = r.Scan(&k.Event, &k.Subscription, &d.Event.ID, &d.Event.Type, &d.Event.Object.Type, &d.Event.Object.ID, &d.Version, &created, &d.Event.Notice, &d.Event.URL, &d.Event.Traceparent, &d.bytes,
		&d.Subscription, &d.URL, &status, &d.Subscriber, &epoch, &resumedAt, &d.AttemptCount, &delivered, &d.LastErrorClass, &d.LastStatusCode, &ended,
		&isLive, &d.due, &l.number, &l.tries, &l.firstAt, &l.stood, &l.claimedAt, &l.single, &l.spared, &l.epoch, &d.rank, &l.pending, &d.behind, &d.skipped)
	if err != nil {
		return k, nil, err
	}
	d.Redacted = d.bytes == 0
	if d.Event.URL != "" {
		d.URL = d.Event.URL
	}
	d.ID, d.CreatedAt, d.Event.CreatedAt = deliveryID(d.Event.ID, k.Subscription), created.time(), created.time()
	d.deleted = status == statusDeleted || status == statusSwept
	d.held = status == string(sender.SubscriptionPaused) || status == string(sender.SubscriptionDisabled)
	if isLive {
		l.event, l.subscription = k.Event, k.Subscription
		d.live, d.skipped = &l, d.skipped || d.Redacted
		d.InFlight = l.claimedAt != none && d.due > w.now
		due := d.due
		switch {
		case l.claimedAt != none:
		case l.pending:
			due = max(due, resumedAt)
		case l.epoch < epoch:
			due = resumedAt
		}
		if !d.deleted && !d.skipped && !d.held && !d.InFlight && !d.behind {
			d.NextAttemptAt = due.time()
		}
	}
	d.Status = d.statusOf(ended, delivered)
	return k, d, nil
}

// statusOf returns "" if there is no such delivery.
func (d *delivery) statusOf(ended sender.Status, delivered bool) sender.Status {
	switch {
	case d.live != nil:
		return rules.Status(d.deleted || d.skipped, d.live.single, d.held, d.AttemptCount)
	case ended == "" && delivered:
		return sender.StatusDelivered
	}
	return ended
}

// full reads some of a delivery's attempts, oldest first, and the body of its event if body is
// not nil.
func (w *work) full(k dispatch.DeliveryKey, q history.AttemptQuery, body *[]byte) ([]sender.Attempt, error) {
	var others []query
	if body != nil {
		into := func(r rows) error { return r.Scan(body) }
		others = append(others, w.query(selectBody, k.Event).rows(into), w.query(selectKeptBody, k.Event, k.Subscription).rows(into))
	}
	return w.attempts(w.query(selectAttempts, k.Event, k.Subscription, cmp.Or(int64(q.Before), math.MaxInt64), int64(q.Limit)), others...)
}

// attempts reads attempts, oldest first, by a query that has the newest first, and sends others
// with it.
func (w *work) attempts(q query, others ...query) (list []sender.Attempt, err error) {
	err = w.send(append([]query{q.rows(func(r rows) error {
		var a sender.Attempt
		var started, next timestamp
		var micros int64
		err := r.Scan(&a.Number, &started, &micros, &a.StatusCode, &a.Class, &a.Error, &a.Snippet, &next, &a.Headers)
		a.StartedAt, a.NextAttemptAt = started.time(), next.time()
		a.Duration = time.Duration(micros) * time.Microsecond
		list = append(list, a)
		return err
	})}, others...)...)
	slices.Reverse(list)
	return list, err
}
