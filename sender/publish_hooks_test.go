package sender_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
)

type traceKey struct{}

const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// A publish is between its hooks, and what PublishStart puts into the context is stored
// with the event, if it is a trace context.
func TestPublishHooks(t *testing.T) {
	for given, want := range map[string]string{trace: trace, trace + "-more": "", "a stranger's header": "", "": ""} {
		b := bedtest.New(t)
		b.Subscribe("sub_a", "http://endpoint/")
		var ends []sender.Published
		hooks := sender.PublishHooks{
			PublishStart: func(ctx context.Context, events []sender.Event) context.Context {
				require.Len(t, events, 1)
				return context.WithValue(ctx, traceKey{}, given)
			},
			PublishEnd: func(ctx context.Context, p *sender.Published) {
				require.Equal(t, given, ctx.Value(traceKey{}))
				ends = append(ends, *p)
			},
		}
		pub, err := sender.NewPublisher[*memory.Tx](b.Store, &sender.PublisherConfig{
			Traceparent: func(ctx context.Context) string { return ctx.Value(traceKey{}).(string) },
			Hooks:       hooks,
		})
		require.NoError(t, err)

		ref, err := pub.Publish(t.Context(), event())
		require.NoError(t, err)
		var inTx sender.Ref
		require.NoError(t, pub.InTx(t.Context(), func(tx *memory.Tx) (err error) {
			inTx, err = pub.PublishTx(t.Context(), tx, event())
			return err
		}))
		_, invalid := pub.Publish(t.Context(), sender.Event{})
		require.ErrorIs(t, invalid, sender.ErrInvalidEvent)

		require.Len(t, ends, 3)
		require.Equal(t, []sender.Ref{ref}, ends[0].Refs)
		require.Equal(t, []sender.Ref{inTx}, ends[1].Refs)
		require.ErrorIs(t, ends[2].Err, sender.ErrInvalidEvent)
		require.Empty(t, ends[2].Refs)
		for _, ref := range []sender.Ref{ref, inTx} {
			e, err := b.Store.Event(t.Context(), ref.ID)
			require.NoError(t, err)
			require.Equal(t, want, e.Traceparent, "given %q", given)
		}
	}
}

func TestJoinPublishHooks(t *testing.T) {
	var calls []string
	hooks := func(name string) sender.PublishHooks {
		return sender.PublishHooks{
			PublishStart: func(ctx context.Context, _ []sender.Event) context.Context {
				before, _ := ctx.Value(traceKey{}).(string)
				calls = append(calls, "start "+before+name)
				return context.WithValue(ctx, traceKey{}, before+name)
			},
			PublishEnd: func(ctx context.Context, _ *sender.Published) {
				calls = append(calls, "end "+name+" of "+ctx.Value(traceKey{}).(string))
				if name == "a" {
					panic(name)
				}
			},
		}
	}
	joined := sender.JoinPublishHooks(hooks("a"), sender.PublishHooks{}, hooks("b"))
	ctx := joined.PublishStart(t.Context(), nil)
	require.Panics(t, func() { joined.PublishEnd(ctx, &sender.Published{}) })
	require.Equal(t, []string{"start a", "start ab", "end a of ab", "end b of ab"}, calls)
	require.Zero(t, sender.JoinPublishHooks())

	panicking := sender.PublishHooks{PublishStart: func(context.Context, []sender.Event) context.Context { panic("a") }}
	joined, calls = sender.JoinPublishHooks(panicking, hooks("b")), nil
	require.Panics(t, func() { joined.PublishStart(t.Context(), nil) })
	require.Equal(t, []string{"start b"}, calls)
}
