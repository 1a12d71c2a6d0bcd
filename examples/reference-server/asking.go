package main

import (
	"context"
	"errors"
	"time"
)

// askTime is how long a request waits for a place and for the database. Then it is answered
// with 503: a client that hears nothing asks again, and adds to what waits.
const askTime = 15 * time.Second

// asking bounds the requests that ask the database at a time, in this process. The others wait
// before it, and not for its connections: one of those is left to health checks, the console
// and the feed, whatever the requests wait for.
type asking chan struct{}

func newAsking(connections int) asking { return make(asking, max(1, connections-1)) }

// do has a request's part in the database done in its turn.
func (a asking) do(ctx context.Context, part func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	select {
	case a <- struct{}{}:
		defer func() { <-a }()
		return part(ctx)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return unavailable("more requests wait for the database than it answers just now: try again", ctx.Err())
	}
}
