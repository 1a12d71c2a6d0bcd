//go:build !race

package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// redeliverBreakages break how a delivery is sent again.
var redeliverBreakages = []breakage{
	{"single treated as ordinary", onLive(func(l *dispatch.Live) { l.Single = false }), checks{"redeliver/delivered, again", "redeliver/delivered, whose single attempt fails"}},
	{"single until it is lost", singleUntilLost, checks{"redeliver/delivered, whose single attempt is lost"}},
	{"a lost single attempt is not made up for", onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		if l.Single && r.Class == sender.ClassInterrupted {
			return dispatch.Decision{Status: sender.StatusDelivered, Health: h}
		}
		return decide(l, h, r, now)
	}), checks{"redeliver/delivered, whose single attempt is lost"}},
	{"schedule not started anew", onLive(func(l *dispatch.Live) { l.Tries = l.Number }), checks{"redeliver/awaiting retry", "redeliver/in flight", "redeliver/dead-lettered", "life/resume, all", "random/seed 1"}},
	{"cancelled is redelivered", func(s store) store { return redelivers{s, sender.ErrCancelled} }, checks{"redeliver/cancelled", "random/seed 1"}},
	{"second attempt while one is in flight", func(s store) store { return &redeliveredInFlight{store: s} }, checks{"redeliver/in flight"}},
}

func singleUntilLost(s store) store {
	lost := map[dispatch.DeliveryKey]bool{}
	return onDecide(func(decide decideFunc, l dispatch.Live, h sender.Health, r dispatch.Result, now time.Time) dispatch.Decision {
		lost[l.Key] = lost[l.Key] || r.Class == sender.ClassInterrupted
		l.Single = l.Single && (!lost[l.Key] || r.Class == sender.ClassInterrupted)
		return decide(l, h, r, now)
	})(s)
}

// redelivers does not tell of a refusal.
type redelivers struct {
	store
	refusal error
}

func (b redelivers) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	if err := b.store.Redeliver(ctx, id, notBefore); !errors.Is(err, b.refusal) {
		return err
	}
	return nil
}

type redeliveredInFlight struct {
	store
	claimed []dispatch.Claimed
}

func (b *redeliveredInFlight) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, c, err := b.store.Step(ctx, p, batch)
	b.claimed = append(b.claimed, c.Claimed...)
	return x, c, err
}

func (b *redeliveredInFlight) Redeliver(ctx context.Context, id string, notBefore time.Time) error {
	d, err := b.store.Delivery(ctx, id, history.AttemptQuery{})
	if err != nil {
		return err
	}
	var back []dispatch.Release
	for _, c := range b.claimed {
		if c.Event.ID == d.Event.ID && c.Target.Subscription == d.Subscription {
			back = append(back, dispatch.Release{Key: c.Key, Token: c.Token})
		}
	}
	return errors.Join(b.store.Release(ctx, back), b.store.Redeliver(ctx, id, notBefore))
}
