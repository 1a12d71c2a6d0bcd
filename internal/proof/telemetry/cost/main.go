// Command cost measures what metrics and traces cost: the CPU time of the whole path from a
// publish to the receiver's commit, on SQLite, with and without them. The kinds take turns
// in each round, and the median of the rounds' ratios counts.
//
//	go run ./cost -rounds 9 -events 5000
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/surehook/surehook/internal/cputime"
)

// kinds are what is compared. The first one has neither metrics nor traces.
var kinds = []kind{
	{name: "without"},
	{name: "Prometheus", prometheus: true},
	{name: "OpenTelemetry, 5 % of the traces sampled", otel: true, sampled: 0.05},
	{name: "both, all traces sampled", prometheus: true, otel: true, sampled: 1},
}

type kind struct {
	name       string
	prometheus bool
	otel       bool
	sampled    float64
}

func main() {
	rounds := flag.Int("rounds", 9, "rounds that count, after one that does not")
	events := flag.Int("events", 5000, "events of each kind in a round")
	flag.Parse()
	if err := run(context.Background(), *rounds, *events); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rounds, events int) error {
	spent := make([][]float64, len(kinds)) // µs of CPU for each delivery, by kind and round
	for round := range rounds + 1 {
		for i := range kinds {
			k := (i + round) % len(kinds) // none is always the first
			cpu, err := measure(ctx, kinds[k], events)
			if err != nil {
				return fmt.Errorf("%s: %w", kinds[k].name, err)
			}
			if round > 0 {
				spent[k] = append(spent[k], float64(cpu.Microseconds())/float64(events))
			}
		}
	}
	fmt.Printf("%d rounds of %d deliveries, whole path on SQLite\n", rounds, events)
	for k := range kinds {
		ratios := make([]float64, rounds)
		for r := range ratios {
			ratios[r] = spent[0][r] / spent[k][r]
		}
		fmt.Printf("%-42s %7.1f µs of CPU a delivery   ratio %.3f (%.3f to %.3f)\n", kinds[k].name, median(spent[k]), median(ratios), slices.Min(ratios), slices.Max(ratios))
	}
	return nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// measure delivers events, and returns the CPU time of the process meanwhile.
func measure(ctx context.Context, k kind, events int) (time.Duration, error) {
	folder, err := os.MkdirTemp("", "cost")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	p, err := newPath(ctx, folder, k)
	if err != nil {
		return 0, err
	}
	defer p.close()
	began := cputime.Used()
	if err := p.deliver(ctx, events); err != nil {
		return 0, err
	}
	return cputime.Used() - began, nil
}
