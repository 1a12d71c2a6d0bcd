package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/deduptest"
	"github.com/surehook/surehook/dedup/memory"
)

func TestCheckRetention(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		retention, reach time.Duration
		want             string // "": accepted
	}{
		{32 * day, dedup.DefaultReach, ""},
		{4 * day, 3 * day, ""},
		{4*day - 1, 3 * day, "a retention of 95h59m59.999999999s is too short for a reach of 72h0m0s: it must be at least 96h0m0s (the reach and a margin of 24h0m0s)"},
		{3 * day, 3 * day, "it must be at least 96h0m0s"},
		{day, 0, ""},
		{0, 0, "it must be at least 24h0m0s"},
		{0, 3 * day, "it must be at least 96h0m0s"},
		{-1, 3 * day, "it must be at least 96h0m0s"},
		{math.MinInt64, 3 * day, "it must be at least 96h0m0s"},
		{30 * day, -1, "the reach is -1ns: it must not be negative"},
		{math.MinInt64, math.MinInt64, "it must not be negative"},
		{math.MaxInt64, math.MaxInt64, "no retention outlasts it; it must be at most 2562023h47m16.854775807s"},
		{math.MaxInt64, math.MaxInt64 - dedup.RetentionMargin + 1, "no retention outlasts it"},
		{math.MaxInt64, math.MaxInt64 - dedup.RetentionMargin, ""},
	} {
		err := dedup.CheckRetention(c.retention, c.reach, 0)
		if c.want == "" {
			require.NoError(t, err, "%s, %s", c.retention, c.reach)
			continue
		}
		require.ErrorIs(t, err, dedup.ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
	require.NoError(t, dedup.CheckRetention(dedup.DefaultRetention, dedup.DefaultReach, dedup.DefaultHorizon))
	for _, c := range []struct {
		retention, reach, horizon time.Duration
		want                      string
	}{
		{32*day - 1, 28 * day, 3 * day, "a retention of 767h59m59.999999999s is too short for a reach of 672h0m0s and a horizon of 72h0m0s: it must be at least 768h0m0s (the reach, the horizon and a margin of 24h0m0s)"},
		{32 * day, 28 * day, -1, "the horizon is -1ns: it must not be negative"},
		{32 * day, 28 * day, math.MinInt64, "the horizon is -2562047h47m16.854775808s: it must not be negative"},
		{math.MaxInt64, math.MaxInt64 - day, 1, "the horizon is 1ns: no retention outlasts it beside a reach of 2562023h47m16.854775807s; it must be at most 0s"},
		{math.MaxInt64, 28 * day, math.MaxInt64, "it must be at most 2561351h47m16.854775807s"},
	} {
		err := dedup.CheckRetention(c.retention, c.reach, c.horizon)
		require.ErrorIs(t, err, dedup.ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
}

type sqlState string

func (s sqlState) Error() string    { return "SQLSTATE " + string(s) }
func (s sqlState) SQLState() string { return string(s) }

func TestWrapError(t *testing.T) {
	ctx := t.Context()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	plain, lost := errors.New("no such table"), sqlState("40001")
	require.NoError(t, dedup.WrapError(ctx, "marking", nil))
	require.NoError(t, dedup.WrapError(ended, "marking", nil))

	err := dedup.WrapError(ctx, "marking", plain)
	require.EqualError(t, err, "dedup: marking: no such table")
	require.ErrorIs(t, err, plain)
	require.NotErrorIs(t, err, dedup.ErrRetryTx)

	for _, missing := range []error{
		errors.New("SQL logic error: no such table: surehook_dedup_markers (1)"),
		fmt.Errorf("relation \"surehook_dedup_markers\" does not exist: %w", sqlState("42P01")),
	} {
		err = dedup.WrapError(ctx, "marking", missing)
		require.ErrorContains(t, err, "call Migrate before")
		require.ErrorIs(t, err, missing)
	}
	err = dedup.WrapError(ctx, "marking", fmt.Errorf("inserting into surehook_dedup_markers: %w", sqlState("42501")))
	require.NotContains(t, err.Error(), "Migrate")

	err = dedup.WrapError(ctx, "marking", lost)
	require.ErrorIs(t, err, dedup.ErrRetryTx)
	require.ErrorIs(t, err, lost, "the driver's error stays")

	err = dedup.WrapError(ended, "marking", errors.New("interrupted"))
	require.EqualError(t, err, "dedup: marking: context canceled: interrupted")
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, dedup.WrapError(ended, "marking", context.Canceled), "dedup: marking: context canceled")
	err = dedup.WrapError(ended, "marking", lost)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, dedup.ErrRetryTx)
}

func TestProblemsAreNamedTogether(t *testing.T) {
	err := dedup.CheckVersion("", dedup.Object{Type: "a b"}, 0)
	require.ErrorIs(t, err, dedup.ErrInvalid)
	for _, want := range []string{"dedup: invalid argument: scope is empty; ", `object type has the character ' '`, "object id is empty", "version is 0"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, dedup.CheckMark("s", "a", time.Time{}), "the time is zero: it must be when the event was seen")
	require.ErrorContains(t, dedup.CheckList("s", "a.b", 0), "cursor: event id")
	require.ErrorContains(t, dedup.CheckLimit(0), "limit is 0: it must be at least 1")
}

func TestPrepare(t *testing.T) {
	given := dedup.DeadLetter{
		Scope: "s", ID: "a", Type: "x", Body: []byte("abc"), Reason: "a\x00b\xffc",
		At: time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("", 3600)),
	}
	got, err := given.Prepare()
	require.NoError(t, err)
	given.Body[0] = '#'
	want := dedup.DeadLetter{
		Scope: "s", ID: "a", Type: "x", Body: []byte("abc"), Reason: "a\uFFFDb\uFFFDc",
		At: time.Date(2026, 1, 2, 2, 4, 5, 6000, time.UTC),
	}
	require.Empty(t, cmp.Diff(want, got))
}

// scripted is a transaction runner and a store whose Prune gives its answers one by one.
type scripted struct {
	dedup.Store[int]
	answers []any // an int or an error
	commits []error
	limits  []int
}

func (s *scripted) Prune(_ context.Context, _ int, _ time.Time, limit int) (int, error) {
	s.limits = append(s.limits, limit)
	a := s.answers[0]
	s.answers = s.answers[1:]
	if err, ok := a.(error); ok {
		return 0, err
	}
	return a.(int), nil
}

func (s *scripted) inTx(_ context.Context, fn func(int) error) error {
	if err := fn(0); err != nil {
		return err
	}
	if len(s.commits) == 0 {
		return nil
	}
	err := s.commits[0]
	s.commits = s.commits[1:]
	return err
}

func TestPrune(t *testing.T) {
	retry, broken := fmt.Errorf("busy: %w", dedup.ErrRetryTx), errors.New("broken")
	many := func(n int, v any) (all []any) {
		for range n {
			all = append(all, v)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		batch   int
		answers []any
		commits []error
		want    int
		err     error
		limits  []int
	}{
		{name: "until a batch is not full", batch: 3, answers: []any{3, 3, 2}, want: 8, limits: []int{3, 3, 3}},
		{name: "none", batch: 3, answers: []any{0}, want: 0, limits: []int{3}},
		{name: "default batch", batch: 0, answers: []any{1000, 1}, want: 1001, limits: []int{1000, 1000}},
		{name: "negative batch", batch: -1, err: dedup.ErrInvalid},
		{name: "again", batch: 3, answers: []any{3, retry, retry, 3, 0}, want: 6, limits: []int{3, 3, 3, 3, 3}},
		{name: "lost commits are not counted", batch: 3, answers: []any{3, 3, 3, 1}, commits: []error{nil, sqlState("40001")}, want: 7, limits: []int{3, 3, 3, 3}},
		{name: "failed after some", batch: 3, answers: []any{3, broken}, want: 3, err: broken, limits: []int{3, 3}},
		{name: "always lost", batch: 3, answers: append([]any{3}, many(10, retry)...), want: 3, err: dedup.ErrRetryTx, limits: []int{3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{answers: c.answers, commits: c.commits}
				got, err := dedup.Prune(t.Context(), s.inTx, s, time.Now(), c.batch)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.want, got)
				require.Equal(t, c.limits, s.limits)
			})
		})
	}
}

// Others have the database for half of the time, and a context ends the pauses.
func TestPrunePauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{answers: []any{3, 3, 3}}
		inTx := func(ctx context.Context, fn func(int) error) error {
			time.Sleep(time.Second) // a slow batch
			return s.inTx(ctx, fn)
		}
		go func() {
			time.Sleep(3500 * time.Millisecond) // in the pause after the second batch
			cancel()
		}()
		got, err := dedup.Prune(ctx, inTx, s, time.Now(), 3)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "after 6 markers")
		require.Equal(t, 6, got)
	})
}

// A connection that is dead without a word keeps nothing waiting for ever.
func TestPruneOnADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{answers: []any{3}}
		inTx := func(ctx context.Context, fn func(int) error) error {
			if len(s.answers) > 0 {
				return s.inTx(ctx, fn)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		got, err := dedup.Prune(t.Context(), inTx, s, time.Now(), 3)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "after 3 markers")
		require.Equal(t, 3, got)
	})
}

// refusing is a store whose every event is due, unless a call fails.
type refusing struct {
	dedup.Store[int]
	dedup.Reapplies[int]
	dedup.DeadLetters[int]
	take, discard, advance error
}

func (r refusing) TakeReapply(context.Context, int, string, string, dedup.Object) (bool, error) {
	return r.take == nil, r.take
}

func (r refusing) Discard(context.Context, int, string, string) error { return r.discard }

func (r refusing) AdvanceAgain(context.Context, int, string, dedup.Object, int64) (bool, error) {
	return r.advance == nil, r.advance
}

// TakeAgain returns an error of its store, and never says then that the event is to be applied.
func TestTakeAgainFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		store   refusing
		version int64
		err     error
	}{
		"nothing":               {version: 3},
		"no dead letter":        {store: refusing{discard: dedup.ErrNotFound}, version: 3},
		"TakeReapply":           {store: refusing{take: broken}, version: 3, err: broken},
		"Discard":               {store: refusing{discard: broken}, version: 3, err: broken},
		"Discard, of no object": {store: refusing{discard: broken}, err: broken},
		"AdvanceAgain":          {store: refusing{advance: broken}, version: 3, err: broken},
		"the version":           {version: -1, err: dedup.ErrInvalid},
	} {
		due, current, err := dedup.TakeAgain(t.Context(), c.store, 0, "s", "a", dedup.Object{Type: "x", ID: "1"}, c.version)
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, []bool{c.err == nil, c.err == nil}, []bool{due, current}, name)
	}
}

type wrapped struct{ inner *memory.Tx }

func TestAdapt(t *testing.T) {
	deduptest.Run(t, func(*testing.T) deduptest.Harness[wrapped] {
		s := memory.New()
		adapted := dedup.Adapt(s, func(w wrapped) *memory.Tx { return w.inner })
		_, ok := adapted.(dedup.DeadLetters[wrapped])
		require.True(t, ok, "dead letters are carried along")
		return deduptest.Harness[wrapped]{
			Store: adapted,
			InTx: func(ctx context.Context, fn func(wrapped) error) error {
				return s.InTx(ctx, func(tx *memory.Tx) error { return fn(wrapped{tx}) })
			},
		}
	})

	type bare struct{ dedup.Store[*memory.Tx] }
	_, ok := dedup.Adapt(bare{memory.New()}, func(w wrapped) *memory.Tx { return w.inner }).(dedup.DeadLetters[wrapped])
	require.False(t, ok, "there are none to carry along")
}

// oneStep can mark and advance in one step, and its two single steps must not be called.
type oneStep struct {
	dedup.Store[*memory.Tx]
	full *memory.Store
}

func (oneStep) Mark(context.Context, *memory.Tx, string, string, time.Time) (bool, error) {
	return false, errors.New("in two steps")
}

func (s oneStep) MarkAndAdvance(ctx context.Context, tx *memory.Tx, scope, id string, at time.Time, obj dedup.Object, version int64) (fresh, newer bool, err error) {
	return dedup.MarkAndAdvance(ctx, s.full, tx, scope, id, at, obj, version)
}

// A store that can mark and advance in one step is asked to, adapted or not.
func TestMarkAndAdvance(t *testing.T) {
	full := memory.New()
	s := oneStep{Store: full, full: full}
	obj := dedup.Object{Type: "subscriber", ID: "1"}
	require.NoError(t, full.InTx(t.Context(), func(tx *memory.Tx) error {
		fresh, newer, err := dedup.MarkAndAdvance(t.Context(), s, tx, "test", "a", time.Now(), obj, 1)
		require.NoError(t, err)
		require.True(t, fresh)
		require.True(t, newer)
		adapted := dedup.Adapt(s, func(w wrapped) *memory.Tx { return w.inner })
		fresh, newer, err = dedup.MarkAndAdvance(t.Context(), adapted, wrapped{tx}, "test", "b", time.Now(), obj, 1)
		require.NoError(t, err)
		require.True(t, fresh)
		require.False(t, newer)
		return nil
	}))
}
