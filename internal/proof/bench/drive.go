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

// spent is what drivers have measured while they drained.
type spent struct {
	recorded int
	seconds  float64
	cpu      float64 // of this process, in µs
	database float64 // the same of the database's, if it has any of its own
	took     []float64
}

// add drains n deliveries.
func (s *spent) add(ctx context.Context, d *driver, n int, database meter) error {
	d.took = d.took[:0]
	work := func() error {
		before, began := child.CPU(), time.Now()
		recorded, err := d.drain(ctx, n)
		s.cpu += child.CPU() - before
		s.seconds += time.Since(began).Seconds()
		s.recorded += recorded
		return err
	}
	if database != nil {
		figures := map[string]float64{}
		work = metered(work, database, 1, figures, databaseCPU)
		defer func() { s.database += figures[databaseCPU] }()
	}
	err := work()
	s.took = append(s.took, d.took...)
	return err
}

func (s *spent) figures(database meter) map[string]float64 {
	n := float64(s.recorded)
	figures := map[string]float64{
		steps: n / s.seconds, drivers: s.cpu / n, stepTime: median(s.took), stepsPerCPU: 1e6 * n / (s.cpu + s.database),
	}
	if database != nil {
		figures[databaseCPU] = s.database / n
	}
	return figures
}

// measured drains n deliveries, and returns the figures.
func (d *driver) measured(ctx context.Context, n int, database meter) (map[string]float64, error) {
	var s spent
	if err := s.add(ctx, d, n, database); err != nil {
		return nil, err
	}
	return s.figures(database), nil
}

// turn is a variant that takes turns with others.
type turn struct {
	name     string
	driver   *driver
	database meter
}

// measuredInTurns drains n deliveries of each variant, some of one and then some of another.
// So whatever else the machine does within a round reaches all of them alike.
func measuredInTurns(ctx context.Context, n int, turns []turn) (samples []sample, err error) {
	const some = 2000
	all := make([]spent, len(turns))
	for {
		open := false
		for i, t := range turns {
			if remaining := n - all[i].recorded; remaining > 0 {
				open = true
				if err := all[i].add(ctx, t.driver, min(some, remaining), t.database); err != nil {
					return nil, err
				}
			}
		}
		if !open {
			break
		}
	}
	for i, t := range turns {
		samples = append(samples, one(t.name, all[i].figures(t.database))...)
	}
	return samples, nil
}
