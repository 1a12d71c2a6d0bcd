package main

import (
	"context"
	"errors"
)

const (
	applied       = "applied/s"
	appliedPerCPU = "applied per CPU second" // CPU time of the receiver and the database
)

// receiving measures the cost of verifying, of the marker and of the version for a
// receiver.
func receiving[Tx any](k kind[Tx]) scenario {
	const bare, whole, grouped = "the effect alone", "Surehook's receiver", "Surehook's receiver, with a Group"
	return scenario{
		name: "receive-" + k.name,
		question: "Events applied on " + k.text + " by a receiver that verifies, marks, compares the version, stores the effect and commits, " +
			"beside the same handler and transaction with the effect alone; 64 connections. A Group lets concurrent requests share transactions.",
		columns: []string{applied, receiverCPU, databaseCPU, senderCPU, appliedPerCPU},
		ratios: []ratio{
			{figure: applied, of: whole, over: []string{bare}, least: 0.8, aim: 0.95},
			{figure: appliedPerCPU, of: whole, over: []string{bare}},
			{figure: applied, of: grouped, over: []string{bare}},
			{figure: appliedPerCPU, of: grouped, over: []string{bare}},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			p, err := k.fresh(ctx, b)
			if err != nil {
				return nil, nil, err
			}
			if err := p.applicationTables(ctx); err != nil {
				return nil, p.close, err
			}
			if err := migrateDedup(ctx, p.location); err != nil {
				return nil, p.close, err
			}
			first := 0 // no event is posted twice
			with := func(variant string, as applyAs) measure {
				return func(ctx context.Context) (_ []sample, err error) {
					r, err := b.startReceiver(ctx, receiverParams{Apply: &p.location, As: as})
					if err != nil {
						return nil, err
					}
					defer func() { err = errors.Join(err, r.Stop()) }()
					n := b.of(20_000, 5000)
					params := posterParams{URL: r.url + "/hook", First: first, N: n, Connections: 64}
					first += n
					s, err := b.start(ctx, "poster", params, &n)
					if err != nil {
						return nil, err
					}
					samples, err := drained(s, r, k.meter(ctx, b), variant, n)
					if err != nil {
						return nil, err
					}
					f := samples[0].Figures
					f[applied], f[appliedPerCPU] = f[deliveries], 1e6/(f[receiverCPU]+f[databaseCPU])
					return samples, nil
				}
			}
			return []measure{with(bare, applyBare), with(whole, applyWhole), with(grouped, applyGrouped)}, p.close, nil
		},
	}
}
