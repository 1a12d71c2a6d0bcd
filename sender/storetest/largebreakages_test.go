//go:build !race

package storetest_test

import (
	"context"
	"slices"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// largeBreakages break how large events are expanded.
var largeBreakages = []breakage{
	{"a large event is in everyone's way", onExpand(func(p *dispatch.ExpandParams) { p.Events = 1 }), checks{"large/beside others", "large/side by side"}},
	{"large events get all there is room for", onExpand(func(p *dispatch.ExpandParams) { p.Part = p.Deliveries }), checks{"large/parts"}},
	{"no two events are about the same object", onDrafts(func(d *sender.Draft) { d.Object.ID = d.ID }), checks{"large/beside others", "large/many that wait"}},
	{"what comes late is overlooked", func(s store) store { return &lateOverlooked{store: s, last: map[int64]int64{}} }, checks{"large/late"}},
	{"a late delivery is not skipped", onResume(func(r *sender.Resume) { *r = sender.Resume{} }), checks{"large/late and skipped"}},
	{"what is closing is deleted before a large event is whole", func(s store) store { return closeDeletes{s} }, checks{"large/late and closing"}},
}

type lateOverlooked struct {
	store
	last map[int64]int64 // event, by subscription
}

func (b *lateOverlooked) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	c.Claimed = slices.DeleteFunc(c.Claimed, func(x dispatch.Claimed) bool {
		late := x.Number == 1 && x.Key.Event < b.last[x.Key.Subscription]
		b.last[x.Key.Subscription] = max(b.last[x.Key.Subscription], x.Key.Event)
		return late
	})
	return x, c, err
}
