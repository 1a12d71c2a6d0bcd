package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
)

var (
	errCut   = errors.New("soak: the link to the database is cut")
	errDrawn = errors.New("soak: drawn to fail")
)

// link is a dispatcher's way to its store. It fails before or after the effect, stalls
// for longer than a lease, and can be cut for good, as if the process were lost.
type link struct {
	dispatch.Store
	lease time.Duration
	w     *witness
	calm  *atomic.Bool
	cut   atomic.Bool

	mu  sync.Mutex
	rng *rand.Rand
}

// wire returns the link with the optional interfaces of its store.
func (l *link) wire() dispatch.Store {
	large, many := l.Store.(dispatch.LargeSteps)
	listener, listens := l.Store.(dispatch.Listener)
	switch {
	case many && listens:
		return struct {
			*link
			dispatch.LargeSteps
			dispatch.Listener
		}{l, large, listener}
	case many:
		return struct {
			*link
			dispatch.LargeSteps
		}{l, large}
	}
	return l
}

// through makes a call with the fault that is drawn for it.
func (l *link) through(ctx context.Context, call func() error) error {
	if l.cut.Load() {
		return errCut
	}
	drawn, stall := 1000, time.Duration(0)
	if !l.calm.Load() {
		l.mu.Lock()
		// Somewhat longer than a lease: a late result then often meets the next
		// claim in flight.
		drawn, stall = l.rng.IntN(1000), l.lease+time.Duration(l.rng.Float64()*float64(l.lease)/3)
		l.mu.Unlock()
	}
	switch {
	case drawn < 4:
		l.w.count("faults: store failed before the effect")
		return errDrawn
	case drawn < 8:
		l.w.count("faults: store's answer lost after the effect")
		return errors.Join(call(), errDrawn)
	case drawn < 14:
		l.w.count("faults: store stalled beyond the lease")
		select {
		case <-time.After(stall):
		case <-ctx.Done():
		}
	}
	if err := call(); err != nil {
		return err
	}
	if l.cut.Load() {
		return errCut
	}
	return nil
}

// Step implements dispatch.Store.
func (l *link) Step(ctx context.Context, p dispatch.ExpandParams, b dispatch.Batch) (x dispatch.Expanded, c dispatch.Claims, err error) {
	err = l.through(ctx, func() (err error) {
		x, c, err = l.Store.Step(ctx, p, b)
		l.w.claimed(&c)
		return err
	})
	if err != nil {
		l.w.unheard(c.Claimed)
	}
	return x, c, err
}

// Release implements dispatch.Store.
func (l *link) Release(ctx context.Context, rs []dispatch.Release) error {
	return l.through(ctx, func() error { return l.Store.Release(ctx, rs) })
}

// Sweep implements dispatch.Store.
func (l *link) Sweep(ctx context.Context, p dispatch.SweepParams) (out dispatch.Swept, err error) {
	err = l.through(ctx, func() (err error) { out, err = l.Store.Sweep(ctx, p); return err })
	return out, err
}
