package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/simulation"
)

// simulations runs seed after seed in virtual time, one on each core, for as long as
// there is time.
func simulations(o options) func(ctx context.Context, b *bench, during time.Duration, r *result) error {
	return func(ctx context.Context, b *bench, during time.Duration, r *result) error {
		ctx, cancel := context.WithTimeout(ctx, during)
		defer cancel()
		rng := rand.New(rand.NewPCG(o.seed, 3))
		var (
			mu    sync.Mutex
			sum   simulation.Report
			seeds int
			told  = time.Now()
		)
		next := func() uint64 {
			mu.Lock()
			defer mu.Unlock()
			return rng.Uint64() >> 1 // go test takes it as a signed number
		}
		var group errgroup.Group
		for range runtime.NumCPU() {
			group.Go(func() error {
				for ctx.Err() == nil {
					seed := next()
					report, err := simulation.Run(ctx, simulation.Memory(), simulation.Config{Seed: seed})
					if ctx.Err() != nil {
						break // it was broken off
					}
					mu.Lock()
					seeds++
					sum.Add(report)
					if time.Since(told) > 10*time.Second {
						told = time.Now()
						b.progress(fmt.Sprintf("simulation: %d seeds, %d attempts", seeds, sum.Attempts))
					}
					if err != nil {
						r.violated(seed, err)
					}
					failed := len(r.Failures) >= 10
					mu.Unlock()
					if failed {
						return errors.New("ten seeds have failed: that is enough")
					}
				}
				return nil
			})
		}
		err := group.Wait()
		took := time.Since(r.began)
		r.figure("memory: seeds", seeds)
		r.figure("memory: attempts", sum.Attempts)
		r.figure("memory: attempts a second", int(float64(sum.Attempts)/took.Seconds()))
		r.figure("memory: events", sum.Events)
		r.figure("memory: deliveries", sum.Deliveries)
		r.figure("memory: steps, the invariants being checked after each", sum.Steps)
		r.figure("memory: virtual time", sum.Virtual.Round(time.Hour).String())
		r.Details = append(r.Details, sum.Counts)
		return err
	}
}

// violated notes a seed that failed. It fails again, bit for bit.
func (r *result) violated(seed uint64, err error) {
	r.fail(fmt.Sprintf("seed %d: %v", seed, err), fmt.Sprintf("go test ./internal/simulation -run TestSeed -seed %d -v", seed))
}
