package postgres_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// owners makes subscribers with secrets and a number of subscriptions each. Their
// endpoints are for an UnguardedTransport.
func owners(t *testing.T, s *pgxStore, n, each int) {
	t.Helper()
	keys, err := replayKeys()
	require.NoError(t, err)
	reg, err := sender.NewRegistry(s, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	for i := range n {
		_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: subscriberID(i)})
		require.NoError(t, err)
		for range each {
			_, err = reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: subscriberID(i), URL: "http://127.0.0.1:1/", EventTypes: []string{"subscriber.*"}})
			require.NoError(t, err)
		}
	}
}

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

// A claim's result takes no more memory than its bound, and all deliveries of an event
// share its body.
func TestMemoryOfAClaim(t *testing.T) {
	withoutRace(t, "the race detector multiplies memory")
	const subscriptions, size = 20, 256 << 10
	for name, c := range map[string]struct {
		subscriber func(i int) string
		events     int
		least      int // claims
	}{
		"an event for each": {subscriberID, 600, 200},
		"one for all":       {func(int) string { return "" }, 30, 30 * subscriptions},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			register(t, s, subscriptions, 1, sender.Settings{})
			for i := range c.events {
				require.NoError(t, publishInTx(t.Context(), s, largeDraft(c.subscriber(i%subscriptions), size)))
			}
			b := batchOf(nil, 1024)
			b.Claim.Bytes = 64 << 20
			before := live()
			_, claims, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 1024, Deliveries: 2048}, b)
			require.NoError(t, err)
			after := live()
			require.GreaterOrEqual(t, len(claims.Claimed), c.least)
			for _, cl := range claims.Claimed {
				require.Greater(t, len(cl.Body), size)
			}
			t.Logf("%d KiB", (int64(after)-int64(before))>>10)
			require.Less(t, int64(after)-int64(before), int64(80<<20), "bytes of %d claims", len(claims.Claimed))
		})
	}
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
	withoutRace(t, "the race detector multiplies memory")
	const subscriptions, size = 20, 1 << 20
	for name, c := range map[string]struct {
		subscriber         func(i int) string
		events, deliveries int
	}{
		"an event for each": {subscriberID, 300, 300},
		"one for all":       {func(int) string { return "" }, 20, 20 * subscriptions},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			s := p.store(t)
			owners(t, s, subscriptions, 1)
			for i := range c.events {
				require.NoError(t, publishInTx(t.Context(), s, largeDraft(c.subscriber(i%subscriptions), size-1024)))
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
			p.settled(t)
			most := int64(endpoint.most.Load()) - int64(before)
			t.Logf("at most %d MiB", most>>20)
			require.Less(t, most, int64(200<<20))
		})
	}
}
