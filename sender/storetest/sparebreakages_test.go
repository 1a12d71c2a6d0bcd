package storetest_test

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// spareBreakages break how a store remembers spared attempts.
var spareBreakages = map[string]breakage{
	"spared forgotten":               {[]string{"record/spared", "record/spared, single", "random/seed 1"}, onDecision(func(dec *sender.Decision) { dec.Spared = false })},
	"spared not told with the claim": {[]string{"record/spared", "record/spared, single", "random/seed 1"}, onSpared(func(sender.Claimed) bool { return false })},
	"spared for ever": {[]string{"record/spared", "record/spared, anew", "random/seed 1"}, func(b *broken, h *harness) {
		ever := map[sender.DeliveryKey]bool{}
		keepSpared(func(l sender.Live) bool {
			ever[l.Key] = ever[l.Key] || l.Spared
			return ever[l.Key]
		})(b, h)
	}},
	"spared through a lost attempt": {[]string{"record/spared, lost"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			dec := decide(l, h, r, now)
			dec.Spared = dec.Spared || l.Spared && r.Class == sender.ClassInterrupted
			return dec
		}
	})},
	"a release ends what was spared": {[]string{"record/spared, released"}, func(b *broken, h *harness) {
		released := map[sender.DeliveryKey]bool{}
		b.release = func(ctx context.Context, rs []sender.Release) error {
			for _, r := range rs {
				released[r.Key] = true
			}
			return b.Store.Release(ctx, rs)
		}
		onSpared(func(c sender.Claimed) bool { return c.Spared && !released[c.Key] })(b, h)
	}},
	"spared through a redelivery": {[]string{"record/spared, anew"}, func(b *broken, h *harness) {
		again := false
		b.redeliver = func(ctx context.Context, id string, notBefore time.Time) error {
			again = true
			return b.Store.Redeliver(ctx, id, notBefore)
		}
		keepSpared(func(l sender.Live) bool { return l.Spared || again })(b, h)
	}},
	"spared through a resume": {[]string{"record/spared, anew"}, func(b *broken, h *harness) {
		again := false
		onResume(func(*sender.Resume) { again = true })(b, h)
		keepSpared(func(l sender.Live) bool { return l.Spared || again })(b, h)
	}},
	"spared through a replay": {[]string{"record/spared, anew"}, func(b *broken, h *harness) {
		again := false
		b.stepReplays = func(ctx context.Context, limit int, announce announceFunc) (sender.ReplayStep, error) {
			again = true
			return b.Store.StepReplays(ctx, limit, announce)
		}
		onSpared(func(c sender.Claimed) bool { return c.Spared || again })(b, h)
	}},
	"a single attempt that is spared is the last": {[]string{"record/spared, single"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			dec := decide(l, h, r, now)
			if dec.Spared && l.Single {
				dec = sender.Decision{Status: sender.StatusDelivered, Health: h}
			}
			return dec
		}
	})},
	"a single one is spared as an ordinary one": {[]string{"record/spared, single"}, onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			l.Single = l.Single && !l.Spared
			return decide(l, h, r, now)
		}
	})},
	"facts without Spared": {[]string{"record/spared, single"}, onFacts(func(f *sender.Facts) { f.Spared = false })},
}

// onSpared changes Spared in claims.
func onSpared(spared func(sender.Claimed) bool) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for i := range c.Claimed {
				c.Claimed[i].Spared = spared(c.Claimed[i])
			}
			return c, err
		}
	}
}

// keepSpared changes Spared for decisions.
func keepSpared(spared func(sender.Live) bool) func(*broken, *harness) {
	return onDecide(func(decide decideFunc) decideFunc {
		return func(l sender.Live, h sender.Health, r sender.Result, now time.Time) sender.Decision {
			l.Spared = spared(l)
			return decide(l, h, r, now)
		}
	})
}
