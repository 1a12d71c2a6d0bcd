package sqlite

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Bounds of a page of deliveries.
const (
	pageDefault = 50
	pageMax     = 200
	// lookedAt is how many deliveries are looked at for a page. If a query selects
	// few of many, a page can have fewer than it asks for, or none, and go on.
	lookedAt = 2000
)

// Delivery implements sender.HistoryStore.
func (s *Store) Delivery(ctx context.Context, id string) (out sender.Delivery, err error) {
	err = s.read(ctx, func(w *work) error {
		key, err := w.find(id)
		if err != nil {
			return err
		}
		out, err = w.delivery(key, s.now())
		return fail("reading a delivery", err)
	})
	if err != nil {
		return sender.Delivery{}, err
	}
	return out, nil
}

func (w *work) delivery(key sender.DeliveryKey, now int64) (out sender.Delivery, err error) {
	r, err := newReader(w, now)
	if err != nil {
		return out, err
	}
	st, err := r.state(key)
	if err != nil {
		return out, err
	}
	var attempts []sender.Attempt
	if out, attempts, err = r.summary(key, st); err != nil {
		return out, err
	}
	out.Attempts = attempts
	return out, w.row(`SELECT body FROM surehook_events WHERE seq = ?`, key.Event).Scan(&out.Body)
}

// Deliveries implements sender.HistoryStore. It looks at a bounded number of
// deliveries, so a page can be short, or empty, although another one follows: only
// an empty cursor says that none does.
func (s *Store) Deliveries(ctx context.Context, q sender.DeliveryQuery) (page []sender.Delivery, next string, err error) {
	if q.Limit == 0 {
		q.Limit = pageDefault
	}
	if q.Limit < 1 || q.Limit > pageMax {
		return nil, "", fmt.Errorf("%w limit %d: it must be from 1 to %d", sender.ErrInvalid, q.Limit, pageMax)
	}
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return nil, "", err
	}
	err = s.read(ctx, func(w *work) error {
		r, err := newReader(w, s.now())
		if err == nil {
			page, next, err = r.page(q, after)
		}
		return fail("listing deliveries", err)
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

func (r *reader) page(q sender.DeliveryQuery, after sender.DeliveryKey) (page []sender.Delivery, next string, err error) {
	var event, subscription int64
	if q.Event != "" {
		if event, err = r.seqOf(q.Event); err != nil || event == 0 {
			return nil, "", err
		}
	}
	if q.Subscription != "" {
		err := r.row(`SELECT no FROM surehook_subscriptions WHERE id = ?`, q.Subscription).Scan(&subscription)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", err
		}
	}
	if event != 0 && subscription != 0 { // the one before which only it comes
		if first := (sender.DeliveryKey{Event: event, Subscription: subscription - 1}); compareKeys(first, after) > 0 {
			after = first
		}
	}
	sources, err := r.sources(q, event, subscription)
	if err != nil {
		return nil, "", err
	}
	last := after
	for looked := 0; looked < lookedAt; {
		keys, err := merged(sources, after, q.Limit+1)
		if err != nil {
			return nil, "", err
		}
		for _, key := range keys {
			after = key
			looked++
			if subscription != 0 && key.Subscription != subscription {
				return page, "", nil // only of one event, in the order of the subscriptions
			}
			st, err := r.state(key)
			if err != nil {
				return nil, "", err
			}
			if q.Status != "" && st.status != q.Status {
				continue
			}
			if len(page) == q.Limit {
				return page, cursor(last), nil
			}
			d, _, err := r.summary(key, st)
			if err != nil {
				return nil, "", err
			}
			page, last = append(page, d), key
		}
		if len(keys) <= q.Limit {
			return page, "", nil
		}
	}
	return page, cursor(after), nil
}

func merged(sources []source, after sender.DeliveryKey, n int) ([]sender.DeliveryKey, error) {
	var lists [][]sender.DeliveryKey
	for _, s := range sources {
		keys, err := s(after, n)
		if err != nil {
			return nil, err
		}
		lists = append(lists, keys)
	}
	return firsts(n, lists...), nil
}

var cursors = base64.RawURLEncoding.Strict()

func cursor(k sender.DeliveryKey) string {
	return cursors.EncodeToString(fmt.Appendf(nil, "%d.%d", k.Event, k.Subscription))
}

func parseCursor(text string) (k sender.DeliveryKey, err error) {
	if text == "" {
		return newest, nil
	}
	b, err := cursors.DecodeString(text)
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d.%d", &k.Event, &k.Subscription)
	}
	if err != nil || k.Event < 1 || k.Subscription < 1 || fmt.Sprintf("%d.%d", k.Event, k.Subscription) != string(b) {
		return k, fmt.Errorf("%w cursor: it must be one that a page before came with", sender.ErrInvalid)
	}
	return k, nil
}

// Redeliver implements sender.HistoryStore.
func (s *Store) Redeliver(ctx context.Context, id string) error {
	err := s.write(ctx, func(w *work) error {
		key, err := w.find(id)
		if err != nil {
			return err
		}
		b, err := s.newBatch(w, &sender.Batch{})
		if err == nil {
			err = b.redeliver(key)
		}
		if errors.Is(err, sender.ErrCancelled) {
			return fmt.Errorf("%w: delivery %q", err, id)
		}
		return fail("redelivering", err)
	})
	if err == nil {
		s.Wake()
	}
	return err
}

func (b *batch) redeliver(key sender.DeliveryKey) error {
	sub, err := b.known.subscription(b.work, key.Subscription)
	if err != nil {
		return err
	}
	if sub.state != stateActive {
		return sender.ErrCancelled
	}
	if le := b.leases.find(key); le != nil { // the attempt in hand becomes the first of the new schedule
		le.tries, le.first = 1, le.claimedAt
		b.leases.dirty = true
		return b.store()
	}
	h, err := b.headOf(key.Subscription)
	if err != nil {
		return err
	}
	row := waiting{key: key, due: b.now}
	err = b.row(selectOneWaiting, key.Subscription, key.Event).Scan(new(int64), &row.number, &row.single)
	switch {
	case err == nil:
		err = b.execs(deleteWaiting, key.Subscription, list([]int64{key.Event}))
	case errors.Is(err, sql.ErrNoRows):
		err = b.restart(h, &row)
	}
	if err == nil {
		err = b.wait(h, row)
	}
	if err != nil {
		return err
	}
	h.lower(row.due)
	return b.store()
}

// restart completes the row of a delivery that has ended, or was never claimed.
func (b *batch) restart(h *head, row *waiting) error {
	var status sender.Status
	err := b.row(selectOneEnded, row.key.Subscription, row.key.Event).Scan(&status)
	switch {
	case err == nil && status == sender.StatusCancelled:
		return sender.ErrCancelled
	case err == nil:
		err = b.execs(`DELETE FROM surehook_ended WHERE subscription = ? AND event = ?`, row.key.Subscription, row.key.Event)
		if err != nil {
			return err
		}
	case !errors.Is(err, sql.ErrNoRows):
		return err
	default:
		if left, err := b.leaveQueue(h, row.key); err != nil || left {
			return err
		}
		row.single = true
	}
	all, err := b.work.attempts(row.key)
	row.number = int64(len(all))
	return err
}

// leaveQueue marks a delivery as no longer in its queue. It returns false for one
// that was claimed before.
func (b *batch) leaveQueue(h *head, key sender.DeliveryKey) (left bool, err error) {
	if key.Event <= h.claimed {
		return false, nil
	}
	row, err := b.queueRow(key)
	if err != nil || row.at < 0 || row.events[row.at].left {
		return false, err
	}
	row.events[row.at].left = true
	return true, b.execs(`UPDATE surehook_queues SET events = ? WHERE subscription = ? AND event = ?`,
		packEvents(row.events), key.Subscription, row.event)
}
