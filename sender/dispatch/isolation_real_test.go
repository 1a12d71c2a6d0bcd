package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
)

// unhurried is what an endpoint of this process may take on a busy machine and be fast. One that
// is not would wait behind the hanging ones on probation, as it should.
const unhurried = 5 * time.Second

// The same holds over real sockets: a healthy subscription's events arrive while three
// hundred connections hang. The bound is the attempts' timeout: if healthy attempts waited
// for hanging ones, they would wait that long.
func TestHangingEndpointsOverTheWire(t *testing.T) {
	t.Parallel()
	const hanging, events, timeout = 300, 50, 30 * time.Second
	b := bedtest.New(t)
	hang := sendertest.NewEndpoint(t, sendertest.Hang())
	came := make(chan time.Time, events+20)
	healthy := sendertest.NewEndpoint(t, sendertest.Func(func(http.ResponseWriter, *http.Request) { came <- time.Now() }))
	b.Subscribe("sub_healthy", healthy.URL())
	for i := range hanging {
		b.Subscribe(fmt.Sprintf("sub_%d", i%30), hang.URL())
	}
	b.Start(b.Dispatcher(dispatch.Config{Timeout: timeout, Policy: dispatch.Policy{FastAnswer: unhurried}}))
	for i := range 30 {
		b.Publish(fmt.Sprintf("sub_%d", i))
	}
	_, err := hang.WaitFor(t.Context(), 10)
	require.NoError(t, err)

	var took []time.Duration
	for range events {
		began := time.Now()
		b.Publish("sub_healthy")
		took = append(took, (<-came).Sub(began))
	}
	slices.Sort(took)
	t.Logf("median %v, slowest %v", took[len(took)/2], took[len(took)-1])
	require.Less(t, took[len(took)-1], timeout/2)
	hang.Close() // otherwise the drain would wait for its answers
}

// Beside endpoints of every bad kind over real sockets, all of a healthy
// subscriber's events arrive while the bad ones' attempts are still on the wire.
func TestBadEndpointsOverTheWire(t *testing.T) {
	t.Parallel()
	const bad, each, events = 20, 3, 200
	b := bedtest.New(t)
	refusing := sendertest.NewEndpoint(t)
	refusing.Close()
	var up atomic.Bool
	flapping := sendertest.NewEndpoint(t, sendertest.Func(func(w http.ResponseWriter, r *http.Request) {
		if !up.Swap(!up.Load()) {
			<-r.Context().Done() // it answers and hangs by turns
		}
	}))
	hanging, crawling := sendertest.NewEndpoint(t, sendertest.Hang()), sendertest.NewEndpoint(t, sendertest.Drip(time.Second, 1000))
	urls := []string{hanging.URL(), crawling.URL(), refusing.URL(), flapping.URL()}

	healthy := sendertest.NewEndpoint(t)
	b.Subscribe("sub_healthy", healthy.URL())
	for i := range bad {
		for j, url := range urls {
			b.Subscribe(fmt.Sprintf("sub_%d", i*len(urls)+j), url)
		}
	}
	var ended, delivered atomic.Int64 // of attempts at the endpoints that hang and crawl; of attempts at the healthy one
	stop := b.Start(b.Dispatcher(dispatch.Config{Timeout: 30 * time.Second, DrainTimeout: time.Minute, Policy: dispatch.Policy{FastAnswer: unhurried}, Hooks: dispatch.Hooks{
		AttemptEnd: func(_ context.Context, c *dispatch.Claimed, r *dispatch.Result) {
			switch {
			case c.Target.Subscriber == "sub_healthy" && r.Class == sender.ClassNone:
				delivered.Add(1)
			case c.Target.URL == hanging.URL() || c.Target.URL == crawling.URL():
				ended.Add(1)
			}
		},
	}}))
	for i := range bad * len(urls) {
		for range each {
			b.Publish(fmt.Sprintf("sub_%d", i))
		}
	}
	for _, ep := range []*sendertest.Endpoint{hanging, crawling, flapping} {
		_, err := ep.WaitFor(t.Context(), 1)
		require.NoError(t, err)
	}
	for range events {
		b.Publish("sub_healthy")
	}
	posts, err := healthy.WaitFor(t.Context(), events)
	require.NoError(t, err)
	require.Len(t, posts, events, "each once")
	require.Zero(t, ended.Load(), "the healthy one's all came while the others were on the wire: none waited for the end of one")
	require.NotEmpty(t, flapping.Requests())

	for _, ep := range []*sendertest.Endpoint{hanging, crawling, flapping} {
		ep.Close() // otherwise the drain would wait for their answers
	}
	require.NoError(t, stop())
	require.EqualValues(t, events, delivered.Load())
}
