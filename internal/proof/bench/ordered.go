package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// ordered measures the price of a subscription's order.
func ordered[Tx any](k kind[Tx]) scenario {
	const relaxed, object = "relaxed", "object"
	const subscriptions, objects = 10, 1000 // of each
	return scenario{
		name:     "ordered-" + k.name,
		question: "Deliveries claimed and recorded on " + k.text + " if 10 subscriptions have the order of objects, with 1,000 objects each, beside as many in the relaxed order.",
		columns:  []string{steps, stepTime, drivers, databaseCPU, stepsPerCPU},
		ratios: []ratio{
			{figure: steps, of: object, over: []string{relaxed}, least: 0.8, aim: 1},
			{figure: stepsPerCPU, of: object, over: []string{relaxed}},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			var all []*driven[Tx]
			closeAll := func() (err error) {
				for _, d := range all {
					err = errors.Join(err, d.close())
				}
				return err
			}
			var turns []turn
			for _, v := range []struct {
				name  string
				order sender.Order
			}{{relaxed, sender.OrderRelaxed}, {object, sender.OrderObject}} {
				d, err := openDrivenAs(ctx, b, k, subscriptions, sender.Settings{Order: v.order})
				if err != nil {
					return nil, closeAll, err
				}
				all = append(all, d)
				turns = append(turns, turn{v.name, &d.driver, d.meter})
			}
			n := b.of(60_000, 10_000)
			return []measure{func(ctx context.Context) ([]sample, error) {
				for _, d := range all {
					if err := d.versions(ctx, n, subscriptions*objects); err != nil {
						return nil, err
					}
				}
				return measuredInTurns(ctx, n, turns)
			}}, closeAll, nil
		},
	}
}

// versions makes n due deliveries of events about a number of objects, for the
// subscriptions in turn.
func (d *driven[Tx]) versions(ctx context.Context, n, objects int) error {
	pub, err := sender.NewPublisher(d.place.store, nil)
	if err != nil {
		return err
	}
	for done := 0; done < n; done += batch {
		events := make([]sender.Event, min(batch, n-done))
		for i := range events {
			at := done + i
			events[i] = event(at, d.to.inTurn(at), 1<<10)
			events[i].Object.ID = fmt.Sprintf("thing_%d", at%objects)
		}
		if _, err := pub.PublishMany(ctx, events); err != nil {
			return err
		}
	}
	return d.expand(ctx)
}
