package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// orderBreakages break the order of claims.
var orderBreakages = []breakage{
	{"a claim begins with its last event", onClaims(func(c *sender.Claims) {
		slices.SortStableFunc(c.Claimed, func(x, y sender.Claimed) int { return int(y.Key.Event - x.Key.Event) })
	}), checks{"order/by event", "order/dispatched"}},
	{"what is released goes to the tail", func(s store) store { return releasedLast{s} }, checks{"order/released"}},
	{"a failure holds others back", func(s store) store {
		return &failureBlocks{store: s, failing: map[sender.DeliveryKey]sender.Object{}, objects: map[sender.DeliveryKey]sender.Object{}}
	}, checks{"order/dispatched"}},
}

type releasedLast struct{ store }

func (b releasedLast) Release(ctx context.Context, rs []sender.Release) error {
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
	failing map[sender.DeliveryKey]sender.Object
	objects map[sender.DeliveryKey]sender.Object
}

func (b *failureBlocks) Step(ctx context.Context, p sender.ExpandParams, batch sender.Batch) (sender.Expanded, sender.Claims, error) {
	for _, r := range batch.Results {
		if r.Class != sender.ClassNone {
			b.failing[r.Key] = b.objects[r.Key]
		}
	}
	x, c, err := b.store.Step(ctx, p, batch)
	c.Claimed = slices.DeleteFunc(c.Claimed, func(x sender.Claimed) bool {
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
