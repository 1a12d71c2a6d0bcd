package soak

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Report is the result of a soak. It is encoded as JSON.
type Report struct {
	Store string        `json:"store"`
	Seed  uint64        `json:"seed"`
	Load  time.Duration `json:"load_ns"`  // with faults, without the warm-up
	Took  time.Duration `json:"took_ns"`  // in all
	Drain time.Duration `json:"drain_ns"` // from the end of the faults until all was delivered

	// Figures count what happened, warm-up included: publishes, posts, faults.
	Figures map[string]int64 `json:"figures"`

	// Start was taken after the warm-up, End after the load, both once everything
	// was stopped and pruned. Samples were taken under load.
	Start   Sample   `json:"start"`
	End     Sample   `json:"end"`
	Samples []Sample `json:"samples"`

	// Findings are the violations of invariants, and growth.
	Findings []Finding `json:"findings"`
}

// Failed tells whether anything was found.
func (r *Report) Failed() bool { return len(r.Findings) > 0 }

// Finding is a violation of an invariant, or growth.
type Finding struct {
	Invariant string `json:"invariant"` // I1 … I14, or another kind of finding
	Text      string `json:"text"`      // the first one
	Times     int    `json:"times"`
}

// String is one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s, %d times: %s", f.Invariant, f.Times, f.Text)
}

// findings collects them, one for each invariant and kind. It is safe for concurrent use.
type findings struct {
	mu    sync.Mutex
	kinds map[string]*Finding
}

// add notes a finding. Findings of one format are of one kind; only the first of each
// is kept.
func (f *findings) add(invariant, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := f.kinds[invariant+format]
	if kind == nil {
		kind = &Finding{Invariant: invariant, Text: fmt.Sprintf(format, args...)}
		f.kinds[invariant+format] = kind
	}
	kind.Times++
}

func (f *findings) all() []Finding {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []Finding{}
	for _, kind := range f.kinds {
		list = append(list, *kind)
	}
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Text, b.Text))
	})
	return list
}

// figures count. They are safe for concurrent use.
type figures struct {
	mu sync.Mutex
	n  map[string]int64
}

func (f *figures) count(name string) { f.countN(name, 1) }

func (f *figures) countN(name string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n[name] += n
}

func (f *figures) all() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.n)
}
