package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
)

// commitTimes has the times of events' commits, by their ids.
type commitTimes map[string]time.Time

// produce publishes events at a steady rate, each in a transaction of the
// application's own in this process, which has no dispatcher and wakes none.
func (p *place[Tx]) produce(ctx context.Context, perSecond int, during time.Duration, to func(i int) string) (commitTimes, error) {
	pub, err := sender.NewPublisher(p.store, nil)
	if err != nil {
		return nil, err
	}
	const most = 32 // transactions at a time
	var mu sync.Mutex
	var failed error
	committed := commitTimes{}
	places := make(chan struct{}, most)
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	var wg sync.WaitGroup
	n := int(during.Seconds() * float64(perSecond))
	for i := range n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			var ref sender.Ref
			err := p.inTx(ctx, func(tx Tx) (err error) {
				ref, err = pub.PublishTx(ctx, tx, event(i, to(i), 1<<10))
				return err
			})
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			committed[ref.ID], failed = now, errors.Join(failed, err)
		})
	}
	wg.Wait()
	return committed, failed
}

// until waits until a receiver's answer satisfies a condition.
func until(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("a minute was not enough: %s", what))
	defer cancel()
	for {
		ok, err := so()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// latencies waits until all events have arrived, and returns the time of each from its
// commit, in ms. A POST may arrive before the commit has returned.
func (r *endpoint) latencies(ctx context.Context, committed commitTimes) (ms []float64, err error) {
	err = until(ctx, "not all events have arrived", func() (bool, error) {
		arrived, err := r.arrivals()
		for id, at := range arrived {
			if began, ok := committed[id]; ok {
				ms = append(ms, max(0, at.Sub(began).Seconds()*1e3))
			}
		}
		return len(ms) == len(committed), err
	})
	return ms, err
}
