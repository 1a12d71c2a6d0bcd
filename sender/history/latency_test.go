package history_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

func TestLatencyQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var l history.Latency
		var all []time.Duration
		for range 1 + random.IntN(300) {
			d := time.Duration(float64(time.Millisecond) * math.Exp2(31*random.Float64()))
			all = append(all, d)
			l.Add(d)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			exact := all[max(1, int(math.Ceil(q*float64(len(all)))))-1]
			got := l.Quantile(q)
			require.GreaterOrEqual(t, got, exact, "quantile %v of %v", q, all)
			require.LessOrEqual(t, float64(got), 1.1893*float64(exact), "quantile %v of %v", q, all)
		}
		require.Equal(t, all[len(all)-1], l.Quantile(1))
		require.Equal(t, all[len(all)-1], l.Longest())
		require.Equal(t, int64(len(all)), l.Count())
	}
}

func TestLatencyEdges(t *testing.T) {
	var l history.Latency
	require.Zero(t, l.Quantile(0.5))
	l.Add(-time.Second)
	require.Zero(t, l.Quantile(1), "a negative one counts as none")
	l.Add(math.MaxInt64)
	require.Equal(t, time.Duration(math.MaxInt64), l.Quantile(1))
	last, n, before := time.Duration(-1), int64(0), time.Duration(0)
	for bound, in := range l.Buckets {
		require.Greater(t, bound, last)
		before, last, n = last, bound, n+in
		if bound == math.MaxInt64 {
			break
		}
		// A bound belongs to its bucket, and a longer latency does not.
		var at, after history.Latency
		at.Add(bound)
		after.Add(bound + 1)
		for b, in := range at.Buckets {
			require.Equal(t, b == bound, in == 1, "%v", bound)
		}
		for b, in := range after.Buckets {
			require.False(t, in == 1 && b == bound, "%v", bound)
		}
	}
	require.Equal(t, int64(2), n)
	require.Equal(t, time.Duration(math.MaxInt64), last)
	require.Greater(t, before, 35*24*time.Hour)
}

func TestLatencyMergeAndJSON(t *testing.T) {
	var a, b, both history.Latency
	for i := range 100 {
		d := time.Duration(i*i) * time.Millisecond
		both.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	require.Equal(t, both, a)
	text, err := json.Marshal(a)
	require.NoError(t, err)
	require.Less(t, len(text), 700)
	var read history.Latency
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, both, read)
	require.ErrorIs(t, json.Unmarshal([]byte(`{"buckets":[[128,1]]}`), &read), sender.ErrInvalid)
}

// A sparse histogram tells what one with all buckets does.
func TestSparseLatency(t *testing.T) {
	var all history.Latency
	var sparse, half history.SparseLatency
	for i := range 300 {
		d := time.Duration(i*i) * time.Millisecond
		all.Add(d)
		if i%2 == 0 {
			sparse.Add(d)
		} else {
			half.Add(d)
		}
	}
	before := half.Count()
	copied := half.Clone()
	sparse.Merge(&half)
	copied.Add(time.Hour)
	require.Equal(t, before, half.Count(), "neither a merge nor a copy changes it")
	require.Equal(t, all, sparse.Latency())
	require.Equal(t, []any{all.Count(), all.Quantile(0.95), all.Longest()}, []any{sparse.Count(), sparse.Quantile(0.95), sparse.Longest()})
	text, err := json.Marshal(sparse)
	require.NoError(t, err)
	want, err := json.Marshal(all)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(text))
	var read history.SparseLatency
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, all, read.Latency())
	require.ErrorIs(t, json.Unmarshal([]byte(`{"buckets":[[128,1]]}`), &read), sender.ErrInvalid)
}
