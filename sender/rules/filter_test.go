package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/filter"
	"github.com/surehook/surehook/sender/rules"
)

// A decision about a filter counts while the subscription still asks the same.
func TestAsksTheSame(t *testing.T) {
	paid := func() rules.Asked {
		return rules.Asked{Filter: filter.Read(`{"data.status":"paid"}`), Pinned: "2026-11-01"}
	}
	require.True(t, paid().Equal(paid()))
	for _, other := range []rules.Asked{{Filter: paid().Filter}, {Filter: paid().Filter, Pinned: "2026-11-02"}, {Pinned: "2026-11-01"}, {Filter: filter.Read(`{"data.status":"open"}`), Pinned: "2026-11-01"}} {
		require.False(t, paid().Equal(other), "%+v", other)
	}
}
