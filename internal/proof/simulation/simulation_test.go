package simulation_test

import (
	"context"
	"errors"
	"flag"
	"iter"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/proof/simulation"
	"github.com/surehook/surehook/internal/race"
)

var (
	oneSeed  = flag.Int64("seed", -1, "the seed that TestSeed simulates, and shows")
	attempts = flag.Int("attempts", 65_000, "how many attempts TestManyAttempts makes")
	from     = flag.Uint64("from", 0, "the first seed of those tests that take many")
	seeds    = flag.Uint64("seeds", 3, "how many seeds TestSQLite and TestPostgres simulate")
	events   = flag.Int("events", 25, "how many events these publish in each, and TestSeed")
	store    = flag.String("store", "memory", "where TestSeed simulates: memory, sqlite or postgres")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(1600) // simulations make much short-lived garbage and have little live memory
	os.Exit(m.Run())
}

// The seeds are the same in every run of the tests, so that nothing fails by chance. For
// other seeds use -from, and as many -attempts as there is time for.
func TestManyAttempts(t *testing.T) {
	want := *attempts
	if race.Enabled { // there are no goroutines to race: it is about the code's own
		want /= 40
	}
	var mu sync.Mutex
	seed, sum := *from, simulation.Report{Counts: map[string]int{}}
	began := time.Now()
	next := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		seed++
		return seed - 1, sum.Attempts < want
	}
	g, ctx := errgroup.WithContext(t.Context())
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			for s, more := next(); more; s, more = next() {
				r, err := simulation.Run(ctx, simulation.Memory(), simulation.Config{Seed: s})
				if err != nil {
					return err
				}
				mu.Lock()
				sum.Add(r)
				mu.Unlock()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("%v\nShow it with: go test ./internal/proof/simulation -run TestSeed -seed N -v", err)
	}
	t.Logf("%d seeds, %d attempts of %d deliveries in %d steps and %v of virtual time, %.0f attempts a second: %v",
		seed-*from, sum.Attempts, sum.Deliveries, sum.Steps, sum.Virtual, float64(sum.Attempts)/time.Since(began).Seconds(), sum.Counts)
	if race.Enabled {
		return
	}
	for _, what := range simulation.Happens() {
		require.Positive(t, sum.Counts[what], "nothing was seen of: %s", what)
	}
}

// seedsOf returns the seeds of a test on a database.
func seedsOf() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		last := *from + *seeds
		if race.Enabled { // there are no goroutines to race: it is about the code's own
			last = *from + 1
		}
		for seed := *from; seed < last && yield(seed); seed++ {
		}
	}
}

// notRacing skips what the race detector makes many times slower, and finds nothing in.
// .ci/run runs it without.
func notRacing(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("there are no goroutines to race, and without the race detector it is much faster")
	}
}

// TestSeed prints the trace of one seed.
func TestSeed(t *testing.T) {
	if *oneSeed < 0 {
		return
	}
	cfg := simulation.Config{Seed: uint64(*oneSeed), Watch: func(line string) { t.Log(line) }}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "events" {
			cfg.Events = *events
		}
	})
	var err error
	switch *store {
	case "memory":
		_, err = simulation.Run(t.Context(), simulation.Memory(), cfg)
	case "sqlite":
		_, err = onSQLite(t, cfg)
	case "postgres":
		_, err = onPostgres(t, cfg)
	default:
		t.Fatalf("there is no store %q", *store)
	}
	require.NoError(t, err)
}

// A seed repeats bit for bit, and another one differs.
func TestReplaysBitForBit(t *testing.T) {
	notRacing(t)
	hashes := map[string]bool{}
	for seed := range uint64(5) {
		var lines []string
		cfg := simulation.Config{Seed: seed, Events: 100, Watch: func(line string) { lines = append(lines, line) }}
		first, err := simulation.Run(t.Context(), simulation.Memory(), cfg)
		require.NoError(t, err)
		n := 0
		cfg.Watch = func(line string) {
			if n < len(lines) && lines[n] != line {
				t.Fatalf("seed %d has %q where it had %q", seed, line, lines[n])
			}
			n++
		}
		again, err := simulation.Run(t.Context(), simulation.Memory(), cfg)
		require.NoError(t, err)
		require.Equal(t, first, again)
		hashes[first.Hash] = true
	}
	require.Len(t, hashes, 5)
}

// Without faults there is one POST for each attempt, each succeeds, and nothing is sent
// again. An event that a newer version has overtaken before it was attempted is not sent.
func TestWithoutFaults(t *testing.T) {
	for seed := range uint64(5) {
		r, err := simulation.Run(t.Context(), simulation.Memory(), simulation.Config{Seed: seed, Events: 100, NoFaults: true})
		require.NoError(t, err)
		require.Equal(t, 100, r.Events)
		require.Equal(t, r.Deliveries, r.Attempts+r.Counts["end superseded"])
		require.Equal(t, r.Attempts, r.Counts["end delivered"])
		require.Equal(t, r.Attempts, r.Counts["applied"]+r.Counts["stale"])
	}
}

// Each deliberate breakage is found.
func TestFindsWhatIsBroken(t *testing.T) {
	notRacing(t)
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			found := map[string]bool{}
			for i := range uint64(60) {
				seed := b.begin + i
				_, err := simulation.Run(t.Context(), breaking(b), simulation.Config{Seed: seed, Events: 100})
				var v *simulation.Violation
				if err == nil {
					continue
				}
				require.True(t, errors.As(err, &v), err)
				require.Equal(t, seed, v.Seed)
				if found[v.Invariant] = true; v.Invariant == b.breaks {
					t.Logf("found with seed %d", seed)
					require.True(t, strings.Contains(err.Error(), "The last that happened"))
					return
				}
			}
			t.Fatalf("%s was not found to be broken, but %v", b.breaks, found)
		})
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := simulation.Run(ctx, simulation.Memory(), simulation.Config{})
	require.ErrorIs(t, err, context.Canceled)
}
