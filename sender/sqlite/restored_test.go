package sqlite_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
	"github.com/surehook/surehook/sender/sqlite"
)

// A database was replaced by an earlier copy, and receivers have seen events that the
// copy does not have. It gives out no id or version again that they have seen.
func TestRestoredCopy(t *testing.T) {
	ctx := t.Context()
	db := open(t, path(t), fit)
	before := newStore(t, db, time.Now)
	owners := register(t, before, 1)
	of := func(s *sqlite.Store, objects ...string) (refs []sender.Ref) {
		t.Helper()
		for _, object := range objects {
			d := draft(owners[0], 0)
			d.Object.ID = object
			require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error {
				r, err := s.PublishTx(ctx, tx, []sender.Draft{d})
				refs = append(refs, r...)
				return err
			}))
		}
		return refs
	}
	of(before, "a")
	expandAll(t, before)
	of(before, "a") // and not expanded
	copied := path(t)
	_, err := db.ExecContext(ctx, `VACUUM INTO ?`, copied)
	require.NoError(t, err)
	seen := of(before, "a", "b", "b")
	require.Equal(t, []int64{3, 1, 2}, []int64{seen[0].Version, seen[1].Version, seen[2].Version})
	page, err := before.Feed(ctx, feed.StoreQuery{Viewer: sender.Operator, Limit: 100})
	require.NoError(t, err)
	require.Len(t, page.Events, 5)

	other := open(t, copied, fit)
	after := newStore(t, other, time.Now)
	done, err := after.Restored(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, 1, done.Expanded)
	counts, err := after.Counts(ctx)
	require.NoError(t, err)
	require.Zero(t, counts.Unexpanded)
	news := of(after, "a", "b", "b")
	require.Equal(t, []int64{done.Version + 1, done.Version + 1, done.Version + 2}, []int64{news[0].Version, news[1].Version, news[2].Version})
	require.Greater(t, done.Version, int64(3))
	counts, err = after.Counts(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 3, counts.Unexpanded)
	expandAll(t, after)
	_, c, err := after.Step(context.Background(), dispatch.ExpandParams{}, batchOf(nil, 10))
	require.NoError(t, err)
	require.Len(t, c.Claimed, 5, "the two that the copy has, and the new ones")
	rest, err := after.Feed(ctx, feed.StoreQuery{Viewer: sender.Operator, After: page.Last, Limit: 100})
	require.NoError(t, err)
	require.Len(t, rest.Events, 3, "after the cursor of who has read all")
	require.Greater(t, rest.Events[0].Position, done.Position)

	again, err := after.Restored(ctx, nil)
	require.NoError(t, err)
	require.Greater(t, again.Position, rest.Events[2].Position)
	require.Greater(t, again.Version, news[2].Version)
}

// In the copy nothing was ever published.
func TestRestoredCopyOfNothing(t *testing.T) {
	s := newStore(t, open(t, path(t), fit), time.Now)
	done, err := s.Restored(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, sender.Restoration{Version: rules.LostVersions, Position: rules.LostPositions}, done)
	owners := register(t, s, 1)
	publish(t, s, 1, 0, owners)
	expandAll(t, s)
	_, c, err := s.Step(t.Context(), dispatch.ExpandParams{}, batchOf(nil, 10))
	require.NoError(t, err)
	require.Len(t, c.Claimed, 1)
	require.Equal(t, int64(rules.LostPositions+1), c.Claimed[0].Key.Event)
}

// A redaction does not look into the gap that Restored leaves between two events.
func TestRedactBeyondAGap(t *testing.T) {
	db := open(t, path(t), fit)
	s := newStore(t, db, time.Now)
	owners := register(t, s, 1)
	publish(t, s, 1, 0, owners)
	_, err := s.Restored(t.Context(), nil)
	require.NoError(t, err)
	publish(t, s, 1, 0, owners)
	p := history.RedactParams{Subscriber: owners[0], Limit: 10}
	events := 0
	for range 2 {
		done, err := s.Redact(t.Context(), p)
		require.NoError(t, err)
		events, p.Cursor = events+done.Events, done.Cursor
	}
	require.Equal(t, 2, events)
	require.Empty(t, p.Cursor)
}
