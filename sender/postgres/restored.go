package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// lastInOutbox reads the last row that can be from before; it may be gone already.
	lastInOutbox = `SELECT coalesce(max(seq), 0) FROM surehook_outbox`
	anyInOutbox  = `SELECT EXISTS (SELECT 1 FROM surehook_outbox WHERE seq <= $1)`

	// raisePosition waits for the expander.
	raisePosition = `UPDATE surehook_feed_head SET position = position + $1 RETURNING position`
	// raiseFloor ignores versions that callers gave: they may be high, and the next one is
	// given by a caller too.
	raiseFloor = `UPDATE surehook_floor f SET version = greatest(f.version, (SELECT max(version) FROM surehook_objects WHERE version < $2)) + $1 RETURNING version`
	// Processes remember keyrings and subscriptions under this version, and some may have
	// been running all the time.
	raiseKeyrings = `UPDATE surehook_subscribers SET keyring_version = keyring_version + $1`
)

// Restored makes sure that nothing is given out again that receivers have seen. An
// operator calls it once, before anything else works with the database, if that was
// brought back to an earlier state, or moved into another cluster by a dump: see
// [sender.Restoration]. It expands what waits for that, and needs the Dispatcher's
// Convert: filters decide by what it makes. Versions, positions and what processes
// remember then go on above what was lost. Work that is in flight by the database's
// account is taken over as from any process that is gone.
//
// It is safe beside whatever else works with the database, and to be called again, which
// leaves another gap. After an error, call it again.
func (s *Store[Tx]) Restored(ctx context.Context, convert sender.Convert) (r sender.Restoration, err error) {
	if r.Expanded, err = s.expandWhole(ctx, convert); err != nil {
		return sender.Restoration{}, err
	}
	err = s.write(ctx, func(w *work) error {
		if err := w.execs(raiseKeyrings, rules.LostVersions); err != nil {
			return fail("raising the versions of keyrings", err)
		}
		if err := w.row(raisePosition, rules.LostPositions).Scan(&r.Position); err != nil {
			return fail("raising the feed's positions", err)
		}
		return fail("raising the objects' versions",
			w.row(raiseFloor, rules.LostVersions, int64(ident.MaxVersion-rules.LostVersions)).Scan(&r.Version))
	})
	if err != nil {
		return sender.Restoration{}, err
	}
	return r, nil
}

// expandWhole expands all that is in the outbox when it begins, and returns how many events
// that were. It waits for whoever expands beside it.
func (c *core) expandWhole(ctx context.Context, convert sender.Convert) (events int, err error) {
	var last int64
	if err := (side{core: c}).readOne(ctx, lastInOutbox, nil, &last); err != nil {
		return 0, fail("looking for what is to be expanded", err)
	}
	for {
		x, _, err := c.Step(ctx, dispatch.ExpandParams{Events: 1000, Deliveries: 10_000, Convert: convert}, dispatch.Batch{})
		if err != nil {
			return events, err
		}
		events += x.Events
		if x.More {
			continue
		}
		var some bool
		if err := (side{core: c}).readOne(ctx, anyInOutbox, []any{last}, &some); err != nil {
			return events, fail("looking for what is to be expanded", err)
		}
		if !some {
			return events, nil
		}
		select {
		case <-ctx.Done():
			return events, fmt.Errorf("waiting for the events to be expanded: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
