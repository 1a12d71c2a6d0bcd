package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

var orderBreakages = map[string]breakage{
	"a claim begins with its last event": {[]string{"order/by event", "order/dispatched"}, func(b *broken, _ *harness) {
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			slices.SortStableFunc(c.Claimed, func(x, y sender.Claimed) int { return int(y.Key.Event - x.Key.Event) })
			return c, err
		}
	}},
	"what is released goes to the tail": {[]string{"order/released"}, func(b *broken, _ *harness) {
		b.release = func(ctx context.Context, rs []sender.Release) error {
			c, err := b.Store.RecordAndClaim(ctx, sender.Batch{})
			if err != nil {
				return err
			}
			for i := range rs {
				rs[i].Due = c.Now.Add(time.Duration(i) * time.Microsecond)
			}
			return b.Store.Release(ctx, rs)
		}
	}},
	"a failure holds others back": {[]string{"order/dispatched"}, func(b *broken, _ *harness) {
		failing := map[sender.DeliveryKey]sender.Object{}
		objects := map[sender.DeliveryKey]sender.Object{}
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			for _, r := range batch.Results {
				if r.Class != sender.ClassNone {
					failing[r.Key] = objects[r.Key]
				}
			}
			c, err := b.Store.RecordAndClaim(ctx, batch)
			c.Claimed = slices.DeleteFunc(c.Claimed, func(x sender.Claimed) bool {
				objects[x.Key] = x.Event.Object
				for key, object := range failing {
					if key.Subscription == x.Key.Subscription && object == x.Event.Object {
						return true
					}
				}
				return false
			})
			return c, err
		}
	}},
}
