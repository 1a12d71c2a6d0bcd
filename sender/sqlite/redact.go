package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// redactLook is how many events a batch looks at. No index leads from an object to
	// its events: every publish would pay for it.
	redactLook = 20_000
	// redactRows is how many rows of deliveries one transaction changes.
	redactRows = 500

	// selectEventFrom is the first event behind a number. Restored leaves a wide gap between two
	// numbers, and batches must not look into it.
	selectEventFrom = `SELECT min(seq) FROM surehook_events WHERE seq > ?`
	selectEventsOf  = `SELECT seq FROM surehook_events WHERE seq > ?1 AND seq <= ?2
		AND CASE WHEN ?3 <> 0 THEN subscriber = ?3 ELSE object_type = ?4 AND object_id = ?5 END ORDER BY seq LIMIT ?6 + 0`
	removeBodies   = `UPDATE surehook_events SET body = x'' WHERE seq IN (SELECT value FROM json_each(?)) AND length(body) > 0`
	selectExposing = `SELECT DISTINCT event, subscription FROM surehook_attempts
		WHERE event IN (SELECT value FROM json_each(?1)) AND (event, subscription) > (?2, ?3) AND (snippet IS NOT NULL OR headers IS NOT NULL)
		ORDER BY event, subscription LIMIT ?4 + 0`
	redactAttempts = `UPDATE surehook_attempts SET snippet = NULL, headers = NULL
		WHERE (event, subscription) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?)) AND (snippet IS NOT NULL OR headers IS NOT NULL)`
	selectLiveOf = `SELECT x.event, x.subscription FROM surehook_heads h CROSS JOIN surehook_pending x
			WHERE ` + hasLive + ` AND h.pending > 0 AND x.subscription = h.subscription AND x.event IN (SELECT value FROM json_each(?1))
		UNION ALL SELECT x.event, x.subscription FROM surehook_heads h CROSS JOIN surehook_waiting x
			WHERE ` + hasLive + ` AND h.waiting > 0 AND x.subscription = h.subscription AND x.event IN (SELECT value FROM json_each(?1))
		UNION ALL SELECT l.event, l.subscription FROM surehook_heads h CROSS JOIN surehook_lines l
			WHERE ` + hasLive + ` AND h.behind > 0 AND l.subscription = h.subscription AND l.event IN (SELECT value FROM json_each(?1)) AND l.place IN (1, 2) AND ` + isBehind
	selectNotInFlight = `SELECT 0, 0, 0 FROM surehook_pending WHERE subscription = ?1 AND event = ?2
		UNION ALL SELECT number, single, 0 FROM surehook_waiting WHERE subscription = ?1 AND event = ?2
		UNION ALL SELECT number, single, 1 FROM surehook_lines l WHERE subscription = ?1 AND event = ?2 AND place IN (1, 2) AND ` + isBehind
)

// Redact implements history.Store. It reads all events that are kept, once.
// The bytes that it removes are in the file, and in its WAL, until their pages are
// used again: PRAGMA secure_delete overwrites them, and VACUUM leaves them out.
func (s *Store) Redact(ctx context.Context, p history.RedactParams) (out history.Redacted, err error) {
	from, upTo, err := rules.RedactPass(&p)
	if err != nil {
		return out, err
	}
	var events []int64
	to := from
	err = s.read(ctx, func(w *work) error {
		owner, err := w.everSubscriber(p.Subscriber)
		if err != nil {
			return err
		}
		if p.Cursor == "" {
			if err := w.row(lastEvent).Scan(&upTo); err != nil {
				return err
			}
		}
		first, err := w.least(selectEventFrom, from)
		if err != nil {
			return err
		}
		from = min(max(from, first-1), upTo)
		to = min(from+redactLook, upTo)
		if events, err = w.numbers(selectEventsOf, from, to, owner, p.Object.Type, p.Object.ID, p.Limit); len(events) == p.Limit {
			to = events[p.Limit-1]
		}
		return err
	})
	if err == nil && len(events) > 0 {
		out, err = s.redact(ctx, events)
	}
	if err != nil {
		return history.Redacted{}, fail("redacting", err)
	}
	out.Cursor = rules.RedactCursor(to, upTo)
	return out, nil
}

// everSubscriber returns the number of a subscriber that may be deleted, and 0 for "".
func (w *work) everSubscriber(id string) (no int64, err error) {
	if id == "" {
		return 0, nil
	}
	err = w.row(`SELECT no FROM surehook_subscribers WHERE id = ?`, id).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	return no, err
}

// redact removes the bodies first. From then on no delivery of the events is claimed or
// sent again, and those that are live read as cancelled.
func (s *Store) redact(ctx context.Context, events []int64) (out history.Redacted, err error) {
	err = s.write(ctx, func(w *work) (err error) {
		out.Events, err = w.count(removeBodies, list(events))
		return err
	})
	if err != nil {
		return out, err
	}
	if err := s.write(ctx, func(w *work) error { return w.execs(removeKept, list(events)) }); err != nil {
		return out, err
	}
	if err := s.redactAttempts(ctx, events); err != nil {
		return out, err
	}
	var live []dispatch.DeliveryKey
	err = s.read(ctx, func(w *work) (err error) {
		live, err = w.keys(selectLiveOf, list(events))
		return err
	})
	if err != nil {
		return out, err
	}
	for some := range slices.Chunk(live, redactRows) {
		n, err := s.cancelRedacted(ctx, some)
		out.Deliveries += n
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (s *Store) redactAttempts(ctx context.Context, events []int64) error {
	var after dispatch.DeliveryKey
	for {
		var some []dispatch.DeliveryKey
		err := s.read(ctx, func(w *work) (err error) {
			some, err = w.keys(selectExposing, list(events), after.Event, after.Subscription, redactRows)
			return err
		})
		if err != nil || len(some) == 0 {
			return err
		}
		if err := s.write(ctx, func(w *work) error { return w.execs(redactAttempts, keyList(some)) }); err != nil {
			return err
		}
		after = some[len(some)-1]
	}
}

// cancelRedacted ends those of the deliveries that are live and not in flight.
func (s *Store) cancelRedacted(ctx context.Context, keys []dispatch.DeliveryKey) (n int, err error) {
	err = s.write(ctx, func(w *work) error {
		b := batch{work: w, store: s, now: s.now(), heads: newHeads(w)}
		for _, k := range keys {
			l := live{event: k.Event, subscription: k.Subscription}
			err := w.row(selectNotInFlight, k.Subscription, k.Event).Scan(&l.number, &l.single, &l.behind)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			h, err := b.heads.one(k.Subscription)
			if err != nil {
				return err
			}
			if err := b.cancel(h, []live{l}); err != nil {
				return err
			}
			n++
		}
		return b.storeHeads()
	})
	return n, err
}
