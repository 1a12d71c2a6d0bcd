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
	"github.com/surehook/surehook/sender/dispatch"
)

// newTestCore returns a core in a schema of its own.
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

// delivered returns the count of the minute that begins at a time.
func (c *core) delivered(t *testing.T, from time.Time) int64 {
	t.Helper()
	all, err := c.Rollups(t.Context(), from, from.Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].Delivered
}

// at sets the database's clock.
func (c *core) at(text string) {
	c.clock = `timestamptz '2026-11-20 ` + text + `Z'`
	c.texts.Clear()
}

// counts adds a delivered attempt in a transaction, which fails with an error.
func (c *core) countsOne(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, c.write(t.Context(), func(w *work) error {
		b := w.batch(dispatch.Batch{})
		b.rollup.Delivered = 1
		b.tallied()
		return err
	}), err)
}

func TestRollupsCountWhatIsCommitted(t *testing.T) {
	c := newTestCore(t)
	other, err := newCore("New", c.pool, &Config{Schema: c.schema}) // another process
	require.NoError(t, err)
	sweep := func() {
		t.Helper()
		_, err := c.Sweep(t.Context(), dispatch.SweepParams{Limit: 1})
		require.NoError(t, err)
	}
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	second := first.Add(time.Minute)
	failed := errors.New("failed")

	c.at("12:00:30")
	c.countsOne(t, failed)
	c.countsOne(t, nil)
	c.countsOne(t, failed)
	c.countsOne(t, nil)
	require.Equal(t, int64(2), c.delivered(t, first), "one that was rolled back is not counted")
	all, err := other.Rollups(t.Context(), first, second)
	require.NoError(t, err)
	require.Empty(t, all, "it is written by Sweep")
	for range 2 { // the second time there is nothing to write
		sweep()
		require.Equal(t, int64(2), c.delivered(t, first))
		require.Equal(t, int64(2), other.delivered(t, first))
	}
	c.countsOne(t, nil)
	require.Equal(t, int64(3), c.delivered(t, first), "here it is counted at once")
	require.Equal(t, int64(2), other.delivered(t, first))

	c.at("12:01:00")
	c.countsOne(t, failed)
	c.countsOne(t, nil)
	sweep()
	for _, process := range []*core{c, other} {
		require.Equal(t, int64(3), process.delivered(t, first))
		require.Equal(t, int64(1), process.delivered(t, second))
	}
	all, err = c.Rollups(t.Context(), second, second.Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, all, 1, "from is included, and to is not")
}

// The next write makes up for one that has failed.
func TestRollupsAreWrittenAgain(t *testing.T) {
	c := newTestCore(t)
	minute := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c.at("12:00:30")
	c.countsOne(t, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.storeRollups(gone, timestampOf(minute)), context.Canceled)
	require.NoError(t, c.storeRollups(t.Context(), timestampOf(minute)))
	other, err := newCore("New", c.pool, &Config{Schema: c.schema})
	require.NoError(t, err)
	require.Equal(t, int64(1), other.delivered(t, minute))
}

// The store remembers a bounded number of minutes. If the clock is set back nothing is
// overwritten.
func TestRollupsWhenTheClockIsSetBack(t *testing.T) {
	c := newTestCore(t)
	minute := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	count := func(at string) {
		c.at(at)
		c.countsOne(t, nil)
		_, err := c.Sweep(t.Context(), dispatch.SweepParams{Limit: 1})
		require.NoError(t, err)
	}
	for _, at := range []string{"12:00:10", "12:01:10", "12:02:10", "12:03:10", "12:04:10", "12:05:10", "12:06:10"} {
		count(at)
	}
	require.LessOrEqual(t, len(c.rollups.minutes), minutesKept+1)
	count("12:00:20")
	count("11:30:00")
	count("12:05:20")
	require.Equal(t, int64(2), c.delivered(t, minute))
	require.Equal(t, int64(2), c.delivered(t, minute.Add(5*time.Minute)))
	require.Equal(t, int64(1), c.delivered(t, minute.Add(-30*time.Minute)))
}
