//go:build !race

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

// store is what a breakage embeds, to override the method that it breaks.
type store = storetest.Store[tx]

// breakage is a way to break a store, with the checks of the suite that must bite.
type breakage struct {
	name     string
	breaking func(sound store) store
	bite     checks
}

type checks []string

// rollsBack is a store that ends callers' transactions in its own way.
type rollsBack interface {
	rollBack(tx tx) error
}

// timeOf is a store's time.
func timeOf(ctx context.Context, s store) (time.Time, error) {
	_, c, err := s.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{})
	return c.Now, err
}
