package sqlite

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

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// A delivery's id has its event's id without the prefix, and its subscription's number in
// base 36.
const (
	eventPrefix    = "evt_"
	deliveryPrefix = "dlv_"
)

func deliveryID(eventID string, subscription int64) string {
	return deliveryPrefix + strings.TrimPrefix(eventID, eventPrefix) + "_" + strconv.FormatInt(subscription, 36)
}

var errNoDelivery = fmt.Errorf("%w: delivery", sender.ErrNotFound)

const selectSeq = `SELECT seq, id FROM surehook_events WHERE id IN (?, ?)`

// keyOf finds the delivery with an id.
func (w *work) keyOf(id string) (k dispatch.DeliveryKey, err error) {
	rest, _ := strings.CutPrefix(id, deliveryPrefix)
	cut := strings.LastIndexByte(rest, '_')
	if cut < 0 {
		return k, errNoDelivery
	}
	k.Subscription, err = strconv.ParseInt(rest[cut+1:], 36, 64)
	if err != nil {
		return k, errNoDelivery
	}
	var eventID string
	err = w.row(selectSeq, eventPrefix+rest[:cut], rest[:cut]).Scan(&k.Event, &eventID)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && deliveryID(eventID, k.Subscription) != id: // numbers can be written in several ways
		return k, errNoDelivery
	}
	return k, err
}

// delivery is a delivery as the tables have it.
type delivery struct {
	sender.Delivery
	live    *live
	deleted bool // its subscription is deleted
	held    bool // its subscription is paused or disabled
	skipped bool // it is live, and a resume has skipped it, or its event was redacted
}

const (
	selectDelivery = `SELECT e.id, e.type, e.object_type, e.object_id, e.version, e.created_at, e.notice, e.url, coalesce(e.traceparent, ''), s.id, s.url, s.status, o.id, h.epoch, h.resumed_at, h.left_to, length(e.body) = 0
		FROM surehook_events e, surehook_subscriptions s JOIN surehook_subscribers o ON o.no = s.subscriber JOIN surehook_heads h ON h.subscription = s.no
		WHERE e.seq = ? + 0 AND s.no = ? + 0`

	countAttempts = `SELECT count(*), coalesce(max(class = ''), 0) FROM surehook_attempts WHERE event = ? AND subscription = ?`
)

// delivery reads a delivery without its body and its attempts. It returns errNoDelivery
// if there is none.
func (w *work) delivery(k dispatch.DeliveryKey, now int64) (*delivery, error) {
	d := &delivery{}
	var created int64
	var status string
	var h head
	err := w.row(selectDelivery, k.Event, k.Subscription).Scan(&d.Event.ID, &d.Event.Type, &d.Event.Object.Type, &d.Event.Object.ID,
		&d.Version, &created, &d.Event.Notice, &d.Event.URL, &d.Event.Traceparent, &d.Subscription, &d.URL, &status, &d.Subscriber, &h.epoch, &h.resumedAt, &h.skippedTo, &d.Redacted)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errNoDelivery
	}
	if err != nil {
		return nil, err
	}
	if d.Event.URL != "" {
		d.URL = d.Event.URL
	}
	d.ID, d.CreatedAt, d.Event.CreatedAt = deliveryID(d.Event.ID, k.Subscription), timeOf(created), timeOf(created)
	d.deleted = status == statusDeleted || status == statusSwept
	d.held = status == string(sender.SubscriptionPaused) || status == string(sender.SubscriptionDisabled)

	delivered := false
	if err := w.row(countAttempts, k.Event, k.Subscription).Scan(&d.AttemptCount, &delivered); err != nil {
		return nil, err
	}
	if d.AttemptCount > 0 {
		if d.LastErrorClass, d.LastStatusCode, err = w.lastAnswer(k.Event, k.Subscription); err != nil {
			return nil, err
		}
	}
	due, err := w.readLive(d, k, &h)
	if err != nil {
		return nil, err
	}
	if d.live != nil {
		d.InFlight = d.live.claimedAt != 0 && due > now
		if !d.deleted && !d.skipped && !d.held && !d.InFlight && !d.live.behind {
			d.NextAttemptAt = timeOf(due)
		}
	}
	d.Status, err = w.statusOf(k, d, delivered)
	return d, err
}

const selectLive = `SELECT due, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0 FROM surehook_pending WHERE subscription = ?1 AND event = ?2
		UNION ALL SELECT until, number, tries, first_at, stood, claimed_at, single, spared, epoch, 0, 0 FROM surehook_leases WHERE subscription = ?1 AND event = ?2
		UNION ALL SELECT due, number, tries, first_at, stood, 0, single, spared, epoch, 0, 0 FROM surehook_waiting WHERE subscription = ?1 AND event = ?2
		UNION ALL SELECT due, number, tries, first_at, stood, 0, single, spared, epoch, place = 1, 1 FROM surehook_lines l WHERE subscription = ?1 AND event = ?2 AND place IN (1, 2) AND ` + isBehind

// readLive reads the row of a delivery, if it is live, and whether a resume has skipped it.
// It returns when the delivery is due, or the end of its lease.
func (w *work) readLive(d *delivery, k dispatch.DeliveryKey, h *head) (due int64, err error) {
	l := live{event: k.Event, subscription: k.Subscription}
	err = w.row(selectLive, k.Subscription, k.Event).Scan(&due, &l.number, &l.tries, &l.firstAt, &l.stood, &l.claimedAt, &l.single, &l.spared, &l.epoch, &l.pending, &l.behind)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err == nil && k.Event <= h.skippedTo {
		err = w.row(selectSkipped, k.Subscription, l.epoch, k.Event).Scan(&d.skipped)
	}
	if err != nil {
		return 0, err
	}
	d.live, d.skipped = &l, d.skipped || d.Redacted
	switch {
	case l.claimedAt != 0:
	case l.pending:
		due = max(due, h.resumedAt)
	case l.epoch < h.epoch:
		due = h.resumedAt
	}
	return due, nil
}

const selectEnd = `SELECT status FROM surehook_ended WHERE subscription = ? AND event = ?`

func (w *work) statusOf(k dispatch.DeliveryKey, d *delivery, delivered bool) (sender.Status, error) {
	if d.live != nil {
		return rules.Status(d.deleted || d.skipped, d.live.single, d.held, d.AttemptCount), nil
	}
	var ended sender.Status
	err := w.row(selectEnd, k.Subscription, k.Event).Scan(&ended)
	switch {
	case errors.Is(err, sql.ErrNoRows) && delivered:
		return sender.StatusDelivered, nil
	case errors.Is(err, sql.ErrNoRows):
		return "", errNoDelivery
	}
	return ended, err
}

const selectLastAnswer = `SELECT class, status_code FROM surehook_attempts WHERE event = ? + 0 AND subscription = ? + 0 ORDER BY number DESC LIMIT 1`

// lastAnswer returns the class and the status code of a delivery's last attempt.
func (w *work) lastAnswer(event, subscription int64) (class sender.Class, code int, err error) {
	err = w.row(selectLastAnswer, event, subscription).Scan(&class, &code)
	if errors.Is(err, sql.ErrNoRows) {
		return sender.ClassNone, 0, nil
	}
	return class, code, err
}

const (
	attemptsOf = `SELECT number, started_at, duration, status_code, class, error, snippet, next_at, coalesce(headers, '')
		FROM surehook_attempts WHERE event = ?1 + 0 AND subscription = ?2 + 0 AND number `
	selectAttempts = attemptsOf + `< ?3 ORDER BY number DESC LIMIT ?4 + 0`

	// selectTellingAttempts finds the attempts that explain a delivery.
	selectTellingAttempts = attemptsOf + `IN (
			SELECT min(number) FROM surehook_attempts WHERE event = ?1 + 0 AND subscription = ?2 + 0
			UNION ALL SELECT min(number) FROM surehook_attempts WHERE event = ?1 + 0 AND subscription = ?2 + 0 AND class = ''
			UNION ALL SELECT max(number) FROM surehook_attempts WHERE event = ?1 + 0 AND subscription = ?2 + 0)
		ORDER BY number DESC`
)

// attempts reads some of a delivery's attempts, oldest first.
func (w *work) attempts(k dispatch.DeliveryKey, q history.AttemptQuery) ([]sender.Attempt, error) {
	return w.readAttempts(selectAttempts, k.Event, k.Subscription, cmp.Or(int64(q.Before), math.MaxInt64), q.Limit)
}

// readAttempts reads attempts, oldest first. The query has the newest first.
func (w *work) readAttempts(query string, args ...any) (list []sender.Attempt, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var a sender.Attempt
		var started, micros, next int64
		err := rows.Scan(&a.Number, &started, &micros, &a.StatusCode, &a.Class, &a.Error, &a.Snippet, &next, &a.Headers)
		a.StartedAt, a.NextAttemptAt = timeOf(started), timeOf(next)
		a.Duration = time.Duration(micros) * time.Microsecond
		list = append(list, a)
		return true, err
	}, query, args...)
	slices.Reverse(list)
	return list, err
}
