package dispatch_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

// A Loop sees in time that attempts hang, as Run does, and gives their places to others. No
// round leads back to itself.
func TestLoopSeesHangingAttempts(t *testing.T) {
	b := bedtest.New(t)
	steps := &stepsStore{Store: b.Store}
	now := time.Now()
	cfg := dispatch.Config{UnguardedTransport: bedtest.TransportFunc(nil), Slots: 4, MaxIdle: 20 * time.Second} // one place for new endpoints
	l, err := dispatch.NewLoop(steps, b.Keys, &cfg, func() time.Time { return now })
	require.NoError(t, err)
	var begun []time.Time
	round := func() {
		l.Step(t.Context())
		for p := l.Begin(); p != nil; p = l.Begin() {
			begun = append(begun, now) // and it is never answered
		}
	}
	for _, to := range []string{"sub_a", "sub_b"} {
		b.Subscribe(to, "http://endpoint/")
		b.Publish(to)
	}
	began := now
	round()
	require.Len(t, begun, 1)
	for rounds := 0; len(begun) < 2 && rounds < 100; rounds++ {
		now = l.Next()
		round()
	}
	require.Len(t, begun, 2)
	require.LessOrEqual(t, begun[1].Sub(began), 1100*time.Millisecond, "Policy.FastAnswer, and the distance of two scans")
}

// A Loop that was stopped tries soon again what the store has refused, and has not Stopped
// before all is recorded and the figures are stored.
func TestStoppedLoopTriesAgain(t *testing.T) {
	b := bedtest.New(t)
	store := &brokenStore{Store: b.Store}
	steps := &stepsStore{Store: store}
	now := time.Now()
	l, err := dispatch.NewLoop(steps, b.Keys, &dispatch.Config{UnguardedTransport: bedtest.TransportFunc(nil)}, func() time.Time { return now })
	require.NoError(t, err)
	b.Subscribe("sub_a", "http://endpoint/")
	b.Publish("sub_a")
	l.Step(t.Context())
	p := l.Begin()
	require.NotNil(t, p)
	p.End(&http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil)

	now = now.Add(time.Millisecond)
	l.Stop()
	require.Equal(t, now, l.Next())
	store.failRecords.Store(1)
	store.failSweeps.Store(1)
	for range 2 {
		l.Step(t.Context())
		require.Equal(t, now.Add(50*time.Millisecond), l.Next())
		require.False(t, l.Stopped())
		now = l.Next()
	}
	l.Step(t.Context())
	require.True(t, l.Stopped())
	require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
	_, _, swept, _ := steps.noted()
	require.Equal(t, 2, swept)
}
