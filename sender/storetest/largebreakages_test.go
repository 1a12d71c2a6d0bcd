package storetest_test

import (
	"context"
	"slices"

	"github.com/surehook/surehook/sender"
)

var largeBreakages = map[string]breakage{
	"a large event is in everyone's way": {[]string{"large/beside others", "large/side by side"}, func(b *broken, _ *harness) {
		b.expand = func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
			p.Events = 1
			return b.Store.Expand(ctx, p)
		}
	}},
	"large events get all there is room for": {[]string{"large/parts"}, func(b *broken, _ *harness) {
		b.expand = func(ctx context.Context, p sender.ExpandParams) (sender.Expanded, error) {
			p.Part = p.Deliveries
			return b.Store.Expand(ctx, p)
		}
	}},
	"no two events are about the same object": {[]string{"large/beside others", "large/many that wait"}, onDrafts(func(d *sender.Draft) {
		d.Object.ID = d.ID
	})},
	"what comes late is overlooked": {[]string{"large/late"}, func(b *broken, _ *harness) {
		last := map[int64]int64{} // event, by subscription
		b.batch = func(ctx context.Context, batch sender.Batch) (sender.Claims, error) {
			c, err := b.Store.RecordAndClaim(ctx, batch)
			c.Claimed = slices.DeleteFunc(c.Claimed, func(x sender.Claimed) bool {
				late := x.Number == 1 && x.Key.Event < last[x.Key.Subscription]
				last[x.Key.Subscription] = max(last[x.Key.Subscription], x.Key.Event)
				return late
			})
			return c, err
		}
	}},
	"a late delivery is not left behind": {[]string{"large/late and left behind"}, func(b *broken, _ *harness) {
		b.resumeTx = func(ctx context.Context, tx tx, id string, _ sender.Resume) error {
			return b.Store.ResumeSubscriptionTx(ctx, tx, id, sender.Resume{})
		}
	}},
	"what is closing is deleted before a large event is whole": {[]string{"large/late and closing"}, func(b *broken, _ *harness) {
		b.closeTx = func(ctx context.Context, tx tx, id string) error { return b.Store.DeleteSubscriptionTx(ctx, tx, id) }
	}},
}
