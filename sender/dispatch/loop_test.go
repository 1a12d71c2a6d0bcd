package dispatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
