package rules_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/rules"
)

// Batch by batch, a pass takes each step to its end, deliveries before their events, and
// then it is over. It skips a step whose time is zero.
func TestPropertyPruneTakesEachStepToItsEnd(t *testing.T) {
	names := []string{"dead letters", "cancelled deliveries", "delivered deliveries", "events", "notices", "replays", "figures", "figures of subscriptions", "subscriptions", "objects"}
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) time.Time {
			return rapid.SampledFrom([]time.Time{{}, time.Unix(1, 0), time.Unix(2, 0)}).Draw(t, label)
		}
		params := dispatch.PruneParams{
			Delivered: at("delivered"), DeadLetters: at("dead letters"), Events: at("events"), Notices: at("notices"), Rollups: at("rollups"), SubscriptionRollups: at("rollups of subscriptions"), Objects: at("objects"),
			Limit: rapid.IntRange(1, 5).Draw(t, "limit"),
		}
		times := []time.Time{params.DeadLetters, params.Delivered, params.Delivered, params.Events, params.Notices, params.Events, params.Rollups, params.SubscriptionRollups, params.Events, params.Objects}
		broken := rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 3, rapid.ID[int]).Draw(t, "broken")
		left := rapid.SliceOfN(rapid.IntRange(0, 12), 10, 10).Draw(t, "left")
		want := 0
		for i, n := range left {
			if !times[i].IsZero() && !slices.Contains(broken, i) {
				want += n
			}
		}
		failed := map[string]bool{}
		removed, furthest, over := 0, 0, false
		for range 200 { // of 10 steps with up to 12 each, one at a time
			p, err := rules.NewPrunePass(params)
			require.NoError(t, err)
			step := func(i int) rules.PruneStep {
				return func(before time.Time) (bool, error) {
					require.Equal(t, times[i], before, names[i])
					require.False(t, before.IsZero(), names[i])
					require.GreaterOrEqual(t, i, furthest, "%s are gone back to", names[i])
					if i > furthest {
						require.Zero(t, p.At, "a step begins at its beginning")
					}
					furthest = i
					if slices.Contains(broken, i) {
						p.At.Event++
						return true, errBroken
					}
					n := min(left[i], params.Limit)
					left[i] -= n
					removed += n
					p.Out.Rollups += n
					p.At.Event += int64(n)
					return n == params.Limit, nil
				}
			}
			before := removed
			out, err := p.Run(rules.PruneSteps{DeadLetters: step(0), Cancelled: step(1), Delivered: step(2), Events: step(3), Notices: step(4), Replays: step(5), Rollups: step(6), SubscriptionRollups: step(7), Subscriptions: step(8), Objects: step(9)})
			if err != nil {
				require.ErrorIs(t, err, errBroken)
				kind, _, _ := strings.Cut(err.Error(), ":")
				require.False(t, failed[kind], "%s fail twice in a pass", kind)
				failed[kind] = true
				require.Zero(t, out.Rollups)
			}
			require.Equal(t, removed-before, out.Rollups)
			require.LessOrEqual(t, out.Rollups, params.Limit, "a batch is one step's")
			if params.Cursor = out.Cursor; out.Cursor == "" {
				over = true
				break
			}
		}
		require.True(t, over, "it has no end")
		require.Equal(t, want, removed, "what fails keeps nothing else")
		for _, i := range broken {
			if times[i].IsZero() {
				require.NotContains(t, failed, names[i])
			} else {
				require.Contains(t, failed, names[i])
			}
		}
	})
}

var errBroken = errors.New("broken on purpose")

func TestPruneFails(t *testing.T) {
	p, err := rules.NewPrunePass(dispatch.PruneParams{Notices: time.Unix(1, 0), Limit: 1})
	require.NoError(t, err)
	out, err := p.Run(rules.PruneSteps{Notices: func(time.Time) (bool, error) {
		p.Out.Notices = 1
		return true, errBroken
	}})
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, dispatch.Pruned{Cursor: "5.0.0."}, out, "the kind behind")
	p, err = rules.NewPrunePass(dispatch.PruneParams{Objects: time.Unix(1, 0), Limit: 1})
	require.NoError(t, err)
	out, err = p.Run(rules.PruneSteps{Objects: func(time.Time) (bool, error) { return true, errBroken }})
	require.EqualError(t, err, "objects: broken on purpose")
	require.Zero(t, out, "it was the last")
}

func TestNoPassCursor(t *testing.T) {
	for _, text := range []string{"0", "0.0.0", "0.0.", "10.0.0.", "-1.0.0.", "0.0.0.0.", "00.0.0.", "0.-1.0.", "0.0.+1.", "0.0.0.\n", "\x00"} {
		_, err := rules.NewPrunePass(dispatch.PruneParams{Limit: 1, Cursor: text})
		require.ErrorIs(t, err, sender.ErrInvalid, "%q", text)
	}
	for _, text := range []string{"1", "1.2", "2.2.", "3.2.", "-1.2.", "1.2.3.", "01.2.", "1.2. "} {
		_, _, err := rules.RedactPass(&history.RedactParams{Limit: 1, Cursor: text})
		require.ErrorIs(t, err, sender.ErrInvalid, "%q", text)
	}
	_, err := rules.NewPrunePass(dispatch.PruneParams{})
	require.ErrorIs(t, err, sender.ErrInvalid, "no limit")
	_, _, err = rules.RedactPass(&history.RedactParams{})
	require.ErrorIs(t, err, sender.ErrInvalid, "no limit")
}

func TestRedactPass(t *testing.T) {
	from, upTo, err := rules.RedactPass(&history.RedactParams{Limit: 1})
	require.NoError(t, err)
	require.Zero(t, from)
	require.Zero(t, upTo)
	from, upTo, err = rules.RedactPass(&history.RedactParams{Limit: 1, Cursor: rules.RedactCursor(3, 9)})
	require.NoError(t, err)
	require.Equal(t, []int64{3, 9}, []int64{from, upTo})
	require.Empty(t, rules.RedactCursor(9, 9), "it has looked at all")
}
