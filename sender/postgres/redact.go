package postgres

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
	// redactLook is how many events a batch looks at. No index leads from an object to its
	// events: every publish would pay for it.
	redactLook = 20_000
	// redactRows is how many rows of deliveries one transaction changes.
	redactRows = 500

	selectEventRange = `SELECT coalesce(min(no), 1) - 1, coalesce(max(no), 0) FROM surehook_events`
	selectEventsOf   = `SELECT no FROM surehook_events WHERE no > $1 AND no <= $2
		AND CASE WHEN $3::bigint <> 0 THEN subscriber = $3 ELSE object_type = $4 AND object_id = $5 END ORDER BY no LIMIT $6`
	removeBodies = `UPDATE surehook_events SET body = '' WHERE no = ANY($1) AND length(body) > 0`
	// unaddress lets events that are not expanded match nobody. An expander gives them
	// their positions, and makes no deliveries. The seq of a row is the number of its
	// event.
	unaddress       = `UPDATE surehook_outbox SET patterns = '{}', subscriber = 0, subscription = 0 WHERE seq = ANY($1)`
	selectPositions = `SELECT position FROM surehook_feed WHERE event = ANY($1)`
	selectLiveOf    = `SELECT x.event, h.subscription FROM surehook_heads h CROSS JOIN LATERAL (
			SELECT event FROM surehook_pending WHERE h.pending > 0 AND subscription = h.subscription AND event = ANY($1)
			UNION ALL SELECT event FROM surehook_waiting WHERE h.waiting > 0 AND subscription = h.subscription AND event = ANY($1)
			UNION ALL SELECT event FROM surehook_lines WHERE h.behind > 0 AND subscription = h.subscription AND event = ANY($1) AND place < 3
			UNION ALL SELECT event FROM surehook_leases WHERE h.leased > 0 AND subscription = h.subscription AND event = ANY($1)) x
		WHERE ` + hasLive
	redactLeases = `UPDATE surehook_leases l SET redacted = true FROM unnest($1::bigint[], $2::bigint[]) AS u(event, subscription)
		WHERE l.subscription = u.subscription AND l.event = u.event`

	// redactAttempts removes the snippets and headers of the next deliveries that have some,
	// up to a number.
	redactAttempts = `WITH k AS MATERIALIZED (
			SELECT DISTINCT event, subscription FROM surehook_attempts
			WHERE event = ANY($1) AND (event, subscription) > ($2, $3) AND (snippet IS NOT NULL OR headers IS NOT NULL) ORDER BY event, subscription LIMIT $4)
		UPDATE surehook_attempts a SET snippet = NULL, headers = NULL FROM k
		WHERE a.event = k.event AND a.subscription = k.subscription AND (a.snippet IS NOT NULL OR a.headers IS NOT NULL) RETURNING a.event, a.subscription`

	selectEverSubscriber = `SELECT no FROM surehook_subscribers WHERE id = $1`
)

// Redact implements history.Store. It reads all kept events once. The removed bytes
// stay in the tables until a vacuum, and in the WAL and its archives as long as these are
// kept.
func (c *core) Redact(ctx context.Context, p history.RedactParams) (out history.Redacted, err error) {
	from, upTo, err := rules.RedactPass(&p)
	if err != nil {
		return out, err
	}
	var events []int64
	to := from
	err = c.read(ctx, func(w *work) error {
		owner, err := w.everSubscriber(p.Subscriber)
		if err != nil {
			return err
		}
		if p.Cursor == "" { // numbers of pruned events need not be looked at
			if err := w.row(selectEventRange).Scan(&from, &upTo); err != nil {
				return err
			}
		}
		to = min(from+redactLook, upTo)
		if events, err = w.numbers(selectEventsOf, from, to, owner, p.Object.Type, p.Object.ID, p.Limit); len(events) == p.Limit {
			to = events[p.Limit-1]
		}
		return err
	})
	if err == nil && len(events) > 0 {
		out, err = c.redact(ctx, events)
	}
	if err != nil {
		return history.Redacted{}, fail("redacting", err)
	}
	out.Cursor = rules.RedactCursor(to, upTo)
	return out, nil
}

// everSubscriber returns the number of a subscriber, even a deleted one, and 0 for "".
func (w *work) everSubscriber(id string) (no int64, err error) {
	if id == "" {
		return 0, nil
	}
	err = w.row(selectEverSubscriber, soughtID(id)).Scan(&no)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: subscriber %q", sender.ErrNotFound, id)
	}
	return no, err
}

// redact removes the bodies first: from then on nothing of the events is claimed, and no
// deliveries are made of them. Kept bodies, snippets and headers go last: all leases of before
// are marked by then, so nobody keeps another body, and no result brings the others.
func (c *core) redact(ctx context.Context, events []int64) (out history.Redacted, err error) {
	err = c.write(ctx, func(w *work) error {
		n, err := w.exec(removeBodies, events)
		out.Events = int(n)
		return err
	})
	if err != nil {
		return out, err
	}
	err = c.write(ctx, func(w *work) error {
		if err := w.execs(beExpander); err != nil {
			return err
		}
		return w.execs(unaddress, events)
	})
	if err != nil {
		return out, err
	}
	var positions []int64
	var live []dispatch.DeliveryKey
	err = c.read(ctx, func(w *work) (err error) {
		if positions, err = w.numbers(selectPositions, events); err == nil {
			live, err = w.keys(selectLiveOf, positions)
		}
		return err
	})
	if err != nil {
		return out, err
	}
	for some := range slices.Chunk(live, redactRows) {
		n, err := c.cancelRedacted(ctx, some)
		out.Deliveries += n
		if err != nil {
			return out, err
		}
	}
	if err := c.write(ctx, func(w *work) error { return w.execs(removeKept, positions) }); err != nil {
		return out, err
	}
	return out, c.redactAttempts(ctx, positions)
}

// cancelRedacted ends the live deliveries that are not in flight, and marks the leases of
// the others.
func (c *core) cancelRedacted(ctx context.Context, keys []dispatch.DeliveryKey) (n int, err error) {
	err = c.batch(ctx, dispatch.Batch{}, func(b *batch) (err error) {
		if err := b.lock(subscriptionsOf(keys)); err != nil {
			return err
		}
		if err := b.standIn(subscriptionsOf(keys)); err != nil {
			return err
		}
		if err := b.execs(redactLeases, eventsOf(keys), subscriptionsOf(keys)); err != nil {
			return err
		}
		n, err = b.cancel(keys)
		return err
	})
	return n, err
}

func (c *core) redactAttempts(ctx context.Context, positions []int64) error {
	var after dispatch.DeliveryKey
	for {
		var last dispatch.DeliveryKey
		err := c.write(ctx, func(w *work) error {
			last = after
			done, err := w.keys(redactAttempts, positions, after.Event, after.Subscription, redactRows)
			for _, k := range done {
				if k.Event > last.Event || k.Event == last.Event && k.Subscription > last.Subscription {
					last = k
				}
			}
			return err
		})
		if err != nil || last == after {
			return err
		}
		after = last
	}
}
