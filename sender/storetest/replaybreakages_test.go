//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
)

// replayBreakages break replays, and what must not be sent again.
var replayBreakages = []breakage{
	{"a replay's set not fixed", func(s store) store { return &replayedLate{store: s, created: map[string]replay.Replay{}} }, checks{"replay/set of dead letters", "replay/set of delivered ones", "random/seed 3"}},
	{"a member admitted twice", onReplayStep(func(s *dispatch.ReplayStep) { s.Admitted += s.Admitted }), checks{"replay/in steps", "replay/dead letters", "random/seed 1"}},
	{"a step's limit ignored", func(s store) store { return replayUnlimited{s} }, checks{"replay/in steps", "replay/turns"}},
	{"More of a step forgotten", onReplayStep(func(s *dispatch.ReplayStep) { s.More = false }), checks{"replay/dead letters", "replay/in steps"}},
	{"Next of a step forgotten", onReplayStep(func(s *dispatch.ReplayStep) { s.Next = time.Time{} }), checks{"replay/rate", "replay/ahead"}},
	{"a replay's end not announced", func(s store) store { return replayUnannounced{s} }, checks{"replay/finished"}},
	{"a replay goes before fresh work", func(s store) store { return replayedFirst{s} }, checks{"replay/below fresh work"}},
	{"a replay's rate ignored", onReplay(func(r *replay.Replay, _ *time.Time) { r.Rate *= 100 }), checks{"replay/rate"}},
	{"a replay's id not the one that is given", func(s store) store { return replayRenamed{s} }, checks{"replay/id"}},
	{"a replay shares its groups with its caller", onReplay(func(*replay.Replay, *time.Time) {}), checks{"replay/copies"}},
	{"a replay's filter ignored", onReplay(func(r *replay.Replay, _ *time.Time) { r.Filter = replay.Filter{Status: r.Filter.Status} }), checks{"replay/filter"}},
	{"a replay's class ignored", onReplay(func(r *replay.Replay, _ *time.Time) { r.Filter.ErrorClass = "" }), checks{"replay/filter", "random/seed 2"}},
	{"a replay's until included", onReplay(func(r *replay.Replay, _ *time.Time) {
		if !r.Filter.Until.IsZero() {
			r.Filter.Until = r.Filter.Until.Add(time.Microsecond)
		}
	}), checks{"replay/filter"}},
	{"a replay beyond the retention", onReplay(func(_ *replay.Replay, notBefore *time.Time) { *notBefore = time.Time{} }), checks{"replay/beyond the retention"}},
	{"what has grown too old replayed", func(s store) store { return replayAgeless{s} }, checks{"replay/grown too old"}},
	{"what has grown too old skipped untold", func(s store) store { return replayUntold{s} }, checks{"replay/grown too old"}},
	{"any number of replays of a subscriber", func(s store) store { return replayCrowded{s} }, checks{"replay/unfinished"}},
	{"a replay's bound ignored", func(s store) store { return replayUnbound{s} }, checks{"replay/beyond the bound"}},
	{"More of a replay forgotten", func(s store) store { return replayWhole{s} }, checks{"replay/beyond the bound"}},
	{"Matched of a replay stays behind", func(s store) store { return replayBehind{s, map[string]int64{}} }, checks{"replay/beyond the bound"}},
	{"a bound replay beyond the retention", func(s store) store { return replayAgedUnseen{s} }, checks{"replay/dead letters beyond the retention and the bound", "replay/many delivered ones beyond the retention"}},
	{"a redelivery beyond the retention", func(s store) store { return redeliveredEver{s} }, checks{"replay/redelivery beyond the retention"}},
	{"another's subscription replayed", onReplay(func(r *replay.Replay, _ *time.Time) {
		if r.Filter.Subscription != "" {
			r.Filter.Subscriber = ""
		}
	}), checks{"replay/no such"}},
	{"a replay goes on only later", func(s store) store { return &replayPausing{store: s} }, checks{"replay/worked through at once"}},
	{"a pause of a replay ignored", func(s store) store { return replayUnpaused{s} }, checks{"replay/paused, continued, cancelled"}},
	{"what is replayed counts once it is claimed", func(s store) store { return &replayUncounted{store: s} }, checks{"replay/counted"}},
	{"a cancelled replay goes on", func(s store) store { return replayUncancelled{s} }, checks{"replay/paused, continued, cancelled", "random/seed 3"}},
}

// replayUncounted leaves out of its counts what was admitted since the last claim.
type replayUncounted struct {
	store
	admitted int64
}

func (b *replayUncounted) StepReplays(ctx context.Context, limit int, announce announceFunc) (dispatch.ReplayStep, error) {
	s, err := b.store.StepReplays(ctx, limit, announce)
	b.admitted += int64(s.Admitted)
	return s, err
}

func (b *replayUncounted) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	b.admitted = max(0, b.admitted-int64(len(c.Claimed)))
	return x, c, err
}

func (b *replayUncounted) Counts(ctx context.Context) (history.Counts, error) {
	c, err := b.store.Counts(ctx)
	if b.admitted > 0 && c.Live >= b.admitted {
		c.Live -= b.admitted
		c.Lanes[sender.LaneNew].Live -= b.admitted
	}
	return c, err
}

// replayAgeless heeds the age of events only when a replay is created.
type replayAgeless struct{ store }

func (b replayAgeless) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	made, err := b.store.CreateReplay(ctx, r, bounds)
	if err != nil {
		return made, err
	}
	if _, err := b.store.SetReplayStatus(ctx, made.ID, replay.Cancelled); err != nil {
		return made, err
	}
	bounds.NotBefore = time.Time{}
	return b.store.CreateReplay(ctx, r, bounds)
}

type replayCrowded struct{ store }

func (b replayCrowded) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	bounds.Unfinished = 0
	return b.store.CreateReplay(ctx, r, bounds)
}

type replayRenamed struct{ store }

func (b replayRenamed) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	r.ID = ""
	return b.store.CreateReplay(ctx, r, bounds)
}

type replayUntold struct{ store }

func (b replayUntold) Replay(ctx context.Context, id string) (replay.Replay, error) {
	r, err := b.store.Replay(ctx, id)
	r.TooOld = 0
	return r, err
}

type replayUnbound struct{ store }

func (b replayUnbound) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	bounds.Look = 0
	return b.store.CreateReplay(ctx, r, bounds)
}

type replayWhole struct{ store }

func (b replayWhole) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	r, err := b.store.CreateReplay(ctx, r, bounds)
	r.More = false
	return r, err
}

func (b replayWhole) Replay(ctx context.Context, id string) (replay.Replay, error) {
	r, err := b.store.Replay(ctx, id)
	r.More = false
	return r, err
}

// replayBehind shows the Matched that replays were created with, until they end.
type replayBehind struct {
	store
	matched map[string]int64
}

func (b replayBehind) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	r, err := b.store.CreateReplay(ctx, r, bounds)
	b.matched[r.ID] = r.Matched
	return r, err
}

func (b replayBehind) Replay(ctx context.Context, id string) (replay.Replay, error) {
	r, err := b.store.Replay(ctx, id)
	if r.More {
		r.Matched = b.matched[id]
	}
	return r, err
}

// replayAgedUnseen does not look for what is too old where not all was looked at.
type replayAgedUnseen struct{ store }

func (b replayAgedUnseen) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	if bounds.Look > 0 {
		bounds.NotBefore = time.Time{}
	}
	return b.store.CreateReplay(ctx, r, bounds)
}

// replayedLate creates a replay anew when it is stepped.
type replayedLate struct {
	store
	created map[string]replay.Replay
}

func (b *replayedLate) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	made, err := b.store.CreateReplay(ctx, r, bounds)
	b.created[made.ID] = r
	return made, err
}

func (b *replayedLate) StepReplays(ctx context.Context, limit int, announce announceFunc) (dispatch.ReplayStep, error) {
	for id, r := range b.created {
		_, _ = b.store.SetReplayStatus(ctx, id, replay.Cancelled)
		_, _ = b.store.CreateReplay(ctx, r, replay.Bounds{})
		delete(b.created, id)
	}
	return b.store.StepReplays(ctx, limit, announce)
}

type replayUnlimited struct{ store }

func (b replayUnlimited) StepReplays(ctx context.Context, _ int, announce announceFunc) (dispatch.ReplayStep, error) {
	return b.store.StepReplays(ctx, 1000, announce)
}

type replayUnannounced struct{ store }

func (b replayUnannounced) StepReplays(ctx context.Context, limit int, _ announceFunc) (dispatch.ReplayStep, error) {
	return b.store.StepReplays(ctx, limit, nil)
}

type replayedFirst struct{ store }

func (b replayedFirst) StepReplays(ctx context.Context, limit int, announce announceFunc) (dispatch.ReplayStep, error) {
	s, err := b.store.StepReplays(ctx, limit, announce)
	if s.Admitted > 0 { // a redelivery has lost its rank
		page, _, _ := b.store.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusAwaitingRetry, Limit: 200})
		for _, d := range page {
			err = errors.Join(err, b.store.Redeliver(ctx, d.ID, time.Time{}))
		}
	}
	return s, err
}

type redeliveredEver struct{ store }

func (b redeliveredEver) Redeliver(ctx context.Context, id string, _ time.Time) error {
	return b.store.Redeliver(ctx, id, time.Time{})
}

type replayUnpaused struct{ store }

func (b replayUnpaused) SetReplayStatus(ctx context.Context, id string, to replay.Status) (replay.Replay, error) {
	r, err := b.store.SetReplayStatus(ctx, id, to)
	if to == replay.Paused {
		_, _ = b.store.SetReplayStatus(ctx, id, replay.Running)
	}
	return r, err
}

type replayUncancelled struct{ store }

func (b replayUncancelled) SetReplayStatus(ctx context.Context, id string, to replay.Status) (replay.Replay, error) {
	if to == replay.Cancelled {
		return b.store.Replay(ctx, id)
	}
	return b.store.SetReplayStatus(ctx, id, to)
}

type otherReplayStep struct {
	store
	change func(*dispatch.ReplayStep)
}

func onReplayStep(change func(*dispatch.ReplayStep)) func(store) store {
	return func(s store) store { return otherReplayStep{s, change} }
}

func (b otherReplayStep) StepReplays(ctx context.Context, limit int, announce announceFunc) (dispatch.ReplayStep, error) {
	s, err := b.store.StepReplays(ctx, limit, announce)
	b.change(&s)
	return s, err
}

// replayPausing admits nothing more once a replay has waited for its deliveries, and does not
// tell that it could.
type replayPausing struct {
	store
	waits bool
}

func (b *replayPausing) StepReplays(ctx context.Context, limit int, announce announceFunc) (dispatch.ReplayStep, error) {
	if b.waits {
		return dispatch.ReplayStep{}, nil
	}
	s, err := b.store.StepReplays(ctx, limit, announce)
	b.waits = !s.More && !s.Next.IsZero()
	return s, err
}

// otherReplay stores another replay than was requested, and hides that from readers.
type otherReplay struct {
	store
	change    func(r *replay.Replay, notBefore *time.Time)
	requested map[string]replay.Replay
}

func onReplay(change func(r *replay.Replay, notBefore *time.Time)) func(store) store {
	return func(s store) store { return otherReplay{s, change, map[string]replay.Replay{}} }
}

func (b otherReplay) CreateReplay(ctx context.Context, r replay.Replay, bounds replay.Bounds) (replay.Replay, error) {
	requested := r
	b.change(&r, &bounds.NotBefore)
	made, err := b.store.CreateReplay(ctx, r, bounds)
	b.requested[made.ID] = requested
	return b.shown(made), err
}

func (b otherReplay) Replay(ctx context.Context, id string) (replay.Replay, error) {
	r, err := b.store.Replay(ctx, id)
	return b.shown(r), err
}

func (b otherReplay) shown(r replay.Replay) replay.Replay {
	r.Filter, r.Rate = b.requested[r.ID].Filter, b.requested[r.ID].Rate
	return r
}
