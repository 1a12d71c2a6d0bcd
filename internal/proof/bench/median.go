package main

import (
	"math"
	"slices"
)

func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile returns the nearest-rank quantile of values; 0 if there are none.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[max(0, int(math.Ceil(q*float64(len(v))))-1)]
}
