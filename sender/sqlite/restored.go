package sqlite

import (
	"context"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// beginEvents adds the row of surehook_events in sqlite_sequence
	// (sqlite.org/autoinc.html), unless there was an event. The next event's number is
	// above the one in this row.
	beginEvents = `INSERT INTO sqlite_sequence (name, seq) SELECT 'surehook_events', 0
		WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'surehook_events')`
	raiseEvents = `UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'surehook_events' RETURNING seq`
	skipLost    = `UPDATE surehook_expanded SET event = ?1, seen = ?1 WHERE event >= (SELECT coalesce(max(seq), 0) FROM surehook_events)`
	// raiseFloor disregards versions that callers give: they may be high, and the next
	// one is theirs.
	raiseFloor = `UPDATE surehook_floor SET version = max(version, (SELECT coalesce(max(version), 0) FROM surehook_objects WHERE version < ?2)) + ?1 RETURNING version`
	// Processes remember what they have read under these versions. Some may have run all
	// the time.
	raiseKeyrings = `UPDATE surehook_subscribers SET keyring_version = keyring_version + ?`
	raiseRegistry = `UPDATE surehook_registry SET version = version + ?`
)

// Restored makes sure that nothing is given out again that receivers have seen. An
// operator calls it once after the file was replaced by an earlier copy of it, before
// anything else works with the file: see [sender.Restoration]. It expands the events that
// wait for that, and needs the Dispatcher's Convert: filters decide by what it makes.
// Versions, positions and what processes remember then go on above all that was lost. Work
// that the copy shows as in flight is taken over, as from any process that is gone.
//
// It is safe while others work with the database. To call it again is safe too, and makes
// another gap. After an error, call it again.
func (s *Store) Restored(ctx context.Context, convert sender.Convert) (r sender.Restoration, err error) {
	for more := true; more; {
		x, _, err := s.Step(ctx, dispatch.ExpandParams{Events: 1000, Deliveries: 10_000, Convert: convert}, dispatch.Batch{})
		if err != nil {
			return sender.Restoration{}, err
		}
		r.Expanded, more = r.Expanded+x.Events, x.More
	}
	err = s.write(ctx, func(w *work) error {
		for _, query := range []string{raiseKeyrings, raiseRegistry} {
			if err := w.execs(query, int64(rules.LostVersions)); err != nil {
				return fail("raising what processes remember", err)
			}
		}
		if err := w.execs(beginEvents); err != nil {
			return fail("raising the events' positions", err)
		}
		if err := w.row(raiseEvents, int64(rules.LostPositions)).Scan(&r.Position); err != nil {
			return fail("raising the events' positions", err)
		}
		if err := w.execs(skipLost, r.Position); err != nil {
			return fail("raising the events' positions", err)
		}
		return fail("raising the objects' versions",
			w.row(raiseFloor, int64(rules.LostVersions), int64(ident.MaxVersion-rules.LostVersions)).Scan(&r.Version))
	})
	if err != nil {
		return sender.Restoration{}, err
	}
	return r, nil
}
