package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// blocked measures the cost of a step beside deliveries that are due and must not be
// claimed.
func blocked[Tx any](k kind[Tx]) scenario {
	const none, all = "nothing blocked", "1,000,000 blocked"
	return scenario{
		name: "blocked-" + k.name,
		question: "Deliveries claimed and recorded on " + k.text + " beside a million that are due and blocked: of 500 subscriptions that are paused, " +
			"468 that have their most in flight, and 32 that have no room in the dispatcher (with -quick a tenth of the deliveries).",
		columns: []string{steps, stepTime, drivers, databaseCPU, stepsPerCPU},
		ratios: []ratio{
			{figure: steps, of: all, over: []string{none}, least: 0.9, aim: 1},
			{figure: stepsPerCPU, of: all, over: []string{none}},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			alone, err := openDriven(ctx, b, k, 10)
			if err != nil {
				return nil, nil, err
			}
			beside, err := openDriven(ctx, b, k, 10)
			if err != nil {
				return nil, alone.close, err
			}
			closeBoth := func() error { return errors.Join(alone.close(), beside.close()) }
			// The other one is settled at the end of block: this one too, so that both
			// have statistics.
			if err := alone.settle(ctx); err != nil {
				return nil, closeBoth, err
			}
			if err := beside.block(ctx, b.of(1000, 100)); err != nil {
				return nil, closeBoth, err
			}
			n := b.of(30_000, 10_000)
			return []measure{
				func(ctx context.Context) ([]sample, error) { return alone.measured(ctx, none, n) },
				func(ctx context.Context) ([]sample, error) { return beside.measured(ctx, all, n) },
			}, closeBoth, nil
		},
	}
}

// driven is a database with subscriptions, for a driver.
type driven[Tx any] struct {
	*place[Tx]
	driver
	to    registering
	meter meter
}

// openDriven makes one with n subscriptions.
func openDriven[Tx any](ctx context.Context, b *bench, k kind[Tx], n int) (*driven[Tx], error) {
	return openDrivenAs(ctx, b, k, n, sender.Settings{})
}

// openDrivenAs makes one with n subscriptions that have these settings.
func openDrivenAs[Tx any](ctx context.Context, b *bench, k kind[Tx], n int, set sender.Settings) (*driven[Tx], error) {
	p, err := k.fresh(ctx, b)
	if err != nil {
		return nil, err
	}
	p.asDispatcher()
	d := &driven[Tx]{place: p, driver: driver{store: p.store}, to: registering{prefix: "sub", n: n, url: nowhere, types: []string{"thing.*"}, settings: set}, meter: k.meter(ctx, b)}
	if _, err := p.register(ctx, d.to); err != nil {
		return nil, errors.Join(err, p.close())
	}
	// Each gets one delivery, so that all have answered fast before anything is measured.
	if err := d.backlog(ctx, n); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if _, err := d.drain(ctx, n); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return d, nil
}

// backlog makes n due deliveries, for the subscriptions in turn.
func (d *driven[Tx]) backlog(ctx context.Context, n int) error {
	if err := d.publish(ctx, n, 1<<10, d.to.inTurn); err != nil {
		return err
	}
	return d.expand(ctx)
}

// measured makes a backlog of n, and measures how it is drained.
func (d *driven[Tx]) measured(ctx context.Context, variant string, n int) ([]sample, error) {
	if err := d.backlog(ctx, n); err != nil {
		return nil, err
	}
	figures, err := d.driver.measured(ctx, n, d.meter)
	return one(variant, figures), err
}

// block adds a thousand subscriptions with a number of due deliveries each, which must
// not be claimed.
func (d *driven[Tx]) block(ctx context.Context, each int) error {
	paused := registering{prefix: "paused", n: 500, url: nowhere, types: []string{"blocked.*"}}
	full := registering{prefix: "full", n: 468, url: nowhere, types: []string{"blocked.*"}, settings: sender.Settings{MaxInFlight: 1}}
	roomless := registering{prefix: "roomless", n: 32, url: nowhere, types: []string{"blocked.*"}}
	held, err := d.register(ctx, paused)
	if err != nil {
		return err
	}
	for _, r := range []registering{full, roomless} {
		if _, err := d.register(ctx, r); err != nil {
			return err
		}
	}
	pub, err := sender.NewPublisher(d.place.store, nil)
	if err != nil {
		return err
	}
	events := make([]sender.Event, each)
	for i := range events {
		events[i] = event(i, "", 0)
		events[i].Type = "blocked.changed"
	}
	if _, err := pub.PublishMany(ctx, events); err != nil {
		return err
	}
	if err := d.expand(ctx); err != nil {
		return err
	}
	if err := d.pause(ctx, held); err != nil {
		return err
	}
	if err := d.fillUp(ctx, full, roomless); err != nil {
		return err
	}
	return d.settle(ctx)
}

// fillUp claims one delivery of each subscription, for longer than the measurements last.
// Some of the subscriptions may have no more in flight, and the claims give the others no
// room.
func (d *driven[Tx]) fillUp(ctx context.Context, full, roomless registering) error {
	// A dispatcher has 32 slots for new subscriptions by default.
	d.room = map[int64]int{}
	left := full.n + roomless.n
	for idle := 0; left > 0; {
		b := dispatch.Batch{Decide: dispatch.Policy{}.Decide, Claim: dispatch.ClaimParams{Lease: time.Hour, Token: rand.Int64(), SubscriptionRoom: d.room}}
		b.Claim.Lanes[sender.LaneNew] = dispatch.LaneParams{Slots: slots, PerSubscriber: 1, PerSubscription: 1}
		_, claims, err := d.place.store.Step(ctx, dispatch.ExpandParams{}, b)
		if err != nil {
			return err
		}
		// A claim looks at a bounded number of subscriptions, and paused ones
		// may come first.
		if len(claims.Claimed) > 0 {
			idle = 0
		} else if idle++; idle > 100 {
			return fmt.Errorf("%d subscriptions are left of which nothing can be claimed", left)
		}
		for _, c := range claims.Claimed {
			if strings.HasPrefix(c.Target.Subscriber, roomless.prefix) {
				d.room[c.Target.SubscriptionNo] = 0
			}
		}
		left -= len(claims.Claimed)
	}
	return nil
}
