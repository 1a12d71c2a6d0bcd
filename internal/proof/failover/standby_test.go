package failover_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// eitherOf returns a connection string for two servers, which leads to the server that
// accepts writes.
func eitherOf(t *testing.T, servers ...*pgtest.Server) string {
	t.Helper()
	var hosts, ports string
	for i, s := range servers {
		u, err := url.Parse(s.DSN())
		require.NoError(t, err)
		if i > 0 {
			hosts, ports = hosts+",", ports+","
		}
		hosts, ports = hosts+u.Query().Get("host"), ports+u.Query().Get("port")
	}
	return pgtest.With(servers[0].DSN(), "host", hosts, "port", ports, "target_session_attrs", "read-write")
}

// follower starts a standby of a server, and returns when it follows.
func follower(t *testing.T, s *pgtest.Server, state string) *pgtest.Server {
	t.Helper()
	standby := serve(t, func() (*pgtest.Server, error) { return s.Standby(pgtest.Options{Durable: true}) })
	pool := connect(t, s.DSN())
	if state == "sync" {
		run(t, pool, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
		run(t, pool, `SELECT pg_reload_conf()`)
	}
	await(t, "the standby to follow", func() bool {
		return read[int](t, pool, `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1`, state) == 1
	})
	return standby
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// While a service is at work, its primary is killed and the synchronous standby takes
// over. Each event whose commit was acknowledged is delivered, and no version is given
// twice.
func TestFailoverToASynchronousStandby(t *testing.T) {
	t.Parallel()
	first, primary := begun(t)
	w := first.world
	standby := follower(t, primary, "sync")
	s := newService(t, w, eitherOf(t, primary, standby))
	s.subscribe("r")

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ran := make(chan error, 1)
	d := s.dispatcher()
	go func() { ran <- d.Run(ctx) }()
	told := map[string]bool{}
	produce := func(n int) {
		for i := range n {
			one, end := context.WithTimeout(ctx, 5*time.Second)
			ref, err := s.pub.Publish(one, change(fmt.Sprint(i%7)))
			end()
			if err == nil {
				told[ref.ID] = true
			} else {
				time.Sleep(20 * time.Millisecond) // as a producer does between its tries
			}
		}
	}
	produce(100)
	killed := make(chan error, 1)
	go func() { killed <- primary.Kill() }()
	produce(20)
	require.NoError(t, <-killed)
	run(t, connect(t, standby.DSN()), `SELECT pg_promote()`)
	for before := len(told); len(told) < before+100; {
		produce(10)
	}

	await(t, "all that was published to be delivered", func() bool {
		got := map[string]bool{}
		for _, id := range w.ids("r") {
			got[id] = true
		}
		for id := range told {
			if !got[id] {
				return false
			}
		}
		return true
	})
	stop()
	require.NoError(t, <-ran)
	type version struct {
		object string
		number int64
	}
	given := map[version]string{}
	for _, p := range w.all("r") {
		v := version{p.Object.ID, p.Version}
		if id, ok := given[v]; ok {
			require.Equal(t, id, p.ID, "who has version %d of %s", v.number, v.object)
		}
		given[v] = p.ID
	}
}

// The standby lacks the primary's last commits. Its events are delivered, results from
// before the failover change nothing, and the ids and versions of lost events are not
// given out again.
func TestFailoverToAnAsynchronousStandby(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	before, primary := begun(t)
	w := before.world
	before.subscribe("r")
	before.publish("a")
	before.drain()
	kept := before.publish("a")
	_, _, err := before.store.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.NoError(t, err)
	standby := follower(t, primary, "async")
	other := connect(t, standby.DSN())
	cutOff(t, primary, standby)

	lost := before.publish("a")
	late := before.claim()
	require.Len(t, late, 1)
	require.NoError(t, primary.Kill())
	run(t, other, `SELECT pg_promote()`)

	after := newService(t, w, standby.DSN())
	_, err = after.store.Restored(ctx, nil)
	require.NoError(t, err)
	claimed := after.claim()
	require.Len(t, claimed, 1)
	require.Equal(t, late[0].Key, claimed[0].Key, "the standby does not know that it was claimed")
	require.Equal(t, late[0].Number, claimed[0].Number)

	result := func(c dispatch.Claimed) dispatch.Outcome {
		t.Helper()
		_, in, err := after.store.Step(ctx, dispatch.ExpandParams{}, dispatch.Batch{Decide: dispatch.Policy{}.Decide, Results: []dispatch.Result{{
			Key: c.Key, Token: c.Token, Number: c.Number, StartedAt: c.At, Duration: time.Millisecond, StatusCode: 204,
		}}})
		require.NoError(t, err)
		require.Len(t, in.Recorded, 1)
		return in.Recorded[0]
	}
	require.True(t, result(late[0]).Lost, "of the process that had claimed it on the old primary")
	require.Equal(t, 1, read[int](t, after.pool, `SELECT count(*) FROM surehook_leases`))
	require.False(t, result(claimed[0]).Lost)

	again := after.publish("a")
	require.Greater(t, again.Version, lost.Version)
	_, err = after.history.Event(ctx, lost.ID)
	require.ErrorIs(t, err, sender.ErrNotFound)
	_, err = after.history.Event(ctx, kept.ID)
	require.NoError(t, err)
	after.drain()
	require.Equal(t, again.ID, w.ids("r")[1])
}
