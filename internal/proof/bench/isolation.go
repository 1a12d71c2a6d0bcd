package main

import (
	"context"
	"errors"
	"time"
)

// isolation measures how much hanging endpoints slow down endpoints that answer.
func isolation[Tx any](k kind[Tx]) scenario {
	const without, beside = "alone", "beside 1,000 that hang"
	return scenario{
		name:     "isolation-" + k.name,
		question: "From the commit on " + k.text + " to the POST's arrival for ten healthy subscriptions, at 200 events/s, beside 1,000 subscriptions with work whose endpoints hang.",
		columns:  []string{arriveP50, arriveP99, arriveMax, databaseCPU},
		ratios: []ratio{
			{figure: arriveP99, of: beside, over: []string{without}, least: 1.2, aim: 1, smallerBetter: true},
			{figure: arriveP50, of: beside, over: []string{without}, smallerBetter: true},
		},
		open: func(_ context.Context, b *bench) ([]measure, func() error, error) {
			during := time.Duration(b.of(15, 3)) * time.Second
			return []measure{
				func(ctx context.Context) ([]sample, error) { return isolated(ctx, b, k, without, 0, during) },
				func(ctx context.Context) ([]sample, error) { return isolated(ctx, b, k, beside, 1000, during) },
			}, nil, nil
		},
	}
}

// isolated measures a line of its own, beside a number of subscriptions that hang.
func isolated[Tx any](ctx context.Context, b *bench, k kind[Tx], variant string, hanging int, during time.Duration) (_ []sample, err error) {
	l, err := openLine(ctx, b, k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.dispatch(ctx, b); err != nil {
		return nil, err
	}
	// The healthy ones have answered fast before the others come.
	if err := l.warmUp(ctx); err != nil {
		return nil, err
	}
	if hanging > 0 {
		bad := registering{prefix: "hanging", n: hanging, url: func(int) string { return l.receiver.url + "/hang" }}
		if _, err := l.register(ctx, bad); err != nil {
			return nil, err
		}
		if err := l.publish(ctx, 10*hanging, 1<<10, bad.inTurn); err != nil {
			return nil, err
		}
		err := until(ctx, "the endpoints that hang are not called", func() (bool, error) {
			n := 0
			err := l.receiver.Ask(askHanging, &n)
			return n >= 30, err // most of the slots for new ones, by default
		})
		if err != nil {
			return nil, err
		}
	}
	// Otherwise the database's work after the publishing of the backlog is measured, too.
	if err := l.settle(ctx); err != nil {
		return nil, err
	}
	return l.measured(ctx, variant, during)
}
