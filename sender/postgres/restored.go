package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pgfit"
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
	raiseFloor = `UPDATE surehook_floor f SET version = greatest(f.version, (SELECT max(version) FROM surehook_objects WHERE version < $2)) + $1, lineage = $4
		WHERE f.lineage = $3 RETURNING version`
	// Processes remember keyrings and subscriptions under this version, and some may have
	// been running all the time.
	raiseKeyrings = `UPDATE surehook_subscribers SET keyring_version = keyring_version + $1`

	selectLineage = `SELECT lineage FROM surehook_floor`
	// currentLineage asks for the timeline that is written to: the control file has it only
	// after a checkpoint.
	currentLineage = `SELECT s.system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || d.oid || coalesce(nullif('/' || ` + pgfit.NeonTimeline + `, '/'), '')
		FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()`
	setLineage = `UPDATE surehook_floor SET lineage = $1 WHERE lineage = ''`
)

var _ dispatch.RestoreWatch = (*core)(nil)

// Restored makes sure that nothing is given out again that receivers have seen. An
// operator calls it once, before anything else works with the database, if that was
// brought back to an earlier state, or moved into another cluster by a dump: see
// [sender.Restoration]. Versions, positions and what processes remember go on above what was
// lost. Then it expands what waits for that, and needs the Dispatcher's Convert: filters
// decide by what it makes. Work that is in flight by the database's account is taken over as
// from any process that is gone.
//
// A dispatcher does the same itself if it notices that the database has moved: see
// dispatch.RestoreWatch. Restored is safe beside whatever else works with the database, and to
// be called again, which leaves another gap. After an error, call it again.
func (s *Store[Tx]) Restored(ctx context.Context, convert sender.Convert) (r sender.Restoration, err error) {
	own := side{core: s.core}
	for raised := false; !raised; { // or a dispatcher has noticed it meanwhile: this call leaves its own gap
		was, is, err := own.lineages(ctx)
		if errors.Is(err, errors.ErrUnsupported) {
			is, err = was, nil
		}
		if err != nil {
			return sender.Restoration{}, err
		}
		if r, raised, err = own.raise(ctx, was, is); err != nil {
			return sender.Restoration{}, err
		}
	}
	// Waiting events get their positions now. A reader of the feed may have come to any of
	// those that were lost.
	if r.Expanded, err = own.expandWhole(ctx, convert); err != nil {
		return sender.Restoration{}, err
	}
	return r, nil
}

// RestoreIfMoved implements dispatch.RestoreWatch.
func (c *core) RestoreIfMoved(ctx context.Context) (r sender.Restoration, moved bool, err error) {
	s := c.dispatching()
	was, is, err := s.lineages(ctx)
	switch {
	case err != nil || was == is:
		return sender.Restoration{}, false, err
	case was == "":
		return sender.Restoration{}, false, s.write(ctx, func(w *work) error {
			return fail("storing the database's lineage", w.execs(setLineage, is))
		})
	}
	return s.raise(ctx, was, is)
}

// lineages returns the lineage that is stored, and that of the database. The error matches
// errors.ErrUnsupported, and was is valid, if the server does not tell it.
func (s side) lineages(ctx context.Context) (was, is string, err error) {
	if err := s.readOne(ctx, selectLineage, nil, &was); err != nil {
		return "", "", fail("reading the database's lineage", err)
	}
	err = s.readOne(ctx, currentLineage, nil, &is)
	switch dberr.SQLState(err) {
	case "42501", "42883", "0A000": // no right, no such function, not supported
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return was, is, fail("asking for the database's lineage", err)
}

// raise makes everything go on above what was lost. ok: nobody else has stored a lineage
// meanwhile. Otherwise nothing is changed.
func (s side) raise(ctx context.Context, was, is string) (r sender.Restoration, ok bool, err error) {
	r.LineageBefore, r.Lineage = was, is
	err = s.write(ctx, func(w *work) error {
		if err := w.execs(raiseKeyrings, rules.LostVersions); err != nil {
			return fail("raising the versions of keyrings", err)
		}
		if err := w.row(raisePosition, rules.LostPositions).Scan(&r.Position); err != nil {
			return fail("raising the feed's positions", err)
		}
		err := w.row(raiseFloor, rules.LostVersions, int64(ident.MaxVersion-rules.LostVersions), was, is).Scan(&r.Version)
		if errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return fail("raising the objects' versions", err)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return sender.Restoration{}, false, nil
	}
	if err != nil {
		return sender.Restoration{}, false, err
	}
	return r, true, nil
}

// expandWhole expands all that is in the outbox when it begins, and returns how many events
// that were. It waits for whoever expands beside it.
func (s side) expandWhole(ctx context.Context, convert sender.Convert) (events int, err error) {
	var last int64
	if err := s.readOne(ctx, lastInOutbox, nil, &last); err != nil {
		return 0, fail("looking for what is to be expanded", err)
	}
	for {
		x, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 1000, Deliveries: 10_000, Convert: convert}, dispatch.Batch{})
		if err != nil {
			return events, err
		}
		events += x.Events
		if x.More {
			continue
		}
		var some bool
		if err := s.readOne(ctx, anyInOutbox, []any{last}, &some); err != nil {
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
