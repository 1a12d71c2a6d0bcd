package storetest_test

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/storetest"
)

type (
	tx      = *memory.Tx
	harness = storetest.Harness[tx]
)

// store is what a breakage embeds, to override the method that it breaks. One that breaks
// how events are expanded, results recorded or deliveries claimed overrides Step: see
// stepping.
type store interface {
	storetest.Store[tx]
	dispatch.Stepper
}

// breakage is a way to break a store, with the checks of the suite that must bite.
type breakage struct {
	name     string
	breaking func(sound store) store
	bite     checks
}

type checks []string

// sound is a store that takes a step in two transactions.
type sound struct{ storetest.Store[tx] }

func (s sound) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (x dispatch.Expanded, c dispatch.Claims, err error) {
	if p != (dispatch.ExpandParams{}) {
		if x, err = s.Expand(ctx, p); err != nil {
			return x, c, err
		}
	}
	c, err = s.RecordAndClaim(ctx, batch)
	return x, c, err
}

// stepping is a store that only takes steps, so that a Step which is broken breaks Expand
// and RecordAndClaim too.
type stepping struct{ store }

func (s stepping) Expand(ctx context.Context, p dispatch.ExpandParams) (dispatch.Expanded, error) {
	x, _, err := s.Step(ctx, p, dispatch.Batch{})
	return x, err
}

func (s stepping) RecordAndClaim(ctx context.Context, batch dispatch.Batch) (dispatch.Claims, error) {
	_, c, err := s.Step(ctx, dispatch.ExpandParams{}, batch)
	return c, err
}

// rollsBack is a store that ends callers' transactions in its own way.
type rollsBack interface {
	rollBack(tx tx) error
}

// timeOf is a store's time.
func timeOf(ctx context.Context, s store) (time.Time, error) {
	_, c, err := s.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{})
	return c.Now, err
}
