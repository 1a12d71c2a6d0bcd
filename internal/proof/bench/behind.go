package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	nextFirst = "first ms" // the event that is committed just behind
	wholeTook = "event for all s"
	askCalls  = "calls" // how many requests have come
)

// behind measures how late events arrive that are published while an event with very
// many receivers is being delivered.
func behind[Tx any](k kind[Tx]) scenario {
	const alone, after = "other events alone", "behind an event for 100,000"
	return scenario{
		name: "behind-" + k.name,
		question: "From the commit on " + k.text + " to the POST's arrival for ten subscriptions, at 20 events/s, while an event for 100,000 subscriptions is on its way, " +
			"each with a subscriber of its own; and how long that takes as a whole (with -quick 10,000).",
		columns: []string{nextFirst, arriveP50, arriveP99, arriveMax, wholeTook},
		ratios: []ratio{
			{figure: arriveP99, of: after, least: 100, aim: 50, smallerBetter: true},
			{figure: nextFirst, of: after, least: 100, aim: 50, smallerBetter: true},
			{figure: wholeTook, of: after},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			l, err := openLine(ctx, b, k)
			if err != nil {
				return nil, nil, err
			}
			w := &crowd[Tx]{line: l, n: b.of(100_000, 10_000)}
			if err := w.open(ctx, b); err != nil {
				return nil, l.close, err
			}
			return []measure{
				func(ctx context.Context) ([]sample, error) { return w.measured(ctx, alone, 0) },
				func(ctx context.Context) ([]sample, error) { return w.measured(ctx, after, w.n) },
			}, l.close, nil
		},
	}
}

// crowd is a line with n further subscriptions to one type.
type crowd[Tx any] struct {
	*line[Tx]
	n   int
	pub *sender.Publisher[Tx]
}

// forTheCrowd is the crowd's type.
const forTheCrowd = "crowd.changed"

// open registers the crowd, and waits until each has answered once.
func (w *crowd[Tx]) open(ctx context.Context, b *bench) (err error) {
	if w.pub, err = sender.NewPublisher(w.store, nil); err != nil {
		return err
	}
	if _, err := w.register(ctx, registering{prefix: "crowd", n: w.n, url: hooks(w.receiver.url), types: []string{forTheCrowd}}); err != nil {
		return err
	}
	if err := w.settle(ctx); err != nil {
		return err
	}
	if err := w.dispatch(ctx, b); err != nil {
		return err
	}
	if err := w.warmUp(ctx); err != nil {
		return err
	}
	began := time.Now()
	if _, err := w.forAll(ctx); err != nil {
		return err
	}
	if err := w.called(ctx, w.n); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "behind: %d subscriptions have answered for the first time after %.1f s\n", w.n, time.Since(began).Seconds())
	return w.settle(ctx)
}

// forAll publishes an event for the crowd.
func (w *crowd[Tx]) forAll(ctx context.Context) (ref sender.Ref, err error) {
	e := event(0, "", 1<<10)
	e.Type, e.Object.Type = forTheCrowd, "crowd"
	err = w.inTx(ctx, func(tx Tx) (err error) {
		ref, err = w.pub.PublishTx(ctx, tx, e)
		return err
	})
	return ref, err
}

// calls returns how many requests have come since its last call.
func (w *crowd[Tx]) calls() (n int, err error) { return n, w.receiver.Ask(askCalls, &n) }

// called waits until n requests have come.
func (w *crowd[Tx]) called(ctx context.Context, n int) error {
	for began := time.Now(); n > 0; time.Sleep(50 * time.Millisecond) {
		more, err := w.calls()
		if n -= more; err != nil {
			return err
		}
		if time.Since(began) > 5*time.Minute || ctx.Err() != nil {
			return fmt.Errorf("%d are not called", n)
		}
	}
	return nil
}

// measured publishes one event for n subscriptions, or none if n is 0. It publishes other
// events until the first one has arrived everywhere, or for some seconds.
func (w *crowd[Tx]) measured(ctx context.Context, variant string, n int) ([]sample, error) {
	if err := w.warmUp(ctx); err != nil {
		return nil, err
	}
	if _, err := w.calls(); err != nil {
		return nil, err
	}
	committed, figures := commitTimes{}, map[string]float64{}
	began, first := time.Now(), ""
	if n > 0 {
		if _, err := w.forAll(ctx); err != nil {
			return nil, err
		}
	}
	const events = 60 // alone
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	arrived := 0
	for i := 0; n > 0 && arrived < n+i || n == 0 && i < events; i++ {
		var ref sender.Ref
		err := w.inTx(ctx, func(tx Tx) (err error) {
			ref, err = w.pub.PublishTx(ctx, tx, event(i, w.healthy.inTurn(i), 1<<10))
			return err
		})
		if err != nil {
			return nil, err
		}
		committed[ref.ID] = time.Now()
		if i == 0 {
			first = ref.ID
		}
		<-tick.C
		more, err := w.calls()
		if arrived += more; err != nil {
			return nil, err
		}
		if time.Since(began) > 2*time.Minute {
			return nil, errors.New("two minutes were not enough for an event for all")
		}
	}
	if n > 0 {
		figures[wholeTook] = time.Since(began).Seconds()
	}
	at := map[string]time.Time{}
	err := until(ctx, "not all events have arrived", func() (bool, error) {
		some, err := w.receiver.arrivals()
		for id, when := range some {
			if _, ours := committed[id]; ours {
				at[id] = when
			}
		}
		return len(at) == len(committed), err
	})
	if err != nil {
		return nil, err
	}
	var ms []float64
	for id, when := range at {
		ms = append(ms, max(0, when.Sub(committed[id]).Seconds()*1e3))
		if id == first {
			figures[nextFirst] = ms[len(ms)-1]
		}
	}
	slices.Sort(ms)
	figures[arriveP50], figures[arriveP99], figures[arriveMax] = quantile(ms, 0.5), quantile(ms, 0.99), quantile(ms, 1)
	return one(variant, figures), nil
}
