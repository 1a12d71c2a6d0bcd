package soak

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"
)

// Sample is what a process and its databases hold at one time. Memory is in bytes.
type Sample struct {
	At          time.Duration    `json:"at_ns"` // since the load began
	Heap        uint64           `json:"heap"`  // live, as the last collection found it
	Resident    uint64           `json:"resident"`
	Goroutines  int              `json:"goroutines"`
	Descriptors int              `json:"descriptors"` // 0 where /proc is not
	Rows        map[string]int64 `json:"rows"`        // by table
}

// AllRows is how many rows there are in all tables.
func (s *Sample) AllRows() (n int64) {
	for _, rows := range s.Rows {
		n += rows
	}
	return n
}

// sample looks at the process and at the databases.
func sample(ctx context.Context, at time.Duration, bases ...*base) (Sample, error) {
	s := Sample{At: at, Rows: map[string]int64{}}
	for _, b := range bases {
		rows, err := b.rows(ctx)
		if err != nil {
			return s, err
		}
		for table, n := range rows {
			s.Rows[table] += n // names are different but for surehook_migrations
		}
	}
	s.process()
	return s, nil
}

// process fills in what there is to say of the process.
func (s *Sample) process() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	s.Heap = live[0].Value.Uint64()
	s.Goroutines = runtime.NumGoroutine()
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.Descriptors = len(open) - 1 // the folder itself
	}
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, after, found := bytes.Cut(status, []byte("VmRSS:")); found {
			var kb uint64
			if _, err := fmt.Sscan(string(after), &kb); err == nil {
				s.Resident = kb << 10
			}
		}
	}
}

// settle collects garbage until goroutines and descriptors that are on their way to
// an end have ended, or stay: what was closed a moment ago takes a few scheduler rounds.
func settle(s *Sample) {
	for stable, tries := 0, 0; stable < 5 && tries < 300; tries++ {
		before := *s
		debug.FreeOSMemory()
		time.Sleep(20 * time.Millisecond)
		s.process()
		if s.Goroutines == before.Goroutines && s.Descriptors == before.Descriptors {
			stable++
		} else {
			stable = 0
		}
	}
}

// What may grow from the end of one cycle to the end of the next.
const (
	// The runtime and the drivers keep some things for ever: timers' goroutines,
	// statement caches, pools.
	growGoroutines  = 3
	growDescriptors = 3
	// A heap's live size moves by what caches and pools have at the time, which is
	// bounded: 512 statements for each connection, 16 KiB buffers of connections.
	growHeap = 8 << 20
	// What is resident follows the highest heap there was, which the scavenger
	// returns late: half as much again, and a floor.
	growResidentShare = 0.5
	growResident      = 64 << 20

	// Under load: the median of the last third beside that of the first, once what is
	// kept for longest, twice the reach, is there and goes.
	growUnderLoadShare = 0.3
	growUnderLoad      = 16 << 20
	growRowsUnderLoad  = 2000
	// It takes so many samples to tell a trend from a wave.
	trendSamples = 24
)

// keeps are the tables that may keep rows, each with how many for one thing that was
// made and that the library remembers by design.
var keeps = map[string]string{
	"surehook_objects":        "versions of objects are kept for ever",
	"surehook_dedup_versions": "versions of objects are kept for ever",
	"soak_states":             "so are the states that they were applied to",
	"surehook_subscribers":    "ids are never in use again",
	"surehook_subscriptions":  "ids are never in use again",
	"surehook_heads":          "each subscription has one",
	"surehook_turns":          "each subscriber has one",
	"surehook_replays":        "operators' acts stay on record",
}

// grown compares two cycles' ends.
func (f *findings) grown(start, end Sample) {
	if end.Goroutines > start.Goroutines+growGoroutines {
		f.add("I12", "%d goroutines were left after the load, %d before", end.Goroutines, start.Goroutines)
	}
	if end.Descriptors > start.Descriptors+growDescriptors {
		f.add("I12", "%d descriptors were left open after the load, %d before", end.Descriptors, start.Descriptors)
	}
	if end.Heap > start.Heap+growHeap {
		f.add("I12", "%d bytes of heap were live after the load, %d before", end.Heap, start.Heap)
	}
	if limit := start.Resident + growResident + uint64(growResidentShare*float64(start.Resident)); end.Resident > limit {
		f.add("I12", "%d bytes were resident after the load, %d before", end.Resident, start.Resident)
	}
	for _, table := range slices.Sorted(maps.Keys(end.Rows)) {
		if keeps[table] == "" && end.Rows[table] > start.Rows[table] {
			f.add("I12", "%s had %d rows after the load, %d before", table, end.Rows[table], start.Rows[table])
		}
	}
}

// rising compares the beginning of a load with its end.
func (f *findings) rising(samples []Sample, reach time.Duration) {
	full := slices.IndexFunc(samples, func(s Sample) bool { return s.At > 5*reach/2 })
	if full < 0 || len(samples)-full < trendSamples {
		return
	}
	samples = samples[full:]
	third := len(samples) / 3
	first, last := samples[:third], samples[len(samples)-third:]
	for _, figure := range []struct {
		name string
		of   func(s Sample) float64
		more float64
	}{
		{"bytes of live heap", func(s Sample) float64 { return float64(s.Heap) }, growUnderLoad},
		{"resident bytes", func(s Sample) float64 { return float64(s.Resident) }, growUnderLoad},
		{"goroutines", func(s Sample) float64 { return float64(s.Goroutines) }, 50},
		{"descriptors", func(s Sample) float64 { return float64(s.Descriptors) }, 50},
		{"rows, but for those that are kept for ever,", passing, growRowsUnderLoad},
	} {
		a, b := median(first, figure.of), median(last, figure.of)
		if b > a*(1+growUnderLoadShare)+figure.more {
			f.add("I12", "under load the "+figure.name+" rose from %.0f to %.0f, medians of the first and the last third", a, b)
		}
	}
}

// passing counts the rows that are to go.
func passing(s Sample) (n float64) {
	for table, rows := range s.Rows {
		if keeps[table] == "" && !strings.HasSuffix(table, "migrations") {
			n += float64(rows)
		}
	}
	return n
}

func median(samples []Sample, of func(s Sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
