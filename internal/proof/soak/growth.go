package soak

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

// Bounds of the growth from the end of one cycle to the end of the next.
const (
	// These are for goroutines and descriptors of the runtime and of the program. No growth
	// of theirs was ever seen.
	growGoroutines  = 1
	growDescriptors = 1
	// The heap grew by 1.5 MB in 15 minutes, most of it records of the witness.
	growHeap = 4 << 20
	// Resident memory follows the peak of the heap, which the scavenger returns
	// late. It grew by 5 MB.
	growResidentShare = 0.25
	growResident      = 24 << 20

	// Under load the least value of the last third is compared with that of the
	// first, which begins once the rows that are kept longest, for twice the reach,
	// begin to go. A wave of faults has a trough, and a leak has none.
	growUnderLoadShare = 0.3
	growHeapUnderLoad  = 4 << 20
	growResidentUnder  = 16 << 20
	growCountUnderLoad = 100
	// If the machine is slow, more attempts time out, and there are more dead
	// letters and notices than before: up to 350 were seen.
	growRowsUnderLoad = 500
	// The samples that are needed to tell a trend from a wave.
	trendSamples = 24
)

// keeps has the tables that keep rows by design, and the most rows of each, by the
// witness's records or by other tables.
var keeps = map[string]func(w *witness, rows map[string]int64) int64{
	// Versions of objects are kept for ever.
	"surehook_objects": func(w *witness, _ map[string]int64) int64 { return int64(len(w.objects)) },
	// Receivers' versions and the states of the application are kept for ever, too: see
	// newest.
	"surehook_dedup_versions": func(_ *witness, rows map[string]int64) int64 { return rows["soak_states"] },
	"soak_states":             func(_ *witness, rows map[string]int64) int64 { return rows["surehook_dedup_versions"] },
	// Ids are never in use again.
	"surehook_subscribers":   func(w *witness, _ map[string]int64) int64 { return w.made["surehook_subscribers"] },
	"surehook_subscriptions": func(w *witness, _ map[string]int64) int64 { return w.made["surehook_subscriptions"] },
	"surehook_heads":         func(_ *witness, rows map[string]int64) int64 { return rows["surehook_subscriptions"] },
	"surehook_turns":         func(_ *witness, rows map[string]int64) int64 { return sender.Lanes * rows["surehook_subscribers"] },
	// They are kept for as long as events once they have ended.
	"surehook_replays": func(w *witness, _ map[string]int64) int64 { return w.made["surehook_replays"] },
}

// waits are the tables of live deliveries, of those that became dead letters or were
// skipped by a resume, and of their unread notices. If the machine is too slow for the
// publishers' rate, they grow up to a bound.
var waits = []string{"surehook_outbox", "surehook_pending", "surehook_waiting", "surehook_leases", "surehook_ended", "surehook_notices"}

// stayed checks the rows that remain by design. All workers have stopped.
func (w *witness) stayed(s *Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, table := range slices.Sorted(maps.Keys(keeps)) {
		if most := keeps[table](w, s.Rows); s.Rows[table] > most {
			w.add("I12", "%s has %d rows, of which %d are by design", table, s.Rows[table], most)
		}
	}
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
		if keeps[table] == nil && end.Rows[table] > start.Rows[table] {
			f.add("I12", "%s had %d rows after the load, %d before", table, end.Rows[table], start.Rows[table])
		}
	}
}

// rising compares the beginning of a load with its end. It tells whether there were
// enough samples for that.
func (f *findings) rising(samples []Sample, reach time.Duration) (told bool) {
	full := slices.IndexFunc(samples, func(s Sample) bool { return s.At > 5*reach/2 })
	if full < 0 || len(samples)-full < trendSamples {
		return false
	}
	third := (len(samples) - full) / 3
	first, last := samples[full:full+third], samples[len(samples)-third:]
	for _, figure := range []struct {
		name string
		of   func(s Sample) float64
		more float64
	}{
		{"bytes of live heap", func(s Sample) float64 { return float64(s.Heap) }, growHeapUnderLoad},
		{"resident bytes", func(s Sample) float64 { return float64(s.Resident) }, growResidentUnder},
		{"goroutines", func(s Sample) float64 { return float64(s.Goroutines) }, growCountUnderLoad},
		{"descriptors", func(s Sample) float64 { return float64(s.Descriptors) }, growCountUnderLoad},
	} {
		a, b := least(first, figure.of), least(last, figure.of)
		if b > a*(1+growUnderLoadShare)+figure.more {
			f.add("I12", "under load the "+figure.name+" rose from %.0f to %.0f, the least of the first and of the last third", a, b)
		}
	}
	// A table whose rows go in time has as many as were made in that time.
	busier := max(1, doneBefore(samples, last, reach)/max(1, doneBefore(samples, first, reach)))
	for table := range last[0].Rows {
		if keeps[table] != nil || strings.HasSuffix(table, "migrations") {
			continue
		}
		more := growRowsUnderLoad
		if slices.Contains(waits, table) {
			more += maxBacklog
		}
		rows := func(s Sample) float64 { return float64(s.Rows[table]) }
		a, b := least(first, rows), least(last, rows)
		if b > a*(1+growUnderLoadShare)*busier+float64(more) {
			f.add("I12", "under load the rows of "+table+" rose from %.0f to %.0f, the least of the first and of the last third, while %.1f times as much was done", a, b, busier)
		}
	}
	return true
}

// doneBefore returns how much work was done while the rows of some samples were made.
func doneBefore(all, some []Sample, reach time.Duration) float64 {
	before := all[0]
	for _, s := range all {
		if s.At <= some[0].At-2*reach {
			before = s
		}
	}
	end := some[len(some)-1]
	return float64(end.Done-before.Done) / (end.At - before.At).Seconds()
}

func least(samples []Sample, of func(s Sample) float64) float64 {
	least := of(samples[0])
	for _, s := range samples {
		least = min(least, of(s))
	}
	return least
}
