//go:build !race

package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// orderBreakages break the order of claims.
var orderBreakages = []breakage{
	{"a claim begins with its last event", onClaims(func(c *dispatch.Claims) {
		slices.SortStableFunc(c.Claimed, func(x, y dispatch.Claimed) int { return int(y.Key.Event - x.Key.Event) })
	}), checks{"order/by event", "order/dispatched"}},
	{"what is released goes to the tail", func(s store) store { return releasedLast{s} }, checks{"order/released", "order/released among resumed"}},
	{"a failure holds others back", func(s store) store {
		return &failureBlocks{store: s, failing: map[dispatch.DeliveryKey]sender.Object{}, objects: map[dispatch.DeliveryKey]sender.Object{}}
	}, checks{"order/dispatched"}},
}

type releasedLast struct{ store }

func (b releasedLast) Release(ctx context.Context, rs []dispatch.Release) error {
	now, err := timeOf(ctx, b.store)
	if err != nil {
		return err
	}
	for i := range rs {
		rs[i].Due = now.Add(time.Duration(i) * time.Microsecond)
	}
	return b.store.Release(ctx, rs)
}

type failureBlocks struct {
	store
	failing map[dispatch.DeliveryKey]sender.Object
	objects map[dispatch.DeliveryKey]sender.Object
}

func (b *failureBlocks) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	for _, r := range batch.Results {
		if r.Class != sender.ClassNone {
			b.failing[r.Key] = b.objects[r.Key]
		}
	}
	x, c, err := b.store.Step(ctx, p, batch)
	c.Claimed = slices.DeleteFunc(c.Claimed, func(x dispatch.Claimed) bool {
		b.objects[x.Key] = x.Event.Object
		for key, object := range b.failing {
			if key.Subscription == x.Key.Subscription && object == x.Event.Object {
				return true
			}
		}
		return false
	})
	return x, c, err
}
