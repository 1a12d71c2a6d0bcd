package sqlite_test

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender/dispatch"
)

// heap is the memory of all objects of the process, garbage included.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// live is the memory of the objects that are still in use.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// measuring is an endpoint that is a little slow, and measures the heap.
type measuring struct {
	answers
	most atomic.Uint64
}

func (m *measuring) RoundTrip(r *http.Request) (*http.Response, error) {
	now := heap()
	for most := m.most.Load(); now > most && !m.most.CompareAndSwap(most, now); most = m.most.Load() {
	}
	return m.answers.RoundTrip(r)
}

// A dispatcher's memory is bounded, however large a backlog of large events is.
func TestMemoryOfADispatcher(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // with more, garbage is most of it
	const subscriptions, size = 20, 1 << 20
	for name, c := range map[string]struct {
		everyone           bool
		events, deliveries int
	}{
		"an event for each": {false, 300, 300},
		"one for all":       {true, 20, 20 * subscriptions},
	} {
		if race.Enabled { // it multiplies memory and time: the bound is shown without it
			c.events, c.deliveries = c.events/10, c.deliveries/10
		}
		t.Run(name, func(t *testing.T) {
			db := open(t, path(t), fit)
			s := newStore(t, db, time.Now)
			ids := owners(t, s, subscriptions, 1)
			for i := range c.events {
				to := ""
				if !c.everyone {
					to = ids[i%subscriptions]
				}
				require.NoError(t, publishInTx(t.Context(), s, draft(to, size-1024)))
			}
			keys, err := replayKeys()
			require.NoError(t, err)
			endpoint := &measuring{answers: answers{20 * time.Millisecond}}
			d, err := dispatch.New(s, keys, &dispatch.Config{UnguardedTransport: endpoint, Logger: quiet})
			require.NoError(t, err)
			before := live()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			stats, err := d.RunOnce(ctx)
			require.NoError(t, err)
			require.Equal(t, c.deliveries, stats.Delivered)
			require.Zero(t, count(t, db, `SELECT count(*) FROM surehook_leases`))
			most := int64(endpoint.most.Load()) - int64(before)
			t.Logf("at most %d MiB", most>>20)
			require.Less(t, most, int64(200<<20))
		})
	}
}
