package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// processBreakages break which process may claim from a subscription while its
// deliveries are leased.
var processBreakages = map[string]breakage{
	"every claim is nobody's": {[]string{
		"order/one process", "order/passed on", "order/passed on by failures", "order/passed on from one that is gone", "order/nobody's",
		"order/held by others, and in nobody's way", "order/asked for, and held by others", "order/dispatched by two processes",
	}, onClaim(func(p *sender.ClaimParams) { p.By.Process = 0 })},
	"who is no process claims of what is held": {[]string{"order/nobody's"}, func(b *broken, _ *harness) {
		last := int64(0)
		onClaim(func(p *sender.ClaimParams) {
			if p.By.Process == 0 {
				p.By.Process = last
			}
			last = p.By.Process
		})(b, nil)
	}},
	"what is nobody's is held": {[]string{"order/nobody's"}, onClaim(func(p *sender.ClaimParams) {
		if p.By.Process == 0 {
			p.By.Process = 99
		}
	})},
	"what was held once stays so": {[]string{"order/passed on", "order/passed on by failures", "order/asked for, and held by others"}, func(b *broken, _ *harness) {
		onFree(b, func(*holding) bool { return false })
	}},
	"a failure is held until its retry": {[]string{"order/passed on by failures"}, func(b *broken, _ *harness) {
		onFree(b, func(h *holding) bool { return len(h.by) == 0 && !h.failing })
	}},
	"only who holds something passes it on": {[]string{"order/passed on from one that is gone"}, func(b *broken, _ *harness) {
		onFree(b, func(h *holding) bool { return len(h.by) == 0 })
	}},
	"it is free when one lease has ended": {[]string{"order/passed on from one that is gone"}, func(b *broken, h *harness) {
		var now, since time.Duration
		last := int64(0)
		advance := h.Advance
		h.Advance = func(d time.Duration) {
			now += d
			advance(d)
		}
		onClaim(func(p *sender.ClaimParams) {
			switch {
			case p.By.Process == last:
			case last != 0 && now-since >= p.Lease:
				p.By.Process = last
			default:
				last, since = p.By.Process, now
			}
		})(b, h)
	}},
	"what others hold uses slots": {[]string{"order/held by others, and in nobody's way"}, func(b *broken, _ *harness) {
		held := map[int64]int64{}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			slots := 0
			for _, l := range batch.Claim.Lanes {
				slots += l.Slots
			}
			for _, process := range held {
				if process != batch.Claim.By.Process {
					slots--
				}
			}
			if slots < 0 {
				batch.Claim.Lanes = [sender.Lanes]sender.LaneParams{}
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for _, d := range c.Claimed {
				held[d.Key.Subscription] = batch.Claim.By.Process
			}
			return c, err
		}
	}},
	"what others hold is due": {[]string{"order/held by others, and in nobody's way"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			c.NextDue = c.Now
			return c, err
		}
	}},
	"what is held is not redelivered": {[]string{"order/asked for, and held by others"}, func(b *broken, _ *harness) {
		b.redeliver = func(context.Context, string, time.Time) error { return nil }
	}},
}

// holding has the leases of a process on a subscription.
type holding struct {
	process int64
	by      []sender.DeliveryKey
	failing bool
}

// onFree drops a process's claims from a subscription that another process has held,
// unless the subscription is free.
func onFree(b *broken, free func(*holding) bool) {
	all := map[int64]*holding{}
	end := func(k sender.DeliveryKey, failed bool) {
		if h := all[k.Subscription]; h != nil {
			h.by = slices.DeleteFunc(h.by, func(other sender.DeliveryKey) bool { return other == k })
			h.failing = h.failing || failed
		}
	}
	b.release = func(ctx context.Context, rs []sender.Release) error {
		for _, r := range rs {
			end(r.Key, false)
		}
		return b.Store.Release(ctx, rs)
	}
	b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
		for _, r := range batch.Results {
			end(r.Key, r.Class != sender.ClassNone)
		}
		c, err := b.Store.RecordAndClaim(ctx, batch)
		c.Claimed = slices.DeleteFunc(c.Claimed, func(d sender.Claimed) bool {
			h := all[d.Key.Subscription]
			if h == nil || h.process != batch.Claim.By.Process && free(h) {
				h = &holding{process: batch.Claim.By.Process}
				all[d.Key.Subscription] = h
			}
			if h.process != batch.Claim.By.Process {
				return true
			}
			h.by = append(h.by, d.Key)
			return false
		})
		return c, err
	}
}
