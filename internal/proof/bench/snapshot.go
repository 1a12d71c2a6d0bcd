package main

import (
	"context"
	"errors"
)

// snapshot measures the cost of a step after many completions while an open session
// keeps the database from tidying up.
func snapshot[Tx any](k kind[Tx]) scenario {
	const start, held = "at the start", "after 300,000 beside an old snapshot"
	return scenario{
		name: "snapshot-" + k.name,
		question: "Deliveries claimed and recorded on " + k.text + " while another session holds a snapshot that is 300,000 completions old " +
			"(with -quick 30,000), beside the start.",
		columns: []string{steps, stepTime, drivers, databaseCPU, stepsPerCPU},
		ratios: []ratio{
			{figure: steps, of: held, over: []string{start}, least: 0.8, aim: 1},
			{figure: stepsPerCPU, of: held, over: []string{start}},
		},
		open: alone(func(ctx context.Context, b *bench) (_ []sample, err error) {
			d, err := openDriven(ctx, b, k, 10)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, d.close()) }()
			if err := d.settle(ctx); err != nil {
				return nil, err
			}
			n := b.of(30_000, 10_000)
			samples, err := d.measured(ctx, start, n)
			if err != nil {
				return nil, err
			}
			release, err := d.snapshot(ctx)
			if err != nil {
				return nil, err
			}
			defer release()
			for left := b.of(300_000, 30_000); left > 0; left -= n {
				if err := d.backlog(ctx, n); err != nil {
					return nil, err
				}
				if _, err := d.drain(ctx, n); err != nil {
					return nil, err
				}
			}
			after, err := d.measured(ctx, held, n)
			return append(samples, after...), err
		}),
	}
}
