//go:build !race

package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// claimBreakages break claims: leases, due times, and the shares of lanes and subscribers.
var claimBreakages = []breakage{
	{"lease ignored", onClaim(func(p *dispatch.ClaimParams) { p.Lease = 0 }), checks{"claim/lease"}},
	{"lease too short", onClaim(func(p *dispatch.ClaimParams) { p.Lease -= 2 * time.Second }), checks{"claim/lease", "several processes/slower than its lease", "random/seed 1"}},
	{"due ignored", onDue(func(due, now time.Time) time.Time { return now }), checks{"claim/nothing before it is due", "record/failure", "random/seed 1"}},
	{"head not lowered on a retry", onDue(func(due, now time.Time) time.Time { return due.Add(time.Hour) }), checks{"claim/NextDue", "claim/nothing before it is due", "random/seed 1"}},
	{"interrupted attempts not stored", onDelivery(func(d *sender.Delivery) {
		d.Attempts = slices.DeleteFunc(d.Attempts, func(a sender.Attempt) bool { return a.Class == sender.ClassInterrupted })
		d.AttemptCount = len(d.Attempts)
	}), checks{"claim/lost attempt", "several processes/slower than its lease", "random/seed 1"}},
	{"slots exceeded", onClaim(func(p *dispatch.ClaimParams) {
		for i := range p.Lanes {
			if p.Lanes[i].Slots > 0 {
				p.Lanes[i].Slots++
				p.Lanes[i].PerSubscriber++
				p.Lanes[i].PerSubscription++
			}
		}
	}), checks{"fairness/slots"}},
	{"bound of a subscriber ignored", onClaim(func(p *dispatch.ClaimParams) { p.Lanes[sender.LaneNew].PerSubscriber = 1000 }), checks{"fairness/bounds of each"}},
	{"bound of a subscription ignored", onClaim(func(p *dispatch.ClaimParams) { p.Lanes[sender.LaneNew].PerSubscription = 1000 }), checks{"fairness/bounds of each"}},
	{"room of subscriptions ignored", onClaim(func(p *dispatch.ClaimParams) { p.SubscriptionRoom = nil }), checks{"fairness/room of each"}},
	{"room of subscribers ignored", onClaim(func(p *dispatch.ClaimParams) { p.Lanes[sender.LaneNew].SubscriberRoom = nil }), checks{"fairness/room of each"}},
	{"lanes ignored", onClaim(func(p *dispatch.ClaimParams) {
		for i := range p.Lanes {
			p.Lanes[i] = slices.MaxFunc(p.Lanes[:], func(a, b dispatch.LaneParams) int { return cmp.Compare(a.Slots, b.Slots) })
		}
	}), checks{"fairness/lanes"}},
	{"first come, first served", func(s store) store { return firstCome{s} }, checks{"fairness/a backlog delays nobody", "fairness/shares of subscribers", "fairness/turns"}},
	{"NextDue forgotten", onClaims(func(c *dispatch.Claims) { c.NextDue = time.Time{} }), checks{"claim/NextDue", "random/seed 1"}},
	{"claimed by two processes", func(s store) store { return &claimedTwice{store: s} }, checks{"several processes/each delivery once"}},
	{"wake-ups overlooked", func(s store) store { return &claimedByOther{store: s} }, checks{"claim/every wake-up is seen"}},
}

type firstCome struct{ store }

func (b firstCome) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	slots := batch.Claim.Lanes[sender.LaneNew].Slots
	if slots > 0 {
		batch.Claim.Lanes[sender.LaneNew] = dispatch.LaneParams{Slots: 1 << 20, PerSubscriber: 1 << 20, PerSubscription: 1 << 20}
	}
	x, c, err := b.store.Step(ctx, p, batch)
	slices.SortFunc(c.Claimed, func(x, y dispatch.Claimed) int { return cmp.Compare(x.Key.Event, y.Key.Event) })
	var back []dispatch.Release
	for _, d := range c.Claimed[min(slots, len(c.Claimed)):] {
		back = append(back, dispatch.Release{Key: d.Key, Token: d.Token})
	}
	c.Claimed = c.Claimed[:min(slots, len(c.Claimed))]
	return x, c, errors.Join(err, b.store.Release(ctx, back))
}

type claimedByOther struct {
	store
	taken atomic.Bool
}

func (b *claimedByOther) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, _, err := b.store.Step(ctx, p, dispatch.Batch{})
	if x.Deliveries > 0 && !b.taken.Load() { // as if somebody had claimed meanwhile
		_, c, failed := b.store.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{Claim: dispatch.ClaimParams{
			Lease: time.Minute, Lanes: [sender.Lanes]dispatch.LaneParams{{Slots: 1, PerSubscriber: 1, PerSubscription: 1}},
		}})
		err = errors.Join(err, failed)
		if len(c.Claimed) > 0 { // others may have claimed all of it
			b.taken.Store(true)
		}
	}
	_, c, failed := b.store.Step(ctx, dispatch.ExpandParams{}, batch)
	return x, c, errors.Join(err, failed)
}

// claimedTwice gives one delivery of a claim to the next claim too.
type claimedTwice struct {
	store
	mu    sync.Mutex
	given []dispatch.Claimed
}

func (b *claimedTwice) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	b.mu.Lock()
	defer b.mu.Unlock()
	given := b.given
	b.given = slices.Clone(c.Claimed[:min(1, len(c.Claimed))])
	c.Claimed = append(c.Claimed, given...)
	return x, c, err
}
