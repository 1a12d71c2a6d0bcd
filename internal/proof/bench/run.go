package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// result has a scenario's measurements.
type result struct {
	Name     string     `json:"name"`
	Question string     `json:"question"`
	Rounds   [][]sample `json:"rounds"`
	Medians  []sample   `json:"medians"`
	Ratios   []compared `json:"ratios"`
	Seconds  float64    `json:"seconds"`

	columns []string
}

// compared is a ratio as it was measured.
type compared struct {
	Figure        string   `json:"figure"`
	Of            string   `json:"of"`
	Over          []string `json:"over,omitempty"`
	Median        float64  `json:"median"`
	Lowest        float64  `json:"lowest"`
	Highest       float64  `json:"highest"`
	Least         float64  `json:"least,omitempty"` // at most, if SmallerBetter
	Aim           float64  `json:"aim,omitempty"`
	SmallerBetter bool     `json:"smaller_better,omitempty"`
}

// run runs a scenario's rounds. Every other round goes backwards, so that no variant is
// always measured right after the same other one.
func run(ctx context.Context, b *bench, s scenario, rounds int) (r result, err error) {
	began := time.Now()
	r = result{Name: s.name, Question: s.question, columns: s.columns}
	measures, closeAll, err := s.open(ctx, b)
	if closeAll != nil {
		defer func() { err = errors.Join(err, closeAll()) }()
	}
	if err != nil {
		return r, err
	}
	for i := range rounds {
		var samples []sample
		for _, m := range measures {
			got, err := bounded(ctx, m)
			if err != nil {
				return r, err
			}
			for _, v := range got {
				fmt.Fprintf(os.Stderr, "%s %d/%d: %s:%s\n", s.name, i+1, rounds, v.Variant, inLine(v.Figures, s.columns))
			}
			samples = append(samples, got...)
		}
		r.Rounds = append(r.Rounds, samples)
		slices.Reverse(measures)
	}
	r.Medians = medians(r.Rounds)
	for _, ask := range s.ratios {
		r.Ratios = append(r.Ratios, ask.compare(r.Rounds))
	}
	r.Seconds = time.Since(began).Seconds()
	fmt.Fprintf(os.Stderr, "%s took %.0f s\n", s.name, r.Seconds)
	return r, nil
}

// bounded bounds the time of a measurement: the processes that it started are killed
// then.
func bounded(ctx context.Context, m measure) ([]sample, error) {
	const most = 15 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("a measurement took more than %v", most))
	defer cancel()
	samples, err := m(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return samples, err
}

// medians takes each figure's median over the rounds, in the order of the first round.
func medians(rounds [][]sample) (all []sample) {
	for _, first := range rounds[0] {
		m := sample{Variant: first.Variant, Figures: map[string]float64{}}
		for name := range first.Figures {
			var v []float64
			for _, round := range rounds {
				v = append(v, figure(round, first.Variant, name))
			}
			m.Figures[name] = median(v)
		}
		all = append(all, m)
	}
	return all
}

func figure(round []sample, variant, name string) float64 {
	i := slices.IndexFunc(round, func(s sample) bool { return s.Variant == variant })
	if i < 0 {
		return 0
	}
	return round[i].Figures[name]
}

// compare takes the ratio in each round, and then the median.
func (r ratio) compare(rounds [][]sample) compared {
	c := compared{Figure: r.figure, Of: r.of, Over: r.over, Least: r.least, Aim: r.aim, SmallerBetter: r.smallerBetter}
	var all []float64
	for _, round := range rounds {
		v := figure(round, r.of, r.figure)
		var over []float64
		for _, name := range r.over {
			over = append(over, figure(round, name, r.figure))
		}
		switch {
		case len(over) > 0 && r.smallerBetter:
			v /= slices.Min(over)
		case len(over) > 0:
			v /= slices.Max(over)
		}
		all = append(all, v)
	}
	c.Median, c.Lowest, c.Highest = median(all), slices.Min(all), slices.Max(all)
	return c
}
