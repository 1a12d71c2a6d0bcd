package history

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/surehook/surehook/sender"
)

// latencyBuckets reach from 1 ms to 35 days.
const latencyBuckets = 128

// Latency is a histogram of durations. Its buckets are the same in all, so that histograms
// can be merged. Bucket 0 holds durations up to 1 ms, and bucket i those above 1 ms ×
// 2^((i−1)/4) and up to 1 ms × 2^(i/4). The last one holds all that are longer. The zero
// value is empty. It is encoded as JSON with the buckets that are not empty.
type Latency struct {
	buckets [latencyBuckets]int64
	longest time.Duration
}

// Add counts a duration. A negative one counts as none.
func (l *Latency) Add(d time.Duration) {
	d = max(d, 0)
	l.buckets[latencyBucket(d)]++
	l.longest = max(l.longest, d)
}

// Merge counts what another histogram has counted.
func (l *Latency) Merge(other *Latency) {
	for i, n := range other.buckets {
		l.buckets[i] += n
	}
	l.longest = max(l.longest, other.longest)
}

// Count is how many durations were added.
func (l *Latency) Count() (n int64) {
	for _, in := range l.buckets {
		n += in
	}
	return n
}

// Longest is the longest duration that was added.
func (l *Latency) Longest() time.Duration { return l.longest }

// Quantile returns a duration that the fraction q of those that were added do not
// exceed. From 1 ms to 35 days it is at most 19 % (2^(1/4)) above the least such
// duration, and it never exceeds the longest. It is 0 if none was added.
func (l *Latency) Quantile(q float64) time.Duration {
	rank := max(1, int64(math.Ceil(min(1, q)*float64(l.Count()))))
	for i, n := range l.buckets {
		if rank -= n; rank <= 0 {
			return min(latencyBounds[i], l.longest)
		}
	}
	return 0
}

// Buckets calls yield with each bucket's upper bound and how many are in it, from
// the shortest on. The last bound is the longest duration that there can be.
func (l *Latency) Buckets(yield func(bound time.Duration, n int64) bool) {
	for i, n := range l.buckets {
		if !yield(latencyBounds[i], n) {
			return
		}
	}
}

// latencyBounds are the longest durations of the buckets.
var latencyBounds = func() (bounds [latencyBuckets]time.Duration) {
	for i := range bounds {
		bounds[i] = time.Duration(float64(time.Millisecond) * math.Exp2(float64(i)/4))
	}
	bounds[latencyBuckets-1] = math.MaxInt64
	return bounds
}()

func latencyBucket(d time.Duration) int {
	i, _ := slices.BinarySearch(latencyBounds[:], d)
	return i
}

type latencyJSON struct {
	Longest time.Duration `json:"longest_ns"`
	Buckets [][2]int64    `json:"buckets"` // each with its index
}

// MarshalJSON implements json.Marshaler.
func (l Latency) MarshalJSON() ([]byte, error) {
	out := latencyJSON{Longest: l.longest, Buckets: [][2]int64{}}
	for i, n := range l.buckets {
		if n != 0 {
			out.Buckets = append(out.Buckets, [2]int64{int64(i), n})
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Latency) UnmarshalJSON(b []byte) error {
	var in latencyJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*l = Latency{longest: in.Longest}
	for _, bucket := range in.Buckets {
		if bucket[0] < 0 || bucket[0] >= latencyBuckets {
			return fmt.Errorf("%w latency: bucket %d: there are %d", sender.ErrInvalid, bucket[0], latencyBuckets)
		}
		l.buckets[bucket[0]] += bucket[1]
	}
	return nil
}
