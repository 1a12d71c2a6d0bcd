//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// processBreakages break which process may claim from a subscription while its
// deliveries are leased.
var processBreakages = []breakage{
	{"every claim is nobody's", onClaim(func(p *dispatch.ClaimParams) { p.By.Process = 0 }), checks{
		"order/one process", "order/passed on", "order/passed on by failures", "order/passed on from one that is gone", "order/nobody's",
		"order/held by others, and in nobody's way", "order/asked for, and held by others", "order/dispatched by two processes",
	}},
	{"who is no process claims of what is held", lastProcess, checks{"order/nobody's"}},
	{"what is nobody's is held", onClaim(func(p *dispatch.ClaimParams) {
		if p.By.Process == 0 {
			p.By.Process = 99
		}
	}), checks{"order/nobody's"}},
	{"what was held once stays so", onFree(func(*holding) bool { return false }), checks{"order/passed on", "order/passed on by failures", "order/asked for, and held by others"}},
	{"a failure is held until its retry", onFree(func(h *holding) bool { return len(h.by) == 0 && !h.failing }), checks{"order/passed on by failures"}},
	{"only who holds something passes it on", onFree(func(h *holding) bool { return len(h.by) == 0 }), checks{"order/passed on from one that is gone"}},
	{"it is free when one lease has ended", func(s store) store { return &freeByTime{store: s} }, checks{"order/passed on from one that is gone"}},
	{"what others hold uses slots", func(s store) store { return &heldUsesSlots{store: s, held: map[int64]int64{}} }, checks{"order/held by others, and in nobody's way"}},
	{"what others hold is due", onClaims(func(c *dispatch.Claims) { c.NextDue = c.Now }), checks{"order/held by others, and in nobody's way"}},
	{"what is held is not redelivered", func(s store) store { return redeliveryDropped{s} }, checks{"order/asked for, and held by others"}},
}

func lastProcess(s store) store {
	last := int64(0)
	return onClaim(func(p *dispatch.ClaimParams) {
		if p.By.Process == 0 {
			p.By.Process = last
		}
		last = p.By.Process
	})(s)
}

type freeByTime struct {
	store
	last  int64
	since time.Time
}

func (b *freeByTime) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	now, err := timeOf(ctx, b.store)
	switch claim := &batch.Claim; {
	case claim.By.Process == 0 || claim.By.Process == b.last:
	case b.last != 0 && now.Sub(b.since) >= claim.Lease:
		claim.By.Process = b.last
	default:
		b.last, b.since = claim.By.Process, now
	}
	x, c, failed := b.store.Step(ctx, p, batch)
	return x, c, errors.Join(err, failed)
}

type heldUsesSlots struct {
	store
	held map[int64]int64
}

func (b *heldUsesSlots) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	slots := 0
	for _, l := range batch.Claim.Lanes {
		slots += l.Slots
	}
	for _, process := range b.held {
		if process != batch.Claim.By.Process {
			slots--
		}
	}
	if slots < 0 {
		batch.Claim.Lanes = [sender.Lanes]dispatch.LaneParams{}
	}
	x, c, err := b.store.Step(ctx, p, batch)
	for _, d := range c.Claimed {
		b.held[d.Key.Subscription] = batch.Claim.By.Process
	}
	return x, c, err
}

type redeliveryDropped struct{ store }

func (redeliveryDropped) Redeliver(context.Context, string, time.Time) error { return nil }

// holding has the leases of a process on a subscription.
type holding struct {
	process int64
	by      []dispatch.DeliveryKey
	failing bool
}

// freed drops a process's claims from a subscription that another process has held,
// unless the subscription is free.
type freed struct {
	store
	free func(*holding) bool
	all  map[int64]*holding
}

func onFree(free func(*holding) bool) func(store) store {
	return func(s store) store { return &freed{s, free, map[int64]*holding{}} }
}

func (b *freed) end(k dispatch.DeliveryKey, failed bool) {
	if h := b.all[k.Subscription]; h != nil {
		h.by = slices.DeleteFunc(h.by, func(other dispatch.DeliveryKey) bool { return other == k })
		h.failing = h.failing || failed
	}
}

func (b *freed) Release(ctx context.Context, rs []dispatch.Release) error {
	for _, r := range rs {
		b.end(r.Key, false)
	}
	return b.store.Release(ctx, rs)
}

func (b *freed) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	for _, r := range batch.Results {
		b.end(r.Key, r.Class != sender.ClassNone)
	}
	x, c, err := b.store.Step(ctx, p, batch)
	c.Claimed = slices.DeleteFunc(c.Claimed, func(d dispatch.Claimed) bool {
		h := b.all[d.Key.Subscription]
		if h == nil || h.process != batch.Claim.By.Process && b.free(h) {
			h = &holding{process: batch.Claim.By.Process}
			b.all[d.Key.Subscription] = h
		}
		if h.process != batch.Claim.By.Process {
			return true
		}
		h.by = append(h.by, d.Key)
		return false
	})
	return x, c, err
}
