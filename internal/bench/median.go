package main

import (
	"iter"
	"maps"
	"slices"
)

// medians takes each figure's median over the rounds.
func medians(rounds []measured) measured {
	of := func(figure func(measured) float64) float64 {
		v := make([]float64, len(rounds))
		for i, m := range rounds {
			v[i] = figure(m)
		}
		return median(v)
	}
	m := measured{
		Scenario: rounds[0].Scenario, Deliveries: rounds[0].Deliveries,
		SenderCPU:  of(func(m measured) float64 { return m.SenderCPU }),
		ReceiveCPU: of(func(m measured) float64 { return m.ReceiveCPU }),
		Seconds:    of(func(m measured) float64 { return m.Seconds }),
		Extra:      map[string]float64{},
	}
	for k := range rounds[0].Extra {
		m.Extra[k] = of(func(m measured) float64 { return m.Extra[k] })
	}
	return m
}

func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile returns a value's nearest-rank quantile; 0 of nothing.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, int(q*float64(len(v))))]
}

func keys(m map[string]float64) iter.Seq[string] { return maps.Keys(m) }
