package dispatch_test

import (
	"context"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// Every hook of each set is called, whatever the hook before it does.
func TestJoinHooks(t *testing.T) {
	for i := range reflect.TypeFor[dispatch.Hooks]().NumField() {
		name := reflect.TypeFor[dispatch.Hooks]().Field(i).Name
		var calls []string
		hooks := func(of string, panics bool) (h dispatch.Hooks) {
			f := reflect.ValueOf(&h).Elem().Field(i)
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) (out []reflect.Value) {
				calls = append(calls, of)
				if panics {
					panic(name)
				}
				for j := range f.Type().NumOut() {
					out = append(out, reflect.Zero(f.Type().Out(j)))
				}
				return out
			}))
			return h
		}
		joined := dispatch.JoinHooks(hooks("a", false), dispatch.Hooks{}, hooks("b", true), hooks("c", false))
		f := reflect.ValueOf(joined).Field(i)
		require.False(t, f.IsNil(), "%s is not joined", name)
		var args []reflect.Value
		for j := range f.Type().NumIn() {
			args = append(args, reflect.Zero(f.Type().In(j)))
		}
		args[0] = reflect.ValueOf(t.Context())
		require.Panics(t, func() { f.Call(args) }, name)
		require.Equal(t, []string{"a", "b", "c"}, calls, name)
	}
	require.Zero(t, dispatch.JoinHooks())
}

func TestJoinedAttemptStart(t *testing.T) {
	type key string
	start := func(name key) dispatch.Hooks {
		return dispatch.Hooks{AttemptStart: func(ctx context.Context, _ *dispatch.Claimed) context.Context {
			return context.WithValue(ctx, name, ctx.Value(key("a")))
		}}
	}
	ctx := context.WithValue(t.Context(), key("a"), 1)
	got := dispatch.JoinHooks(start("b"), dispatch.Hooks{AttemptStart: func(context.Context, *dispatch.Claimed) context.Context { return nil }}, start("c")).
		AttemptStart(ctx, &dispatch.Claimed{})
	require.Equal(t, []any{1, 1}, []any{got.Value(key("b")), got.Value(key("c"))})
}

// The header traceparent is sent if the operator gives its value, and in no other case.
func TestTraceparent(t *testing.T) {
	const publisher, attempt = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"
	type key struct{}
	for name, c := range map[string]struct {
		of   func(ctx context.Context, c *dispatch.Claimed) string
		want []string
	}{
		"by default":           {nil, nil},
		"the publisher's":      {func(_ context.Context, c *dispatch.Claimed) string { return c.Event.Traceparent }, []string{publisher}},
		"the attempt's":        {func(ctx context.Context, _ *dispatch.Claimed) string { return ctx.Value(key{}).(string) }, []string{attempt}},
		"none":                 {func(context.Context, *dispatch.Claimed) string { return "" }, nil},
		"no trace context":     {func(context.Context, *dispatch.Claimed) string { return "x\r\nX-Other: y" }, nil},
		"a function's mistake": {func(context.Context, *dispatch.Claimed) string { panic("contained") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://endpoint/")
			pub, err := sender.NewPublisher[*memory.Tx](b.Store, &sender.PublisherConfig{Traceparent: func(context.Context) string { return publisher }})
			require.NoError(t, err)
			_, err = pub.Publish(t.Context(), sender.Event{Type: "thing.changed", Subscriber: "sub_a", Object: sender.Object{Type: "thing", ID: "1"}})
			require.NoError(t, err)
			endpoint := sendertest.NewRoundTripper()
			_, err = b.Dispatcher(dispatch.Config{
				UnguardedTransport: endpoint, Traceparent: c.of,
				Hooks: dispatch.Hooks{AttemptStart: func(ctx context.Context, _ *dispatch.Claimed) context.Context {
					return context.WithValue(ctx, key{}, attempt)
				}},
			}).RunOnce(t.Context())
			require.NoError(t, err)
			require.Len(t, endpoint.Requests(), 1)
			header := endpoint.Requests()[0].Header
			require.Equal(t, c.want, header["Traceparent"])
			for _, never := range []string{"Tracestate", "Baggage"} {
				require.NotContains(t, header, never)
			}
		})
	}
}

// Stepped tells of each transaction and of the attempts under way.
func TestStepped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		var steps []dispatch.Stepped
		stop := b.Start(b.Dispatcher(dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(sendertest.Delay(time.Second, sendertest.Status(200))),
			Hooks:              dispatch.Hooks{Stepped: func(_ context.Context, s dispatch.Stepped) { steps = append(steps, s) }},
		}))
		b.Publish("sub_a")
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, stop())
		require.True(t, slices.ContainsFunc(steps, func(s dispatch.Stepped) bool { return s.Claimed == 1 && s.Expanded.Events == 1 }))
		require.True(t, slices.ContainsFunc(steps, func(s dispatch.Stepped) bool {
			return s.Claimed == 0 && s.OnWire[sender.LaneNew]+s.OnWire[sender.LaneProbation] == 1
		}), "a step while the attempt was under way")
		require.True(t, slices.ContainsFunc(steps, func(s dispatch.Stepped) bool { return s.Results == 1 }))
	})
}

// A transport that panics, or ends its goroutine as t.FailNow does, ends the attempt:
// AttemptEnd is called for each AttemptStart.
func TestAttemptEndAfterPanic(t *testing.T) {
	type key struct{}
	for name, breaks := range map[string]func(){"panic": func() { panic("x") }, "end of the goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://endpoint/")
			b.Publish("sub_a")
			b.Publish("sub_a")
			ended := 0
			stats, err := b.Dispatcher(dispatch.Config{
				UnguardedTransport: bedtest.TransportFunc(func(*http.Request) (*http.Response, error) {
					breaks()
					return nil, nil
				}),
				Hooks: dispatch.Hooks{
					AttemptStart: func(ctx context.Context, _ *dispatch.Claimed) context.Context {
						return context.WithValue(ctx, key{}, 1)
					},
					AttemptEnd: func(ctx context.Context, _ *dispatch.Claimed, r *dispatch.Result) {
						require.Equal(t, 1, ctx.Value(key{}))
						require.Equal(t, sender.ClassProtocol, r.Class)
						ended++
					},
				},
			}).RunOnce(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, ended)
			require.Equal(t, 2, stats.Failed)
		})
	}
}

// A hook that ends its goroutine holds up nothing, also after a transport that panics.
func TestAttemptEndEndsItsGoroutine(t *testing.T) {
	for name, transport := range map[string]http.RoundTripper{
		"after an answer": sendertest.NewRoundTripper(),
		"after a panic":   bedtest.TransportFunc(func(*http.Request) (*http.Response, error) { panic("x") }),
	} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://endpoint/")
			b.Publish("sub_a")
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			stats, err := b.Dispatcher(dispatch.Config{
				UnguardedTransport: transport,
				Hooks:              dispatch.Hooks{AttemptEnd: func(context.Context, *dispatch.Claimed, *dispatch.Result) { runtime.Goexit() }},
			}).RunOnce(ctx)
			require.NoError(t, err)
			require.Equal(t, 1, stats.Attempted)
		})
	}
}

// If a start hook returns no context, the attempt keeps its own. The end of one that it
// returns is not the attempt's.
func TestContextOfAStartHook(t *testing.T) {
	for name, hook := range map[string]func(context.Context) context.Context{
		"none": func(context.Context) context.Context { return nil },
		"that has ended": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		},
		"whose time is over": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithDeadline(ctx, time.Unix(1, 0))
			cancel()
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			ep := sendertest.NewEndpoint(t)
			b := bedtest.New(t)
			b.Subscribe("sub_a", ep.URL())
			b.Publish("sub_a")
			d := b.Dispatcher(dispatch.Config{
				Hooks: dispatch.Hooks{AttemptStart: func(ctx context.Context, _ *dispatch.Claimed) context.Context { return hook(ctx) }},
			})
			defer d.CloseIdle()
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
		})
	}
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type span struct{}
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper(sendertest.Status(500), sendertest.Status(200))
		b.Subscribe("sub_a", "http://endpoint/")
		var calls []string
		var seen atomic.Bool
		d := b.Dispatcher(dispatch.Config{
			UnguardedTransport: bedtest.TransportFunc(func(r *http.Request) (*http.Response, error) {
				seen.Store(r.Context().Value(span{}) == "s")
				return endpoint.RoundTrip(r)
			}),
			Hooks: dispatch.Hooks{
				AttemptStart: func(ctx context.Context, c *dispatch.Claimed) context.Context {
					calls = append(calls, "start "+strconv.Itoa(c.Number))
					return context.WithValue(ctx, span{}, "s")
				},
				AttemptEnd: func(ctx context.Context, c *dispatch.Claimed, r *dispatch.Result) {
					calls = append(calls, "end "+strconv.Itoa(r.StatusCode))
					panic("contained")
				},
				Recorded: func(ctx context.Context, r *dispatch.Recorded) {
					calls = append(calls, "recorded "+string(r.Decision.Status)+" "+r.Event.Type+" "+r.Target.Subscriber)
				},
			},
		})
		b.Publish("sub_a")
		for range 2 {
			_, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			time.Sleep(2 * time.Minute)
		}
		require.True(t, seen.Load(), "the attempt's context is the hook's")
		require.Empty(t, cmp.Diff([]string{
			"start 1", "end 500", "recorded awaiting_retry thing.changed sub_a",
			"start 2", "end 200", "recorded delivered thing.changed sub_a",
		}, calls))
	})
}
