package main

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A request waits for a place, and for the database, for a time. One that gets a place late has
// what is left of it.
func TestAsking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(3) // one of them is left to others
		begun, began := make(chan struct{}, 3), time.Now()
		ask := func(ctx context.Context) <-chan error {
			answer := make(chan error, 1)
			go func() {
				answer <- a.do(ctx, func(ctx context.Context) error {
					begun <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				})
			}()
			synctest.Wait()
			return answer
		}
		hangs, leaves, finds := ask(t.Context()), ask(t.Context()), make(chan error, 1)
		require.Len(t, begun, 2)
		gone, leave := context.WithCancel(t.Context())
		waits := ask(gone)
		require.Len(t, begun, 2, "all places are taken")
		leave()
		require.ErrorIs(t, <-waits, context.Canceled)

		time.Sleep(askTime / 2)
		late := ask(t.Context())
		for _, answer := range []<-chan error{hangs, leaves} {
			require.Equal(t, http.StatusServiceUnavailable, refusal(<-answer).Status)
		}
		require.Equal(t, askTime, time.Since(began))
		synctest.Wait()
		require.Len(t, begun, 3, "there is a place")
		require.Equal(t, http.StatusServiceUnavailable, refusal(<-late).Status)
		require.Equal(t, askTime+askTime/2, time.Since(began))

		for range cap(a) {
			a <- struct{}{}
		}
		go func() { finds <- a.do(t.Context(), func(context.Context) error { return nil }) }()
		p := refusal(<-finds)
		require.Equal(t, http.StatusServiceUnavailable, p.Status)
		require.Contains(t, p.Detail, "more requests wait")
		require.NotEmpty(t, p.GetHeaders().Get("Retry-After"))
		<-a
		require.NoError(t, a.do(t.Context(), func(context.Context) error { return nil }))
	})
}
