package main

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/sender"
)

const (
	arriveP50 = "p50 ms"
	arriveP99 = "p99 ms"
	arriveMax = "slowest ms"
	perSecond = 200
)

// latency measures how soon a POST arrives after its event's commit, which happens in a
// process that wakes no dispatcher.
func latency[Tx any](k kind[Tx]) scenario {
	const alone = "200 events/s"
	return scenario{
		name:     "latency-" + k.name,
		question: "From the commit on " + k.text + " to the POST's arrival, at 200 events/s, published by a process that has no dispatcher and wakes none.",
		columns:  []string{arriveP50, arriveP99, arriveMax, databaseCPU},
		ratios: []ratio{
			{figure: arriveP99, of: alone, least: 20, aim: 10, smallerBetter: true},
		},
		open: func(ctx context.Context, b *bench) ([]measure, func() error, error) {
			l, err := openLine(ctx, b, k)
			if err != nil {
				return nil, nil, err
			}
			if err := l.dispatch(ctx, b); err != nil {
				return nil, l.close, err
			}
			return []measure{func(ctx context.Context) ([]sample, error) {
				return l.measured(ctx, alone, time.Duration(b.of(10, 2))*time.Second)
			}}, l.close, nil
		},
	}
}

// line is a database, a receiver, and a dispatcher between them.
type line[Tx any] struct {
	*place[Tx]
	receiver   *endpoint
	dispatcher *child.Process // nil until it is started
	healthy    registering
	meter      meter
}

// openLine registers ten subscriptions that answer.
func openLine[Tx any](ctx context.Context, b *bench, k kind[Tx]) (*line[Tx], error) {
	return openLineAs(ctx, b, k, sender.Settings{})
}

func openLineAs[Tx any](ctx context.Context, b *bench, k kind[Tx], settings sender.Settings) (l *line[Tx], err error) {
	l = &line[Tx]{meter: k.meter(ctx, b)}
	if l.receiver, err = b.startReceiver(ctx, receiverParams{Arrivals: true}); err != nil {
		return nil, err
	}
	if l.place, err = k.fresh(ctx, b); err != nil {
		return nil, errors.Join(err, l.receiver.Stop())
	}
	l.healthy = registering{prefix: "sub", n: 10, url: hooks(l.receiver.url), settings: settings}
	if _, err := l.register(ctx, l.healthy); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// dispatch starts the dispatcher.
func (l *line[Tx]) dispatch(ctx context.Context, b *bench) (err error) {
	l.dispatcher, err = b.start(ctx, "dispatcher", dispatcherParams{Database: l.location, Profile: b.profile}, nil)
	if err != nil {
		return err
	}
	return l.dispatcher.Ask(askGo, nil)
}

// close does not wait for attempts that hang.
func (l *line[Tx]) close() (err error) {
	if l.dispatcher != nil {
		err = l.dispatcher.Ask(askProfile, nil)
		l.dispatcher.Kill()
	}
	return errors.Join(err, l.receiver.Stop(), l.place.close())
}

// warmUp publishes for the healthy subscriptions for a second, and waits until all
// events have arrived.
func (l *line[Tx]) warmUp(ctx context.Context) error {
	committed, err := l.produce(ctx, perSecond, time.Second, l.healthy.inTurn)
	if err != nil {
		return err
	}
	_, err = l.receiver.latencies(ctx, committed)
	return err
}

// measured publishes for the healthy subscriptions for a time.
func (l *line[Tx]) measured(ctx context.Context, variant string, during time.Duration) ([]sample, error) {
	if err := l.warmUp(ctx); err != nil {
		return nil, err
	}
	var took []float64
	figures := map[string]float64{}
	work := func() error {
		committed, err := l.produce(ctx, perSecond, during, l.healthy.inTurn)
		if err != nil {
			return err
		}
		took, err = l.receiver.latencies(ctx, committed)
		return err
	}
	if l.meter != nil {
		work = metered(work, l.meter, 1/(perSecond*during.Seconds()), figures, databaseCPU)
	}
	if err := work(); err != nil {
		return nil, err
	}
	figures[arriveP50], figures[arriveP99], figures[arriveMax] = quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1)
	return one(variant, figures), nil
}
