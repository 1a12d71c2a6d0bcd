package receiver_test

import (
	"context"
	"database/sql"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
)

type traceKey struct{}

// Each request calls the start hook and exactly one other, outside of any
// transaction, with the start hook's context.
func TestHooks(t *testing.T) {
	for _, panics := range []bool{false, true} {
		b, db := onSQLite(t)
		var calls []string
		called := func(ctx context.Context, name string) {
			require.Zero(t, db.Stats().InUse, "called inside the transaction")
			if !panics {
				require.Equal(t, "trace", ctx.Value(traceKey{}))
			}
			calls = append(calls, name)
			if panics {
				panic(name)
			}
		}
		hook := func(name string) func(context.Context, receiver.Event) {
			return func(ctx context.Context, _ receiver.Event) { called(ctx, name) }
		}
		log := new(buffer)
		rcv := b.receiver(t, &receiver.Config{Logger: log.logger(), Hooks: receiver.Hooks{
			Start: func(ctx context.Context, h http.Header) context.Context {
				require.NotEmpty(t, h.Get("Webhook-Id"))
				if panics {
					panic("start")
				}
				return context.WithValue(ctx, traceKey{}, "trace")
			},
			Applied:      hook("applied"),
			Duplicate:    hook("duplicate"),
			Stale:        hook("stale"),
			DeadLettered: func(ctx context.Context, _ receiver.Event, _ error) { called(ctx, "dead_lettered") },
			Rejected:     func(ctx context.Context, err *receiver.Error) { called(ctx, "rejected "+string(err.Reason)) },
			Failed: func(ctx context.Context, _ receiver.Event, err *receiver.Error) {
				called(ctx, "failed "+string(err.Reason))
			},
		}})
		h := rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
			if !panics {
				require.Equal(t, "trace", ctx.Value(traceKey{}))
			}
			return b.effect(ctx, tx, ev)
		}))
		snd := newSender(t)
		ev := newEvent(2)
		snd.Request(ev).Serve(h)
		snd.Request(ev).Serve(h)
		snd.Request(newEvent(1)).Serve(h)
		snd.Request(ev).Tampered().Serve(h)
		a := snd.Request(newEvent(3)).Serve(rcv.Handler(receiver.State(hopeless(b.effect))))
		require.Equal(t, receiver.DeadLettered, a.Result)
		a = snd.Request(newEvent(3)).Serve(rcv.Handler(receiver.State(func(context.Context, *sql.Tx, receiver.Event) error { return errLook })))
		require.Equal(t, 500, a.Status)
		require.Equal(t, []string{"applied", "duplicate", "stale", "rejected signature", "dead_lettered", "failed apply"}, calls)
		if panics {
			require.Equal(t, 12, strings.Count(log.String(), "a hook panicked"))
		}
	}
}

func TestStartHookWithoutContext(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, &receiver.Config{Hooks: receiver.Hooks{
		Start: func(context.Context, http.Header) context.Context { return nil },
	}})
	require.Equal(t, receiver.Applied, newSender(t).Request(newEvent(1)).Serve(rcv.Handler(receiver.State(b.effect))).Result)
}

// Every hook of each set is called, whatever the hook before it does.
func TestJoinHooks(t *testing.T) {
	for i := range reflect.TypeFor[receiver.Hooks]().NumField() {
		name := reflect.TypeFor[receiver.Hooks]().Field(i).Name
		var calls []string
		hooks := func(of string, panics bool) (h receiver.Hooks) {
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
		f := reflect.ValueOf(receiver.JoinHooks(hooks("a", false), receiver.Hooks{}, hooks("b", true), hooks("c", false))).Field(i)
		require.False(t, f.IsNil(), "%s is not joined", name)
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for j := 1; j < f.Type().NumIn(); j++ {
			args = append(args, reflect.Zero(f.Type().In(j)))
		}
		require.Panics(t, func() { f.Call(args) }, name)
		require.Equal(t, []string{"a", "b", "c"}, calls, name)
	}
	require.Zero(t, receiver.JoinHooks())
}
