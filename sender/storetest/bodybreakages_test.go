package storetest_test

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/surehook/surehook/sender"
)

// bodyBreakages break how a store reads and bounds the bodies of claimed deliveries.
var bodyBreakages = map[string]breakage{
	"bodies without a bound":           {[]string{"bodies/within a bound", "bodies/one that is larger"}, onClaim(func(p *sender.ClaimParams) { p.Bytes = 0 })},
	"bodies counted for each delivery": {[]string{"bodies/counted once"}, onClaim(func(p *sender.ClaimParams) { p.Bytes /= 3 })},
	"a body larger than the bound stays": {[]string{"bodies/one that is larger"}, onClaimedBodies(func(b *broken, p sender.ClaimParams, c *sender.Claims) {
		c.Claimed = slices.DeleteFunc(c.Claimed, func(c sender.Claimed) bool { return p.Bytes > 0 && int64(len(c.Body)) > p.Bytes })
	})},
	"a bound passes the same one over": {[]string{"bodies/turns"}, func(b *broken, h *harness) {
		var last int64
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			if batch.Claim.Bytes > 0 && last != 0 { // the one that was served last is served now
				batch.Claim.SubscriptionRoom = map[int64]int{last: 10}
				for i := range batch.Claim.Lanes {
					batch.Claim.Lanes[i].PerSubscription = 0
				}
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			for _, cl := range c.Claimed {
				last = cl.Key.Subscription
			}
			return c, err
		}
	}},
	"a body for each delivery": {[]string{"bodies/shared"}, onClaimedBodies(func(_ *broken, _ sender.ClaimParams, c *sender.Claims) {
		for i := range c.Claimed {
			c.Claimed[i].Body = bytes.Clone(c.Claimed[i].Body)
		}
	})},
	"Payloads invents what is not there": {[]string{"bodies/Payloads"}, onPayloads(func(events []int64, all map[int64]sender.Payload) {
		for _, no := range events {
			if _, there := all[no]; !there {
				all[no] = sender.Payload{}
			}
		}
	})},
	"Payloads leaves redacted events out": {[]string{"bodies/Payloads, redacted"}, onPayloads(func(_ []int64, all map[int64]sender.Payload) {
		maps.DeleteFunc(all, func(_ int64, p sender.Payload) bool { return len(p.Body) == 0 })
	})},
	"Payloads keeps redacted bodies": {[]string{"bodies/Payloads, redacted"}, func(b *broken, h *harness) {
		kept := map[int64][]byte{}
		onClaimedBodies(func(_ *broken, _ sender.ClaimParams, c *sender.Claims) {
			for _, cl := range c.Claimed {
				kept[cl.Key.Event] = cl.Body
			}
		})(b, h)
		onPayloads(func(_ []int64, all map[int64]sender.Payload) {
			for no, p := range all {
				p.Body = kept[no]
				all[no] = p
			}
		})(b, h)
	}},
}

// onClaimedBodies changes the claims that a store returns.
func onClaimedBodies(change func(b *broken, p sender.ClaimParams, c *sender.Claims)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			change(b, batch.Claim, &c)
			return c, err
		}
	}
}

// onPayloads changes the result of Payloads.
func onPayloads(change func(events []int64, all map[int64]sender.Payload)) func(*broken, *harness) {
	return func(b *broken, _ *harness) {
		b.payloads = func(ctx context.Context, events []int64) (map[int64]sender.Payload, error) {
			all, err := b.Store.Payloads(ctx, events)
			if err == nil {
				change(events, all)
			}
			return all, err
		}
	}
}
