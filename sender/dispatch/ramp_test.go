package dispatch_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

// measured answers as told, and notes how many attempts are on the wire at once.
type measured struct {
	mu     sync.Mutex
	status int
	took   time.Duration
	wire   int
	most   int // since the last call
	begun  int
}

func (m *measured) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	m.wire++
	m.begun++
	m.most = max(m.most, m.wire)
	status, took := m.status, m.took
	m.mu.Unlock()
	time.Sleep(took)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wire--
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func (m *measured) answer(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = status
}

// over returns the highest number of attempts on the wire, and how many began, in a time.
func (m *measured) over(d time.Duration) (most, begun int) {
	m.mu.Lock()
	m.most, m.begun = m.wire, 0
	m.mu.Unlock()
	time.Sleep(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most, m.begun
}

// An endpoint was down while twenty thousand deliveries piled up. When it is back, it does
// not get all of them at once: the number on the wire at most doubles with each round trip.
// An endpoint that fails again has one attempt at a time.
func TestBacklogIsRampedUpAfterAnOutage(t *testing.T) {
	t.Parallel()
	const backlog, trip = 20_000, 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := &measured{status: 503, took: trip}
		b.Subscribe("sub_a", "http://endpoint/")
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint, Policy: dispatch.Policy{
			Backoff: backoff.Policy{Schedule: backoff.Exponential{Base: 10 * time.Second, Max: 10 * time.Second}, Jitter: backoff.None()},
		}}))
		events := make([]sender.Event, 500)
		for i := range events {
			events[i] = sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: strconv.Itoa(i)}, Subscriber: "sub_a"}
		}
		for range backlog / len(events) {
			_, err := b.Publisher.PublishMany(t.Context(), events)
			require.NoError(t, err)
		}
		for range 3 {
			most, _ := endpoint.over(time.Minute)
			require.Equal(t, 1, most, "while it is down")
		}

		endpoint.answer(200)
		for begun := 0; begun == 0; {
			_, begun = endpoint.over(time.Millisecond)
		}
		time.Sleep(trip / 2) // each trip begins in the middle of one of the periods below
		var ramp []int
		for range 12 {
			most, _ := endpoint.over(trip)
			ramp = append(ramp, most)
		}
		t.Logf("on the wire, by round trip: %v", ramp)
		for i, most := range ramp {
			before := 1
			if i > 0 {
				before = ramp[i-1]
			}
			require.LessOrEqual(t, most, 2*before, "%v", ramp)
			require.GreaterOrEqual(t, most, before, "%v", ramp)
		}
		require.Equal(t, 32, ramp[len(ramp)-1], "what it may earn: %v", ramp)

		endpoint.answer(503)
		_, _ = endpoint.over(2 * trip)
		most, begun := endpoint.over(20 * time.Second)
		require.Equal(t, 1, most, "it failed again")
		require.LessOrEqual(t, begun, 101)

		endpoint.answer(200)
		time.Sleep(5 * time.Minute)
		list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusAwaitingRetry})
		require.NoError(t, err)
		require.Empty(t, list)
		list, _, err = b.History.Deliveries(t.Context(), history.DeliveryQuery{Status: sender.StatusPending})
		require.NoError(t, err)
		require.Empty(t, list)
	})
}
