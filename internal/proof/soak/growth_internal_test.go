package soak

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// load makes the samples of eight minutes with a reach of one minute. A wave of faults
// comes and goes every two minutes.
func load(change func(s *Sample, at float64)) []Sample {
	var all []Sample
	for at := 8.0; at <= 480; at += 8 {
		wave := 1 + 0.8*math.Sin(at/60*math.Pi)
		s := Sample{
			At: time.Duration(at) * time.Second, Heap: uint64(8e6 * wave), Resident: 60 << 20,
			Goroutines: int(200 * wave), Descriptors: int(100 * wave), Done: int64(at * 100),
			Rows: map[string]int64{"surehook_attempts": int64(4000 * (1 + 0.1*wave)), "surehook_notices": int64(60 * wave), "surehook_objects": int64(at)},
		}
		if change != nil {
			change(&s, at)
		}
		all = append(all, s)
	}
	return all
}

func trend(samples []Sample) (bool, []Finding) {
	f := &findings{kinds: map[string]*Finding{}}
	return f.rising(samples, time.Minute), f.all()
}

// Waves are no growth, and more rows from more work are no growth: here the machine had
// other work in the first five minutes.
func TestNothingRises(t *testing.T) {
	for name, change := range map[string]func(s *Sample, at float64){
		"waves": nil,
		"busier": func(s *Sample, at float64) {
			s.Done = int64(at*20 + max(0, at-300)*180)
			s.Rows["surehook_attempts"] = int64(800 + max(0, min(at-300, 60))*120)
		},
	} {
		ok, found := trend(load(change))
		require.True(t, ok, name)
		require.Empty(t, found, name)
	}
	ok, _ := trend(load(nil)[:40])
	require.False(t, ok, "too few samples")
}

func TestWhatRisesIsFound(t *testing.T) {
	for text, change := range map[string]func(s *Sample, at float64){
		"live heap":     func(s *Sample, at float64) { s.Heap += uint64(at * 30_000) },
		"resident":      func(s *Sample, at float64) { s.Resident += uint64(at * 200_000) },
		"goroutines":    func(s *Sample, at float64) { s.Goroutines += int(at) },
		"descriptors":   func(s *Sample, at float64) { s.Descriptors += int(at) },
		"surehook_keys": func(s *Sample, at float64) { s.Rows["surehook_keys"] += int64(5 * at) },
	} {
		_, found := trend(load(change))
		require.Len(t, found, 1, text)
		require.Contains(t, found[0].Text, text)
	}
}

// The rows that remain after a load are compared with those from before it, to the row.
func TestWhatIsLeftIsFound(t *testing.T) {
	end := func(change func(s *Sample)) []Finding {
		f := &findings{kinds: map[string]*Finding{}}
		start := Sample{Heap: 1 << 20, Resident: 30 << 20, Goroutines: 1, Descriptors: 9, Rows: map[string]int64{"surehook_leases": 0, "surehook_objects": 60}}
		s := Sample{Heap: 2 << 20, Resident: 40 << 20, Goroutines: 1, Descriptors: 9, Rows: map[string]int64{"surehook_leases": 0, "surehook_objects": 600}}
		change(&s)
		f.grown(start, s)
		return f.all()
	}
	require.Empty(t, end(func(*Sample) {}))
	for text, change := range map[string]func(s *Sample){
		"heap":            func(s *Sample) { s.Heap += growHeap },
		"resident":        func(s *Sample) { s.Resident += 2 * growResident },
		"goroutines":      func(s *Sample) { s.Goroutines += growGoroutines + 1 },
		"descriptors":     func(s *Sample) { s.Descriptors += growDescriptors + 1 },
		"surehook_leases": func(s *Sample) { s.Rows["surehook_leases"]++ },
	} {
		found := end(change)
		require.Len(t, found, 1, text)
		require.Contains(t, found[0].Text, text)
	}

	w := newWitness(&findings{kinds: map[string]*Finding{}}, &figures{n: map[string]int64{}})
	w.made["surehook_subscriptions"] = 3
	rows := map[string]int64{"surehook_subscriptions": 3, "surehook_heads": 3}
	w.stayed(&Sample{Rows: rows})
	require.Empty(t, w.findings.all())
	rows["surehook_heads"] = 4 // of a subscription that is not there
	w.stayed(&Sample{Rows: rows})
	require.Len(t, w.findings.all(), 1)
}
