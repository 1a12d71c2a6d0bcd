package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
)

func TestThin(t *testing.T) {
	t.Parallel()
	b, db := onSQLite(t)
	type sub struct{ name string }
	var (
		source  receiver.Snapshot[sub]
		fail    error
		fetched int
		stored  []receiver.Snapshot[sub]
		reason  receiver.Reason
	)
	hooks := receiver.Hooks{Failed: func(_ context.Context, _ receiver.Event, err *receiver.Error) { reason = err.Reason }}
	rcv := b.receiver(t, &receiver.Config{Hooks: hooks})
	work := receiver.Thin(
		func(ctx context.Context, ev receiver.Event) (receiver.Snapshot[sub], error) {
			fetched++
			require.Zero(t, db.Stats().InUse, "a transaction is open")
			if errors.Is(fail, context.DeadlineExceeded) {
				<-ctx.Done()
				return receiver.Snapshot[sub]{}, ctx.Err()
			}
			if errors.Is(fail, errLook) {
				panic(fail)
			}
			return source, fail
		},
		func(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[sub]) error {
			stored = append(stored, now)
			return b.effect(ctx, tx, ev)
		})
	h := rcv.Handler(work)
	hasty := b.receiver(t, &receiver.Config{Timeout: time.Second, Hooks: hooks}).Handler(work) // it gets to the fetch in that time
	snd := newSender(t)

	ev5 := newEvent(5)
	source = receiver.Snapshot[sub]{Version: 4, State: sub{"old"}}
	a := snd.Request(ev5).Serve(h)
	require.Equal(t, 503, a.Status)
	require.Equal(t, receiver.ReasonLagging, reason)
	require.Equal(t, state{}, b.state(t, ev5), "a replica that lags leaves no marker")

	for _, c := range []struct {
		err    error
		by     http.Handler
		status int
		reason receiver.Reason
	}{
		{errors.New("the source is away"), h, 503, receiver.ReasonFetch},
		{context.DeadlineExceeded, hasty, 503, receiver.ReasonTimeout},
		{errLook, h, 500, receiver.ReasonPanic},
	} {
		fail = c.err
		require.Equal(t, c.status, snd.Request(ev5).Serve(c.by).Status)
		require.Equal(t, c.reason, reason)
		require.Zero(t, b.rows(t))
	}

	fail, source = nil, receiver.Snapshot[sub]{Version: 8, State: sub{"new"}}
	require.Equal(t, receiver.Applied, snd.Request(ev5).Serve(h).Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 8}, b.state(t, ev5), "under the version that was fetched")

	// Every version up to 8 needs no fetch now.
	fetched = 0
	require.Equal(t, receiver.Duplicate, snd.Request(ev5).Serve(h).Result)
	require.Equal(t, receiver.Stale, snd.Request(newEvent(7)).Serve(h).Result)
	ev8 := newEvent(8)
	res, err := rcv.Receive(t.Context(), snd.Request(ev8).Message(), receiver.Thin(
		func(context.Context, receiver.Event) (int2, error) { panic("must not be called") },
		func(context.Context, *sql.Tx, receiver.Event, int2) error { panic("must not be called") },
	))
	require.NoError(t, err)
	require.Equal(t, receiver.Stale, res)
	require.Equal(t, state{Marker: true, Version: 8}, b.state(t, ev8))
	require.Zero(t, fetched)

	source = receiver.Snapshot[sub]{Gone: true, State: sub{"left over"}}
	gone := newEvent(9)
	require.Equal(t, receiver.Applied, snd.Request(gone).Serve(h).Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 9}, b.state(t, gone))

	fail = receiver.Permanent(errHopeless)
	last := newEvent(10)
	require.Equal(t, receiver.DeadLettered, snd.Request(last).Serve(h).Result)
	require.Equal(t, state{Marker: true, Version: 9, DeadLetter: true}, b.state(t, last))

	require.Equal(t, []receiver.Snapshot[sub]{{Version: 8, State: sub{"new"}}, {Version: 9, Gone: true}}, stored)
}

type int2 = receiver.Snapshot[int]

// The version rose while the source was asked: the event is stale.
func TestThinOvertaken(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, nil)
	ev := newEvent(5)
	h := rcv.Handler(receiver.Thin(
		func(context.Context, receiver.Event) (int2, error) {
			require.Equal(t, receiver.Applied, newSender(t).Request(newEvent(6)).Serve(rcv.Handler(receiver.State(b.effect))).Result)
			return int2{Version: 5}, nil
		},
		func(context.Context, *sql.Tx, receiver.Event, int2) error { panic("must not be called") },
	))
	require.Equal(t, receiver.Stale, newSender(t).Request(ev).Serve(h).Result)
	require.Equal(t, state{Marker: true, Version: 6}, b.state(t, ev))
}
