package postgres_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// answers is an endpoint that is a little slow.
type answers struct{ took time.Duration }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(a.took)
	return &http.Response{StatusCode: http.StatusNoContent, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A run that is stopped at any moment of its work leaves no lease behind, and reports
// no result as lost. Each commit takes 5 ms, so many of the stops come in the middle of
// one.
func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	const stops = 20
	ctx := context.Background()
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(t, err)
	p := newPlace(t)
	s := p.store(t, "commit_delay", "5000", "commit_siblings", "0")
	reg, err := sender.NewRegistry(s, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: subscriberID(0)})
	require.NoError(t, err)
	for range 10 {
		_, err = reg.Subscribe(ctx, sender.NewSubscription{Subscriber: subscriberID(0), URL: "http://127.0.0.1:1/", EventTypes: []string{"subscriber.*"}})
		require.NoError(t, err)
	}
	var recorded, lost atomic.Int64
	// On a busy machine a run may end before it has recorded anything, so there are more of
	// them until one has.
	for n := 0; n < stops || recorded.Load() == 0; n++ {
		publish(t, s, 300, 1)
		d, err := dispatch.New(s, keys, &dispatch.Config{
			UnguardedTransport: answers{2 * time.Millisecond}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) {
				recorded.Add(1)
				if r.Lost {
					lost.Add(1)
				}
			}},
		})
		require.NoError(t, err)
		run, cancel := context.WithTimeout(ctx, 20*time.Millisecond+rand.N(300*time.Millisecond))
		require.NoError(t, d.Run(run))
		cancel()
		require.Zero(t, p.count(t, `SELECT count(*) FROM {}.surehook_leases`))
	}
	require.Zero(t, lost.Load())
	require.Positive(t, recorded.Load())
	require.EqualValues(t, recorded.Load(), p.count(t, `SELECT count(*) FROM {}.surehook_attempts`))
}
