package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/dispatch"
)

// A beat does not wait for what else the dispatchers of the process do, although there is
// more of it at a time than there are connections.
func TestBeatsHaveAConnectionOfTheirOwn(t *testing.T) {
	c := newTestCore(t)
	defer c.Open()()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var held []session
	for range dispatcherConns - 1 {
		s, err := c.dispatching().acquire(ctx)
		require.NoError(t, err)
		held = append(held, s)
	}
	next := make(chan error, 1)
	go func() { next <- c.Leave(ctx, dispatch.Presence{Process: 2, Beat: 1}) }()
	require.Eventually(t, func() bool {
		c.sessions.mu.Lock()
		defer c.sessions.mu.Unlock()
		return c.sessions.users == 1+dispatcherConns
	}, 30*time.Second, time.Millisecond)
	_, err := c.Beat(ctx, dispatch.Presence{Process: 1, Beat: 1})
	require.NoError(t, err)
	known, err := c.Present(ctx)
	require.NoError(t, err)
	require.Equal(t, []dispatch.Presence{{Process: 1, Beat: 1}}, known)
	select {
	case err := <-next:
		require.Fail(t, "it took the connection of the beats", err)
	default:
	}
	for _, s := range held {
		s.release(nil)
	}
	require.NoError(t, <-next)
}
