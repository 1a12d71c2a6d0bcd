package main

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
)

// failing measures how much an object whose versions fail delays the others of the same
// subscription, under the order of objects.
func failing[Tx any](k kind[Tx]) scenario {
	const without, beside = "alone", "beside an object that fails"
	return scenario{
		name: "failing-" + k.name,
		question: "From the commit on " + k.text + " to the POST's arrival for ten subscriptions with the order of objects, at 200 events/s, " +
			"while as many subscriptions' endpoints answer 503 to what is about one object, of which 20 versions come each second.",
		columns: []string{arriveP50, arriveP99, arriveMax, databaseCPU},
		ratios: []ratio{
			{figure: arriveP99, of: beside, over: []string{without}, least: 1.2, aim: 1, smallerBetter: true},
			{figure: arriveP50, of: beside, over: []string{without}, smallerBetter: true},
		},
		open: func(_ context.Context, b *bench) ([]measure, func() error, error) {
			during := time.Duration(b.of(15, 3)) * time.Second
			return []measure{
				func(ctx context.Context) ([]sample, error) { return besideFailing(ctx, b, k, without, false, during) },
				func(ctx context.Context) ([]sample, error) { return besideFailing(ctx, b, k, beside, true, during) },
			}, nil, nil
		},
	}
}

// besideFailing measures a line of its own: what has failed in one measurement waits for
// hours, and would be tried again in the next.
func besideFailing[Tx any](ctx context.Context, b *bench, k kind[Tx], variant string, failing bool, during time.Duration) (_ []sample, err error) {
	l, err := openLineAs(ctx, b, k, sender.Settings{Order: sender.OrderObject})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.dispatch(ctx, b); err != nil {
		return nil, err
	}
	// All have answered fast before anything fails.
	if err := l.warmUp(ctx); err != nil {
		return nil, err
	}
	if err := l.settle(ctx); err != nil {
		return nil, err
	}
	if !failing {
		return l.measured(ctx, variant, during)
	}
	failed, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.fail(failed) }()
	figures, err := l.measured(ctx, variant, during)
	stop()
	return figures, errors.Join(err, <-ended)
}

// fail publishes versions of an object whose events are answered with 503, to the healthy
// subscriptions in turn, until its context ends.
func (l *line[Tx]) fail(ctx context.Context) error {
	pub, err := sender.NewPublisher(l.store, nil)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second / 20)
	defer tick.Stop()
	for i := 0; ; i++ {
		e := event(i, l.healthy.inTurn(i), 1<<10)
		e.Object.ID = failingObject
		if _, err := pub.Publish(context.WithoutCancel(ctx), e); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
