package storetest_test

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// spareBreakages break how a store remembers spared attempts.
var spareBreakages = []breakage{
	{"spared forgotten", onDecision(func(dec *sender.Decision) { dec.Spared = false }), checks{"record/spared", "record/spared, single", "random/seed 1"}},
	{"spared not told with the claim", onClaimed(func(c *sender.Claimed) { c.Spared = false }), checks{"record/spared", "record/spared, single", "random/seed 1"}},
	{"spared for ever", sparedEver, checks{"record/spared", "record/spared, anew", "random/seed 1"}},
	{"spared through a lost attempt", onDecide(func(decide decideFunc, l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
		dec := decide(l, h, r, now)
		dec.Spared = dec.Spared || l.Spared && r.Class == sender.ClassInterrupted
		return dec
	}), checks{"record/spared, lost"}},
	{"a release ends what was spared", func(s store) store { return &releaseUnspares{store: s, released: map[sender.DeliveryKey]bool{}} }, checks{"record/spared, released"}},
	{"spared through a redelivery", func(s store) store { return &sparedRedelivered{store: s} }, checks{"record/spared, anew"}},
	{"spared through a resume", sparedResumed, checks{"record/spared, anew"}},
	{"spared through a replay", func(s store) store { return &sparedReplayed{store: s} }, checks{"record/spared, anew"}},
	{"a single attempt that is spared is the last", onDecide(func(decide decideFunc, l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
		dec := decide(l, h, r, now)
		if dec.Spared && l.Single {
			dec = sender.Decision{Status: sender.StatusDelivered, Health: h}
		}
		return dec
	}), checks{"record/spared, single"}},
	{"a single one is spared as an ordinary one", onLive(func(l *sender.Live) { l.Single = l.Single && !l.Spared }), checks{"record/spared, single"}},
	{"facts without Spared", onFacts(func(f *sender.Facts) { f.Spared = false }), checks{"record/spared, single"}},
}

func sparedEver(s store) store {
	ever := map[sender.DeliveryKey]bool{}
	return onLive(func(l *sender.Live) {
		ever[l.Key] = ever[l.Key] || l.Spared
		l.Spared = ever[l.Key]
	})(s)
}

type releaseUnspares struct {
	store
	released map[sender.DeliveryKey]bool
}

func (b *releaseUnspares) Release(ctx context.Context, rs []sender.Release) error {
	for _, r := range rs {
		b.released[r.Key] = true
	}
	return b.store.Release(ctx, rs)
}

func (b *releaseUnspares) Step(ctx context.Context, p sender.ExpandParams, batch sender.Batch) (sender.Expanded, sender.Claims, error) {
	return onClaimed(func(c *sender.Claimed) { c.Spared = c.Spared && !b.released[c.Key] })(b.store).Step(ctx, p, batch)
}

type sparedRedelivered struct {
	store
	again bool
}

func (b *sparedRedelivered) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	b.again = true
	return b.store.Redeliver(ctx, id, notBefore)
}

func (b *sparedRedelivered) Step(ctx context.Context, p sender.ExpandParams, batch sender.Batch) (sender.Expanded, sender.Claims, error) {
	return onLive(func(l *sender.Live) { l.Spared = l.Spared || b.again })(b.store).Step(ctx, p, batch)
}

func sparedResumed(s store) store {
	again := false
	s = onResume(func(*sender.Resume) { again = true })(s)
	return onLive(func(l *sender.Live) { l.Spared = l.Spared || again })(s)
}

type sparedReplayed struct {
	store
	again bool
}

func (b *sparedReplayed) StepReplays(ctx context.Context, limit int, announce announceFunc) (sender.ReplayStep, error) {
	b.again = true
	return b.store.StepReplays(ctx, limit, announce)
}

func (b *sparedReplayed) Step(ctx context.Context, p sender.ExpandParams, batch sender.Batch) (sender.Expanded, sender.Claims, error) {
	return onClaimed(func(c *sender.Claimed) { c.Spared = c.Spared || b.again })(b.store).Step(ctx, p, batch)
}
