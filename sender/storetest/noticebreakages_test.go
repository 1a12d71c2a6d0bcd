//go:build !race

package storetest_test

import (
	"context"
	"time"
)

// noticeBreakages break how notices are given to a notifier.
var noticeBreakages = []breakage{
	{"notices put off are accepted", onSettleNotice(func(time.Duration) time.Duration { return 0 }), checks{"notifier/claimed under a lease"}},
	{"notices accepted are put off", onSettleNotice(func(again time.Duration) time.Duration { return max(again, time.Second) }), checks{"notifier/accepted or acknowledged"}},
	{"notices put off come at once", onSettleNotice(func(again time.Duration) time.Duration { return min(again, 1) }), checks{"notifier/claimed under a lease"}},
}

// otherSettling puts a notice off for another while.
type otherSettling struct {
	store
	change func(again time.Duration) time.Duration
}

func onSettleNotice(change func(again time.Duration) time.Duration) func(store) store {
	return func(s store) store { return otherSettling{s, change} }
}

func (b otherSettling) SettleNotice(ctx context.Context, id string, again time.Duration) error {
	return b.store.SettleNotice(ctx, id, b.change(again))
}
