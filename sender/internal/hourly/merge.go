package hourly

import (
	"sync"
	"time"

	"github.com/surehook/surehook/sender/history"
)

const (
	// An hour's rollups are merged this long after its end: a process writes its own within
	// seconds.
	settle = 5 * time.Minute
	// MergeMost is how many hours are merged at once, at most.
	MergeMost = 24
)

// Merge puts rollups of minutes together by the hour. They come, and are returned, oldest
// first.
func Merge(minutes []history.Rollup) (hours []history.Rollup) {
	for i := range minutes {
		hour := minutes[i].Minute.UTC().Truncate(time.Hour)
		if n := len(hours); n == 0 || !hours[n-1].Minute.Equal(hour) {
			hours = append(hours, history.Rollup{Minute: hour})
		}
		hours[len(hours)-1].Merge(&minutes[i])
		hours[len(hours)-1].Minute = hour
	}
	return hours
}

// Merged remembers up to which hour a process has found the rollups merged, so that it looks
// once an hour. The zero value has found none. It is safe for concurrent use.
type Merged struct {
	mu sync.Mutex
	to time.Time
}

// Due returns the time before which hours are to be merged, and whether any may not be.
func (m *Merged) Due(now time.Time) (before time.Time, due bool) {
	before = now.UTC().Add(-settle).Truncate(time.Hour)
	m.mu.Lock()
	defer m.mu.Unlock()
	return before, before.After(m.to)
}

// Found notes that all hours before a time are merged.
func (m *Merged) Found(before time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to = before
}
