package main

import (
	"context"
	"errors"
)

// many measures the cost of a step if very many subscriptions all have work.
func many[Tx any](k kind[Tx]) scenario {
	const few, most = "10 subscriptions", "10,000 subscriptions"
	return scenario{
		name:     "many-" + k.name,
		question: "Deliveries claimed and recorded on " + k.text + " if all of 10,000 subscriptions have some, beside 10 subscriptions that have as many (with -quick 2,000).",
		columns:  []string{steps, stepTime, drivers, databaseCPU, stepsPerCPU},
		ratios: []ratio{
			{figure: steps, of: most, over: []string{few}, least: 0.7, aim: 1},
			{figure: stepsPerCPU, of: most, over: []string{few}},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			ten, err := openDriven(ctx, b, k, 10)
			if err != nil {
				return nil, nil, err
			}
			thousands, err := openDriven(ctx, b, k, b.of(10_000, 2000))
			if err != nil {
				return nil, ten.close, err
			}
			closeBoth := func() error { return errors.Join(ten.close(), thousands.close()) }
			// Ten deliveries of each remain at the end, so that all have
			// work all the time, and a claim finds as many of each as it
			// gives in a turn.
			for _, d := range []*driven[Tx]{ten, thousands} {
				if err := d.backlog(ctx, b.of(100_000, 20_000)); err != nil {
					return nil, closeBoth, err
				}
				if err := d.settle(ctx); err != nil {
					return nil, closeBoth, err
				}
			}
			n := b.of(30_000, 10_000)
			return []measure{
				func(ctx context.Context) ([]sample, error) { return ten.measured(ctx, few, n) },
				func(ctx context.Context) ([]sample, error) { return thousands.measured(ctx, most, n) },
			}, closeBoth, nil
		},
	}
}
