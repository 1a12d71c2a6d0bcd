//go:build !race

package storetest_test

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/surehook/surehook/sender/dispatch"
)

// bodyBreakages break how a store reads and bounds the bodies of claimed deliveries.
var bodyBreakages = []breakage{
	{"bodies without a bound", onClaim(func(p *dispatch.ClaimParams) { p.Bytes = 0 }), checks{"bodies/within a bound", "bodies/one that is larger"}},
	{"bodies counted for each delivery", onClaim(func(p *dispatch.ClaimParams) { p.Bytes /= 3 }), checks{"bodies/counted once"}},
	{"a body larger than the bound stays", func(s store) store { return largeDropped{s} }, checks{"bodies/one that is larger"}},
	{"a bound passes the same one over", func(s store) store { return &lastAgain{store: s} }, checks{"bodies/turns"}},
	{"a body for each delivery", onClaimed(func(c *dispatch.Claimed) { c.Body = bytes.Clone(c.Body) }), checks{"bodies/shared"}},
	{"Payloads invents what is not there", onPayloads(func(events []int64, all map[int64]dispatch.Payload) {
		for _, no := range events {
			if _, there := all[no]; !there {
				all[no] = dispatch.Payload{}
			}
		}
	}), checks{"bodies/Payloads"}},
	{"Payloads leaves redacted events out", onPayloads(func(_ []int64, all map[int64]dispatch.Payload) {
		maps.DeleteFunc(all, func(_ int64, p dispatch.Payload) bool { return len(p.Body) == 0 })
	}), checks{"bodies/Payloads, redacted"}},
	{"Payloads keeps redacted bodies", bodiesKept, checks{"bodies/Payloads, redacted"}},
}

type largeDropped struct{ store }

func (b largeDropped) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	c.Claimed = slices.DeleteFunc(c.Claimed, func(c dispatch.Claimed) bool {
		return batch.Claim.Bytes > 0 && int64(len(c.Body)) > batch.Claim.Bytes
	})
	return x, c, err
}

type lastAgain struct {
	store
	last int64
}

func (b *lastAgain) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	if batch.Claim.Bytes > 0 && b.last != 0 { // the one that was served last is served now
		batch.Claim.SubscriptionRoom = map[int64]int{b.last: 10}
		for i := range batch.Claim.Lanes {
			batch.Claim.Lanes[i].PerSubscription = 0
		}
	}
	x, c, err := b.store.Step(ctx, p, batch)
	for _, cl := range c.Claimed {
		b.last = cl.Key.Subscription
	}
	return x, c, err
}

func bodiesKept(s store) store {
	kept := map[int64][]byte{}
	s = onClaimed(func(c *dispatch.Claimed) { kept[c.Key.Event] = c.Body })(s)
	return onPayloads(func(_ []int64, all map[int64]dispatch.Payload) {
		for no, p := range all {
			p.Body = kept[no]
			all[no] = p
		}
	})(s)
}

// otherPayloads changes the result of Payloads.
type otherPayloads struct {
	store
	change func(events []int64, all map[int64]dispatch.Payload)
}

func onPayloads(change func(events []int64, all map[int64]dispatch.Payload)) func(store) store {
	return func(s store) store { return otherPayloads{s, change} }
}

func (b otherPayloads) Payloads(ctx context.Context, events []int64) (map[int64]dispatch.Payload, error) {
	all, err := b.store.Payloads(ctx, events)
	if err == nil {
		b.change(events, all)
	}
	return all, err
}
