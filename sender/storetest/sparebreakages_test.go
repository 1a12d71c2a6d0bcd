//go:build !race

package storetest_test

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// spareBreakages break how a store remembers spared attempts.
var spareBreakages = []breakage{
	{"spared forgotten", onDecision(func(dec *dispatch.Decision) { dec.Spared = false }), checks{"record/spared", "record/spared, single", "random/seed 1"}},
	{"spared not told with the claim", onClaimed(func(c *dispatch.Claimed) { c.Spared = false }), checks{"record/spared", "record/spared, single", "random/seed 1"}},
	{"spared for ever", sparedEver, checks{"record/spared", "record/spared, anew", "random/seed 3"}},
	{"spared through a lost attempt", onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		dec.Spared = dec.Spared || l.Spared && r.Class == sender.ClassInterrupted
		return dec
	}), checks{"record/spared, lost"}},
	{"a release ends what was spared", func(s store) store { return &releaseUnspares{store: s, released: map[dispatch.DeliveryKey]bool{}} }, checks{"record/spared, released"}},
	{"spared through a redelivery", func(s store) store { return &sparedRedelivered{store: s} }, checks{"record/spared, anew"}},
	{"spared through a resume", sparedResumed, checks{"record/spared, anew"}},
	{"spared through a replay", func(s store) store { return &sparedReplayed{store: s} }, checks{"record/spared, anew"}},
	{"a single attempt that is spared is the last", onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		dec := decide(l, h, r, now)
		if dec.Spared && l.Single {
			dec = dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		}
		return dec
	}), checks{"record/spared, single"}},
	{"a single one is spared as an ordinary one", onLive(func(l *dispatch.Live) { l.Single = l.Single && !l.Spared }), checks{"record/spared, single"}},
	{"facts without Spared", onFacts(func(f *history.Facts) { f.Spared = false }), checks{"record/spared, single"}},
}

func sparedEver(s store) store {
	ever := map[dispatch.DeliveryKey]bool{}
	return onLive(func(l *dispatch.Live) {
		ever[l.Key] = ever[l.Key] || l.Spared
		l.Spared = ever[l.Key]
	})(s)
}

type releaseUnspares struct {
	store
	released map[dispatch.DeliveryKey]bool
}

func (b *releaseUnspares) Release(ctx context.Context, rs []dispatch.Release) error {
	for _, r := range rs {
		b.released[r.Key] = true
	}
	return b.store.Release(ctx, rs)
}

func (b *releaseUnspares) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	return onClaimed(func(c *dispatch.Claimed) { c.Spared = c.Spared && !b.released[c.Key] })(b.store).Step(ctx, p, batch)
}

type sparedRedelivered struct {
	store
	again bool
}

func (b *sparedRedelivered) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	b.again = true
	return b.store.Redeliver(ctx, id, notBefore)
}

func (b *sparedRedelivered) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	return onLive(func(l *dispatch.Live) { l.Spared = l.Spared || b.again })(b.store).Step(ctx, p, batch)
}

func sparedResumed(s store) store {
	again := false
	s = onResume(func(*sender.Resume) { again = true })(s)
	return onLive(func(l *dispatch.Live) { l.Spared = l.Spared || again })(s)
}

type sparedReplayed struct {
	store
	again bool
}

func (b *sparedReplayed) StepReplays(ctx context.Context, limit int, announce announceFunc) (dispatch.ReplayStep, error) {
	b.again = true
	return b.store.StepReplays(ctx, limit, announce)
}

func (b *sparedReplayed) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	return onClaimed(func(c *dispatch.Claimed) { c.Spared = c.Spared || b.again })(b.store).Step(ctx, p, batch)
}
