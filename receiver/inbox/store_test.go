package inbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver/inbox"
)

// keeps is what every store must do.
func keeps[Tx any](t *testing.T, b base[Tx]) {
	ctx := t.Context()
	record := func(line, id string, version int64) (fresh bool) {
		require.NoError(t, b.inTx(ctx, func(tx Tx) (err error) {
			fresh, err = b.store.RecordTx(ctx, tx, inbox.Record{Scope: "s", ID: id, Line: line, Type: "thing.made", Version: version, Body: []byte(id)})
			return err
		}))
		return fresh
	}
	claim := func(limit int) (claims []inbox.Claim) {
		require.NoError(t, b.inTx(ctx, func(tx Tx) (err error) {
			claims, err = b.store.ClaimTx(ctx, tx, limit, time.Hour)
			return err
		}))
		return claims
	}
	finish := func(c inbox.Claim) error {
		return b.inTx(ctx, func(tx Tx) error { return b.store.FinishTx(ctx, tx, c) })
	}
	retry := func(c inbox.Claim, after time.Duration) error {
		return b.inTx(ctx, func(tx Tx) error { return b.store.RetryTx(ctx, tx, c, after, "because") })
	}

	require.True(t, record("one", "b", 2))
	require.False(t, record("one", "b", 2))
	require.True(t, record("one", "a", 1))
	require.True(t, record("one", "c", 2))
	first := claim(10)
	require.Len(t, first, 1, "one of a line")
	require.Equal(t, inbox.Record{Scope: "s", ID: "a", Line: "one", Type: "thing.made", Version: 1, Body: []byte("a")}, first[0].Record)
	require.Equal(t, 1, first[0].Attempt)
	require.Empty(t, claim(10), "it is claimed")
	require.NoError(t, retry(first[0], time.Hour))
	require.Empty(t, claim(10), "it is not due")
	require.ErrorIs(t, finish(first[0]), inbox.ErrLeaseLost, "it was given back")

	_, err := b.db.Exec("UPDATE surehook_inbox_lines SET due_at = (SELECT min(recorded_at) FROM surehook_inbox_events)")
	require.NoError(t, err)
	again := claim(10)
	require.Len(t, again, 1)
	require.Equal(t, 2, again[0].Attempt)
	require.GreaterOrEqual(t, again[0].Age, time.Duration(0))
	require.NotEqual(t, first[0].Token, again[0].Token)
	require.ErrorIs(t, retry(first[0], 0), inbox.ErrLeaseLost)
	require.ErrorIs(t, b.inTx(ctx, func(tx Tx) error {
		return errors.Join(b.store.FinishTx(ctx, tx, again[0]), errPoison)
	}), errPoison)
	require.Empty(t, claim(10), "what was rolled back is still claimed")
	for _, id := range []string{"b", "c"} {
		require.NoError(t, finish(again[0]))
		again = claim(10)
		require.Len(t, again, 1)
		require.Equal(t, id, again[0].ID)
	}
	require.NoError(t, finish(again[0]))
	require.ErrorIs(t, finish(again[0]), inbox.ErrLeaseLost)
	require.Empty(t, column(t, b.db, "SELECT line FROM surehook_inbox_lines"))

	for _, line := range []string{"one", "two", "three"} {
		require.True(t, record(line, line, 1))
	}
	require.Len(t, claim(2), 2)
	_, err = b.db.Exec("DELETE FROM surehook_inbox_events")
	require.NoError(t, err)
	require.Empty(t, claim(2), "the line of what was removed by hand goes, too")
	require.Len(t, column(t, b.db, "SELECT line FROM surehook_inbox_lines"), 2)

	for _, bad := range []inbox.Record{
		{ID: "a", Line: "l", Type: "t", Version: 1},
		{Scope: "s", Line: "l", Type: "t", Version: 1},
		{Scope: "s", ID: "a", Type: "t", Version: 1},
		{Scope: "s", ID: "a", Line: strings.Repeat("l", 401), Type: "t", Version: 1},
		{Scope: "s", ID: "a", Line: "l", Version: 1},
		{Scope: "s", ID: "a", Line: "l", Type: "t", Version: -1},
	} {
		require.ErrorIs(t, b.inTx(ctx, func(tx Tx) error {
			_, err := b.store.RecordTx(ctx, tx, bad)
			return err
		}), inbox.ErrInvalid)
	}
	for _, lease := range []time.Duration{0, time.Second} {
		require.ErrorIs(t, b.inTx(ctx, func(tx Tx) error {
			_, err := b.store.ClaimTx(ctx, tx, int(lease), lease-time.Second)
			return err
		}), inbox.ErrInvalid)
	}
	var none Tx
	_, err = b.store.RecordTx(ctx, none, inbox.Record{})
	require.ErrorIs(t, err, inbox.ErrInvalid)
	require.ErrorIs(t, b.store.FinishTx(ctx, none, inbox.Claim{}), inbox.ErrInvalid)
}
