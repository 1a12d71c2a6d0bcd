package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// SparseLatency is a Latency that keeps only the buckets that are not empty, so that there
// can be many of them: most subscriptions use a few. The zero value is empty. A copy shares
// its buckets: Add and Merge to one of the two only, or Clone it.
type SparseLatency struct {
	buckets []sparseBucket // by index
	longest time.Duration
}

type sparseBucket struct {
	index int
	n     int64
}

// Add counts a duration. A negative one counts as none.
func (l *SparseLatency) Add(d time.Duration) {
	d = max(d, 0)
	l.count(latencyBucket(d), 1)
	l.longest = max(l.longest, d)
}

// Merge counts what another histogram has counted.
func (l *SparseLatency) Merge(other *SparseLatency) {
	for _, b := range other.buckets {
		l.count(b.index, b.n)
	}
	l.longest = max(l.longest, other.longest)
}

// Clone returns a copy that shares nothing.
func (l *SparseLatency) Clone() SparseLatency {
	return SparseLatency{buckets: slices.Clone(l.buckets), longest: l.longest}
}

// Latency returns the same figures with all buckets.
func (l *SparseLatency) Latency() (all Latency) {
	for _, b := range l.buckets {
		all.buckets[b.index] = b.n
	}
	all.longest = l.longest
	return all
}

// Count is how many durations were added.
func (l *SparseLatency) Count() (n int64) {
	for _, b := range l.buckets {
		n += b.n
	}
	return n
}

// Longest is the longest duration that was added.
func (l *SparseLatency) Longest() time.Duration { return l.longest }

// Quantile is that of the Latency.
func (l *SparseLatency) Quantile(q float64) time.Duration {
	all := l.Latency()
	return all.Quantile(q)
}

// IsZero tells whether nothing was added.
func (l SparseLatency) IsZero() bool { return len(l.buckets) == 0 }

func (l *SparseLatency) count(index int, n int64) {
	at, there := slices.BinarySearchFunc(l.buckets, index, func(b sparseBucket, index int) int { return b.index - index })
	if !there {
		l.buckets = slices.Insert(l.buckets, at, sparseBucket{index: index})
	}
	l.buckets[at].n += n
}

// MarshalJSON writes what Latency writes.
func (l SparseLatency) MarshalJSON() ([]byte, error) {
	out := latencyJSON{Longest: l.longest, Buckets: make([][2]int64, len(l.buckets))}
	for i, b := range l.buckets {
		out.Buckets[i] = [2]int64{int64(b.index), b.n}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what Latency writes.
func (l *SparseLatency) UnmarshalJSON(b []byte) error {
	var in latencyJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*l = SparseLatency{longest: in.Longest, buckets: make([]sparseBucket, 0, len(in.Buckets))}
	for _, bucket := range in.Buckets {
		if bucket[0] < 0 || bucket[0] >= latencyBuckets {
			return fmt.Errorf("%w latency: bucket %d: there are %d", sender.ErrInvalid, bucket[0], latencyBuckets)
		}
		l.count(int(bucket[0]), bucket[1])
	}
	return nil
}
