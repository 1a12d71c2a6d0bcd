package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/sender/dispatch"
)

const (
	// slots is how many deliveries one step claims, about as many as a busy
	// dispatcher's.
	slots = 200
	// perSubscription is the default of dispatch.Config.
	perSubscription = 32

	steps       = "claimed and recorded/s"
	stepsPerCPU = "claimed and recorded per CPU second" // of all processes
	drivers     = "CPU µs"
	stepTime    = "step p50 ms"
)

// driver claims deliveries and records them as delivered, as fast as the store can. It
// is like a dispatcher whose attempts take no time.
type driver struct {
	store   dispatch.Store
	claimed []dispatch.Claimed
	// room is for ClaimParams.SubscriptionRoom.
	room map[int64]int
	took []float64 // each step, in ms
}

// step records the deliveries claimed before, and claims more. It returns how many it
// has recorded.
func (d *driver) step(ctx context.Context) (recorded int, err error) {
	b := dispatch.Batch{Decide: dispatch.Policy{}.Decide, Results: make([]dispatch.Result, len(d.claimed))}
	for i := range d.claimed {
		c := &d.claimed[i]
		b.Results[i] = dispatch.Result{
			Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Published: c.Event.CreatedAt,
			Duration: 5 * time.Millisecond, StatusCode: 200,
		}
	}
	b.Claim = dispatch.ClaimParams{Lease: time.Minute, Token: rand.Int64(), SubscriptionRoom: d.room}
	for lane := range b.Claim.Lanes {
		b.Claim.Lanes[lane] = dispatch.LaneParams{Slots: slots, PerSubscriber: slots, PerSubscription: perSubscription}
	}
	began := time.Now()
	_, claims, err := d.store.Step(ctx, dispatch.ExpandParams{}, b)
	if err != nil {
		return 0, err
	}
	d.took = append(d.took, time.Since(began).Seconds()*1e3)
	for i := range claims.Recorded {
		if claims.Recorded[i].Lost {
			return 0, errors.New("a result was dropped")
		}
	}
	d.claimed = claims.Claimed
	return len(b.Results), nil
}

// drain steps until at least n deliveries were recorded, or none remains.
func (d *driver) drain(ctx context.Context, n int) (recorded int, err error) {
	for idle := 0; recorded < n; {
		more, err := d.step(ctx)
		if err != nil {
			return recorded, err
		}
		recorded += more
		if more > 0 || len(d.claimed) > 0 {
			idle = 0
		} else if idle++; idle > 1000 {
			return recorded, fmt.Errorf("only %d of %d could be claimed", recorded, n)
		}
	}
	return recorded, nil
}

// measured drains n deliveries, and returns the figures.
func (d *driver) measured(ctx context.Context, n int, database meter) (map[string]float64, error) {
	d.took = d.took[:0]
	figures := map[string]float64{}
	recorded, cpu := 0, 0.0
	var seconds float64
	work := func() (err error) {
		before, began := child.CPU(), time.Now()
		recorded, err = d.drain(ctx, n)
		cpu, seconds = child.CPU()-before, time.Since(began).Seconds()
		return err
	}
	if database != nil {
		work = metered(work, database, 1/float64(n), figures, databaseCPU)
	}
	if err := work(); err != nil {
		return nil, err
	}
	figures[steps], figures[drivers] = float64(recorded)/seconds, cpu/float64(recorded)
	figures[stepTime] = median(d.took)
	figures[stepsPerCPU] = 1e6 / (figures[drivers] + figures[databaseCPU])
	return figures, nil
}
