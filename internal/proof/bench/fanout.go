package main

import (
	"context"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/sender"
)

const (
	forNone        = "event for none"
	forAll         = "event for 10,000"
	expanding      = "expanding it"
	deliveriesMade = "deliveries made/s"
)

// fanout measures the cost for the producer of an event with very many receivers, and
// the time to make its deliveries.
func fanout[Tx any](k kind[Tx]) scenario {
	return scenario{
		name: "fanout-" + k.name,
		question: "The producer's transaction with an event that 10,000 subscriptions get on " + k.text +
			", beside one that none gets; and how long it takes to make its deliveries (with -quick 2,000).",
		columns: []string{commitP50, commitP99, deliveriesMade, drivers, databaseCPU},
		ratios: []ratio{
			{figure: commitP50, of: forAll, over: []string{forNone}, least: 1.05, aim: 1, smallerBetter: true},
			{figure: commitP50, of: expanding},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			p, err := k.fresh(ctx, b)
			if err != nil {
				return nil, nil, err
			}
			w := &wide[Tx]{place: p, n: b.of(10_000, 2000), meter: k.meter(ctx, b)}
			if _, err := p.register(ctx, registering{prefix: "sub", n: w.n, url: nowhere, types: []string{"thing.*"}}); err != nil {
				return nil, p.close, err
			}
			if err := p.settle(ctx); err != nil {
				return nil, p.close, err
			}
			if w.pub, err = sender.NewPublisher(p.store, nil); err != nil {
				return nil, p.close, err
			}
			times := b.of(20, 3)
			return []measure{func(ctx context.Context) ([]sample, error) { return w.measured(ctx, times) }}, p.close, nil
		},
	}
}

// wide is a database with n subscriptions to one type.
type wide[Tx any] struct {
	*place[Tx]
	pub   *sender.Publisher[Tx]
	n     int
	meter meter
}

// measured publishes events for all subscriptions, and events for none between them, so
// that both find the database and the machine in the same state. It waits for
// the many deliveries of each event for all.
func (w *wide[Tx]) measured(ctx context.Context, times int) ([]sample, error) {
	var none, all, made []float64
	var cpu float64
	figures := map[string]float64{}
	expand := func() error {
		before, began := child.CPU(), time.Now()
		err := w.expand(ctx)
		made, cpu = append(made, time.Since(began).Seconds()*1e3), cpu+child.CPU()-before
		return err
	}
	perDelivery := 1 / float64(times*w.n)
	if w.meter != nil {
		expand = metered(expand, w.meter, perDelivery, figures, databaseCPU)
	}
	for i := range times {
		const among = 20
		for j := range among {
			e, took := event(among*i+j, "", 1<<10), &none
			if j == among/2 {
				took = &all
			} else {
				e.Type = "nothing.changed"
			}
			ms, err := w.commit(ctx, e)
			if err != nil {
				return nil, err
			}
			*took = append(*took, ms)
		}
		if err := expand(); err != nil {
			return nil, err
		}
	}
	figures[commitP50], figures[commitP99] = median(made), quantile(made, 0.99)
	figures[deliveriesMade], figures[drivers] = float64(w.n)/median(made)*1e3, cpu*perDelivery
	return []sample{
		{forNone, map[string]float64{commitP50: median(none), commitP99: quantile(none, 0.99)}},
		{forAll, map[string]float64{commitP50: median(all), commitP99: quantile(all, 0.99)}},
		{expanding, figures},
	}, nil
}

// commit publishes an event in a transaction of its own, and returns how many ms that
// took.
func (w *wide[Tx]) commit(ctx context.Context, e sender.Event) (ms float64, err error) {
	began := time.Now()
	err = w.inTx(ctx, func(tx Tx) error {
		_, err := w.pub.PublishTx(ctx, tx, e)
		return err
	})
	return time.Since(began).Seconds() * 1e3, err
}
