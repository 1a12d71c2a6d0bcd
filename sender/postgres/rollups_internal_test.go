package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
)

// newTestCore has a schema of its own.
func newTestCore(t *testing.T) *core {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	c, err := newCore("New", pool, &Config{Schema: newid.New("test_", time.Now())})
	require.NoError(t, err)
	require.NoError(t, c.Migrate(t.Context()))
	t.Cleanup(func() { _, _ = pool.Exec(context.Background(), `DROP SCHEMA "`+c.schema+`" CASCADE`) })
	return c
}

// delivered is what is counted in the minute from a time on.
func (c *core) delivered(t *testing.T, from time.Time) int64 {
	t.Helper()
	all, err := c.Rollups(t.Context(), from, from.Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].Delivered
}

func TestRollupsSurviveTheirTransactions(t *testing.T) {
	c := newTestCore(t)
	minute := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c.clock = `timestamptz '2026-11-20 12:00:30Z'`
	add := func(err error, during func()) error {
		return c.write(t.Context(), func(w *work) error {
			if err := w.tally(&sender.Rollup{Delivered: 1}); err != nil {
				return err
			}
			if during != nil {
				during()
			}
			return err
		})
	}
	failed := errors.New("failed")
	require.ErrorIs(t, add(failed, nil), failed)
	require.NoError(t, add(nil, nil))
	require.Equal(t, int64(1), c.delivered(t, minute))

	require.ErrorIs(t, add(failed, nil), failed)
	require.NoError(t, add(nil, nil))
	require.Equal(t, int64(2), c.delivered(t, minute), "one that was rolled back is not counted")

	// One that was committed, though the answer was lost.
	before := c.rollups.shards[0].rollup
	require.NoError(t, add(nil, nil))
	c.rollups.shards[0].rollup = before
	c.rollups.giveBack(c.rollups.shards[0], nil, false)
	require.NoError(t, add(nil, nil))
	require.Equal(t, int64(4), c.delivered(t, minute), "one that was committed is counted")

	// While one is open another one does not wait for it.
	require.NoError(t, add(nil, func() { require.NoError(t, add(nil, nil)) }))
	require.Equal(t, int64(6), c.delivered(t, minute))

	// The same at the turn of a minute.
	c.clock = `timestamptz '2026-11-20 12:01:00Z'`
	c.texts.Clear()
	require.ErrorIs(t, add(failed, nil), failed)
	require.NoError(t, add(nil, nil))
	require.Equal(t, int64(6), c.delivered(t, minute))
	require.Equal(t, int64(1), c.delivered(t, minute.Add(time.Minute)))

	// When the clock is set back nothing is overwritten.
	c.clock = `timestamptz '2026-11-20 11:30:00Z'`
	c.texts.Clear()
	require.NoError(t, add(nil, nil))
	c.clock = `timestamptz '2026-11-20 12:00:00Z'`
	c.texts.Clear()
	require.NoError(t, add(nil, nil))
	require.Equal(t, int64(7), c.delivered(t, minute))
}
