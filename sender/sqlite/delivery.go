package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/surehook/surehook/sender"
)

// Event ids begin with eventPrefix, deliveries' with deliveryPrefix.
const (
	eventPrefix    = "evt_"
	deliveryPrefix = "dlv_"
)

// deliveryID is the event's id, with the subscription's number in base 36.
func deliveryID(event string, subscription int64) string {
	return deliveryPrefix + strings.TrimPrefix(event, eventPrefix) + "_" + strconv.FormatInt(subscription, 36)
}

// find returns the key of a delivery that exists, or sender.ErrNotFound.
func (w *work) find(id string) (key sender.DeliveryKey, err error) {
	missing := fmt.Errorf("%w: delivery %q", sender.ErrNotFound, id)
	rest, ok := strings.CutPrefix(id, deliveryPrefix)
	cut := strings.LastIndexByte(rest, '_')
	if !ok || cut < 0 {
		return key, missing
	}
	if key.Subscription, err = strconv.ParseInt(rest[cut+1:], 36, 64); err != nil {
		return key, missing
	}
	for _, event := range []string{eventPrefix + rest[:cut], rest[:cut]} {
		if deliveryID(event, key.Subscription) != id { // numbers can be written in several ways
			continue
		}
		if key.Event, err = w.seqOf(event); err != nil || key.Event == 0 {
			continue
		}
		row, err := w.queueRow(key)
		if err != nil {
			return key, fail("looking for a delivery", err)
		}
		if row.at >= 0 {
			return key, nil
		}
	}
	if err != nil {
		return key, fail("looking for a delivery", err)
	}
	return key, missing
}

// seqOf returns 0 if there is no such event.
func (w *work) seqOf(event string) (seq int64, err error) {
	err = w.row(`SELECT seq FROM surehook_events WHERE id = ?`, event).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return seq, err
}

const selectQueueOf = `SELECT event, made_at, events FROM surehook_queues WHERE subscription = ? AND event >= ? ORDER BY event LIMIT 1`

// queueRow is the row of a queue that a delivery is in.
type queueRow struct {
	event  int64 // its key
	madeAt int64
	events []queued
	at     int // index of the delivery's event; -1: it is not there
}

func (w *work) queueRow(key sender.DeliveryKey) (row queueRow, err error) {
	var packed []byte
	row.at = -1
	err = w.row(selectQueueOf, key.Subscription, key.Event).Scan(&row.event, &row.madeAt, &packed)
	if errors.Is(err, sql.ErrNoRows) {
		return row, nil
	}
	if err == nil {
		row.events, err = unpackEvents(nil, packed, 0)
		row.at = slices.IndexFunc(row.events, func(q queued) bool { return q.event == key.Event })
	}
	return row, err
}

// state is what the tables say of a delivery.
type state struct {
	status   sender.Status
	live     bool
	flying   bool // its lease has not ended
	due      int64
	attempts int64 // as far as they follow from the rest; -1: they do not
}

const (
	selectOneWaiting = `SELECT due, number, single FROM surehook_waiting WHERE subscription = ? AND event = ?`
	selectOneEnded   = `SELECT status FROM surehook_ended WHERE subscription = ? AND event = ?`
	selectClaimed    = `SELECT h.claimed, s.state <> 0 FROM surehook_heads h JOIN surehook_subscriptions s ON s.no = h.subscription
		WHERE h.subscription = ?`
)

// reader reads deliveries, all as of one moment.
type reader struct {
	*work
	now    int64
	leases *leases
	subs   map[int64]*readerSub
}

type readerSub struct {
	sender.Target
	claimed int64
	deleted bool
}

func newReader(w *work, now int64) (*reader, error) {
	var packed []byte
	var turn int64
	if err := w.row(selectLeases).Scan(&turn, &packed); err != nil {
		return nil, err
	}
	l, err := unpackLeases(packed)
	return &reader{work: w, now: now, leases: l, subs: map[int64]*readerSub{}}, err
}

func (r *reader) sub(no int64) (*readerSub, error) {
	if sub := r.subs[no]; sub != nil {
		return sub, nil
	}
	sub := &readerSub{}
	var is int
	err := r.row(selectTarget, no).Scan(&sub.Subscription, &sub.URL, &is, &sub.SubscriberNumber, &sub.Subscriber, &sub.KeyringVersion)
	if err == nil {
		err = r.row(selectClaimed, no).Scan(&sub.claimed, &sub.deleted)
	}
	r.subs[no] = sub
	return sub, err
}

// state is that of a delivery that exists.
func (r *reader) state(key sender.DeliveryKey) (s state, err error) {
	sub, err := r.sub(key.Subscription)
	if err != nil {
		return s, err
	}
	single := false
	if le := r.leases.find(key); le != nil {
		s = state{live: true, flying: le.end > r.now, due: le.end, attempts: le.number - 1}
		single = le.single
	} else {
		err = r.row(selectOneWaiting, key.Subscription, key.Event).Scan(&s.due, &s.attempts, &single)
		s.live = err == nil
		if errors.Is(err, sql.ErrNoRows) {
			if s, err = r.stateAtRest(sub, key); err != nil || !s.live {
				return s, err
			}
		}
	}
	switch {
	case err != nil:
		return s, err
	case sub.deleted && single: // it was delivered before it was sent again
		s.status = sender.StatusDelivered
	case sub.deleted:
		s.status = sender.StatusCancelled
	case s.attempts == 0:
		s.status = sender.StatusPending
	default:
		s.status = sender.StatusAwaitingRetry
	}
	if sub.deleted {
		s.due = 0
	}
	return s, nil
}

// stateAtRest is that of a delivery that is not in flight and does not wait.
func (r *reader) stateAtRest(sub *readerSub, key sender.DeliveryKey) (s state, err error) {
	s.attempts = -1
	err = r.row(selectOneEnded, key.Subscription, key.Event).Scan(&s.status)
	if !errors.Is(err, sql.ErrNoRows) {
		return s, err
	}
	s.status, err = sender.StatusDelivered, nil
	if key.Event > sub.claimed {
		row, err := r.queueRow(key)
		if err != nil {
			return s, err
		}
		if row.at >= 0 && !row.events[row.at].left {
			s = state{live: true, due: row.madeAt}
		}
	}
	return s, nil
}

const selectSummary = `SELECT id, type, object_type, object_id, version, created_at FROM surehook_events WHERE seq = ?`

// summary is a delivery without its body and attempts, which it returns too.
func (r *reader) summary(key sender.DeliveryKey, s state) (out sender.Delivery, attempts []sender.Attempt, err error) {
	sub, err := r.sub(key.Subscription)
	if err != nil {
		return out, nil, err
	}
	var createdAt int64
	err = r.row(selectSummary, key.Event).Scan(&out.Event.ID, &out.Event.Type, &out.Event.Object.Type, &out.Event.Object.ID, &out.Version, &createdAt)
	if err != nil {
		return out, nil, err
	}
	out.ID = deliveryID(out.Event.ID, key.Subscription)
	out.Subscriber, out.Subscription, out.URL = sub.Subscriber, sub.Subscription, sub.URL
	out.Status, out.CreatedAt, out.InFlight = s.status, timeOf(createdAt), s.flying
	if s.live && !s.flying {
		out.NextAttemptAt = timeOf(s.due)
	}
	if s.attempts != 0 {
		if attempts, err = r.attempts(key); err != nil {
			return out, nil, err
		}
	}
	if out.AttemptCount = len(attempts); out.AttemptCount > 0 {
		out.LastErrorClass = attempts[out.AttemptCount-1].Class
	}
	return out, attempts, nil
}

// keys in the order of lists: the newest events first, then by subscription.
func compareKeys(a, b sender.DeliveryKey) int {
	if a.Event != b.Event {
		if a.Event > b.Event {
			return -1
		}
		return 1
	}
	switch {
	case a.Subscription < b.Subscription:
		return -1
	case a.Subscription > b.Subscription:
		return 1
	}
	return 0
}

// newest is before all keys.
var newest = sender.DeliveryKey{Event: math.MaxInt64 - 1, Subscription: math.MaxInt64}

// firsts are the first n of several lists, each once.
func firsts(n int, lists ...[]sender.DeliveryKey) []sender.DeliveryKey {
	all := slices.Concat(lists...)
	slices.SortFunc(all, compareKeys)
	all = slices.Compact(all)
	return all[:min(n, len(all))]
}
