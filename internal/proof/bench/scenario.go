package main

import (
	"context"
	"slices"
)

// scenario is a question about speed. Ratios of figures that are measured in turns in
// one run answer it: absolute rates depend on the machine, and on its other work.
type scenario struct {
	name     string
	question string
	ifNamed  bool     // it runs only if its whole name is given
	columns  []string // figures in the order of the table; they name their units
	ratios   []ratio
	// open prepares the measurements, which take turns in each round. close may be
	// called after an error too.
	open func(ctx context.Context, b *bench) (rounds []measure, close func() error, err error)
}

// measure measures one variant, or several that belong together.
type measure func(ctx context.Context) ([]sample, error)

// sample has the figures of a variant in one round.
type sample struct {
	Variant string             `json:"variant"`
	Figures map[string]float64 `json:"figures"`
}

// ratio compares a figure of one variant with that of another in the same round.
type ratio struct {
	figure string
	of     string
	// over has the variants whose best figure is the divisor. Empty: the figure is
	// shown as it is.
	over []string
	// least is the bound of the ratio: the lowest ratio allowed, or the highest if smaller
	// figures are better. aim is the ratio to aim at. 0: there is none.
	least, aim    float64
	smallerBetter bool
}

// alone is the open of a scenario with one measurement, which prepares everything
// itself.
func alone(m func(ctx context.Context, b *bench) ([]sample, error)) func(context.Context, *bench) ([]measure, func() error, error) {
	return func(_ context.Context, b *bench) ([]measure, func() error, error) {
		return []measure{func(ctx context.Context) ([]sample, error) { return m(ctx, b) }}, nil, nil
	}
}

// one is a sample of one variant.
func one(variant string, figures map[string]float64) []sample {
	return []sample{{Variant: variant, Figures: figures}}
}

// scenarios has all scenarios, in the order in which they run.
func scenarios() []scenario {
	return slices.Concat([]scenario{
		ordinaryOnPostgres(), ordinaryOnSQLite(),
		pathOnPostgres(), pathOnSQLite(),
		blocked(onPostgres), blocked(onSQLite),
		many(onPostgres), many(onSQLite),
		snapshot(onPostgres), snapshot(onSQLite),
		ordered(onPostgres), ordered(onSQLite), failing(onPostgres), failing(onSQLite),
		publish(onPostgres), latency(onPostgres), isolation(onPostgres), memory(onPostgres), fanout(onPostgres), filtering(onPostgres), behind(onPostgres), receiving(onPostgres),
	}, ifNamed(
		pages(), publish(onSQLite), latency(onSQLite), isolation(onSQLite), memory(onSQLite), fanout(onSQLite), filtering(onSQLite), behind(onSQLite), receiving(onSQLite),
	))
}

func ifNamed(all ...scenario) []scenario {
	for i := range all {
		all[i].ifNamed = true
	}
	return all
}
