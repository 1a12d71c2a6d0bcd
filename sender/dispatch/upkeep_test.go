package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sendertest"
)

// brokenUpkeep fails each time at one part of a run's upkeep.
type brokenUpkeep struct {
	dispatch.Store
	part   string
	broken atomic.Bool
	failed atomic.Int64
	swept  atomic.Int64 // deliveries
	moved  atomic.Bool  // the database is the same since RestoreIfMoved
}

func (s *brokenUpkeep) RestoreIfMoved(context.Context) (sender.Restoration, bool, error) {
	if err := s.fail("restores"); err != nil {
		return sender.Restoration{}, false, err
	}
	return sender.Restoration{Lineage: "new"}, !s.moved.Swap(true), nil
}

func (s *brokenUpkeep) fail(part string) error {
	if part != s.part || !s.broken.Load() {
		return nil
	}
	s.failed.Add(1)
	return errAway
}

func (s *brokenUpkeep) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	if err := s.fail("sweep"); err != nil && p.Limit > 0 {
		return dispatch.Swept{}, err
	}
	n, err := s.Store.Sweep(ctx, p)
	s.swept.Add(int64(n.Ended))
	return n, err
}

func (s *brokenUpkeep) StepReplays(ctx context.Context, limit int, announce func(sender.Notice) (sender.Draft, bool)) (dispatch.ReplayStep, error) {
	if err := s.fail("replays"); err != nil {
		return dispatch.ReplayStep{}, err
	}
	return s.Store.StepReplays(ctx, limit, announce)
}

func (s *brokenUpkeep) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	if err := s.fail("prune"); err != nil {
		return dispatch.Pruned{}, err
	}
	return s.Store.Prune(ctx, p)
}

// upkeepBed has a dead letter that a replay sends again, and a delivery that a sweep ends.
func upkeepBed(t *testing.T, part string) (*bedtest.Bed, *brokenUpkeep, *dispatch.Config, *replay.Replays, string) {
	t.Helper()
	b := bedtest.New(t)
	store := &brokenUpkeep{Store: b.Store, part: part}
	schedule, err := backoff.Fixed(time.Hour)
	require.NoError(t, err)
	endpoint := sendertest.NewRoundTripper(sendertest.Status(500), sendertest.Status(500), sendertest.Status(204))
	cfg := &dispatch.Config{UnguardedTransport: endpoint, Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, Horizon: time.Millisecond}}}
	b.Subscribe("sub_a", "http://endpoint/")
	b.Publish("sub_a")
	for range 2 {
		_, err := b.DispatcherOn(store, *cfg).RunOnce(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
	}
	gone, _ := b.Subscribe("sub_b", "http://gone/")
	require.NoError(t, b.Registry.Pause(t.Context(), gone.ID))
	b.Publish("sub_b")
	_, err = b.DispatcherOn(store, *cfg).RunOnce(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Registry.Unsubscribe(t.Context(), gone.ID))
	replays, err := replay.New(b.Store, nil)
	require.NoError(t, err)
	r, err := replays.Create(t.Context(), replay.Request{})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Matched)
	store.broken.Store(true)
	store.moved.Store(false)
	return b, store, cfg, replays, r.ID
}

// If one part of a run's upkeep fails each time, the others are done all the same. It is tried
// again after pauses that hints do not cut short, and is done once it fails no more.
func TestPartOfUpkeepThatFailsStopsNoOther(t *testing.T) {
	for _, part := range []string{"restores", "sweep", "replays", "prune"} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, store, cfg, replays, id := upkeepBed(t, part)
				var log bytes.Buffer
				var restored, pruned atomic.Int64
				cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				cfg.Hooks = dispatch.Hooks{
					Restored: func(context.Context, sender.Restoration) { restored.Add(1) },
					Pruned:   func(context.Context, dispatch.Pruned) { pruned.Add(1) },
				}
				done := func() map[string]bool {
					r, err := replays.Get(t.Context(), id)
					require.NoError(t, err)
					return map[string]bool{"restores": restored.Load() == 1, "sweep": store.swept.Load() == 1, "replays": r.Status == replay.Finished, "prune": pruned.Load() > 0}
				}
				want := map[string]bool{"restores": true, "sweep": true, "replays": true, "prune": true}
				want[part] = false
				stop := b.Start(b.DispatcherOn(store, *cfg))
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					b.Store.Wake()
				}
				require.Equal(t, want, done())
				require.Positive(t, store.failed.Load())
				require.Less(t, store.failed.Load(), int64(100))
				store.broken.Store(false)
				time.Sleep(2 * time.Minute)
				want[part] = true
				require.Equal(t, want, done())
				require.NoError(t, stop())
				require.Contains(t, log.String(), errAway.Error())
			})
		})
	}
}

// Records are looked at each hour, and more often if some are kept for less.
func TestPassesOfPruning(t *testing.T) {
	const short = 10 * time.Minute
	for kept, passes := range map[time.Duration]int64{0: 2, short: 7} {
		synctest.Test(t, func(t *testing.T) {
			b := bedtest.New(t)
			var pruned atomic.Int64
			cfg := dispatch.Config{
				Retention: sender.Retention{Reach: kept, Delivered: kept, Events: kept},
				Policy:    dispatch.Policy{Backoff: backoff.Policy{Horizon: time.Minute}},
				Hooks:     dispatch.Hooks{Pruned: func(context.Context, dispatch.Pruned) { pruned.Add(1) }},
			}
			stop := b.Start(b.DispatcherOn(b.Store, cfg))
			time.Sleep(time.Hour + short/2)
			require.Equal(t, passes, pruned.Load(), "kept for %v", kept)
			require.NoError(t, stop())
		})
	}
}

// untold does not tell whether its database was restored.
type untold struct {
	dispatch.Store
	asked *int
}

func (s untold) RestoreIfMoved(context.Context) (sender.Restoration, bool, error) {
	*s.asked++
	return sender.Restoration{}, false, fmt.Errorf("%w: permission denied", errors.ErrUnsupported)
}

// A database that does not tell whether it was restored is asked once a day. The log says what
// is left to the operator.
func TestDatabaseThatDoesNotTellOfRestores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		var log bytes.Buffer
		asked := 0
		// By default it looks for work five times a second, which takes long for two days.
		stop := b.Start(b.DispatcherOn(untold{b.Store, &asked}, dispatch.Config{MaxIdle: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		time.Sleep(47 * time.Hour)
		require.NoError(t, stop())
		require.Equal(t, 2, asked)
		require.Equal(t, 2, strings.Count(log.String(), "call Restored yourself"))
		require.Contains(t, log.String(), "permission denied")
	})
}

// RunOnce watches for restores, and goes on with replays although sweeping fails. It returns
// the error.
func TestRunOnceGoesOnWithReplaysIfSweepingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store, cfg, replays, id := upkeepBed(t, "sweep")
		restored := 0
		cfg.Hooks.Restored = func(context.Context, sender.Restoration) { restored++ }
		_, err := b.DispatcherOn(store, *cfg).RunOnce(t.Context())
		require.ErrorIs(t, err, errAway)
		require.Equal(t, 1, restored)
		r, err := replays.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, replay.Finished, r.Status)
	})
}

// countless sweeps, but cannot write its counts.
type countless struct{ dispatch.Store }

func (s countless) Sweep(ctx context.Context, p dispatch.SweepParams) (dispatch.Swept, error) {
	done, err := s.Store.Sweep(ctx, p)
	if p.Limit > 0 && err == nil {
		done.Notices, err = append(done.Notices, sender.Notice{ID: "ntc_swept"}), errAway
	}
	return done, err
}

// The hooks get the notices of a sweep even if the store could not do all of the sweep.
func TestNoticesOfASweepThatFailsInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		var noticed []string
		cfg := dispatch.Config{Hooks: dispatch.Hooks{Noticed: func(_ context.Context, n sender.Notice) { noticed = append(noticed, n.ID) }}}
		_, err := b.DispatcherOn(countless{b.Store}, cfg).RunOnce(t.Context())
		require.ErrorIs(t, err, errAway)
		require.Equal(t, []string{"ntc_swept"}, noticed)
	})
}
