package soak

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Sample has the resources of a process and its databases at one time. Memory is in
// bytes.
type Sample struct {
	At          time.Duration    `json:"at_ns"` // since the load began
	Heap        uint64           `json:"heap"`  // live, as the last collection found it
	Resident    uint64           `json:"resident"`
	Goroutines  int              `json:"goroutines"`
	Descriptors int              `json:"descriptors"` // 0 where /proc is not
	Rows        map[string]int64 `json:"rows"`        // by table
	Done        int64            `json:"done"`        // events and posts so far
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
			s.Rows[table] += n // all names differ, except surehook_migrations
		}
	}
	s.process()
	return s, nil
}

// process fills in the figures of the process.
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

// settle collects garbage until the number of goroutines and descriptors no longer
// falls: after a close they take a few scheduler rounds to end.
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
