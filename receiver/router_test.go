package receiver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

type note struct {
	Text string `json:"text"`
	N    int    `json:"n"`
}

func typedEvent(eventType string, version int64, data any) receivertest.Event {
	ev := newEvent(version)
	ev.Type, ev.Data = eventType, data
	return ev
}

// The exact pattern comes before prefixes, and a longer prefix before a shorter one.
func TestRouterPatterns(t *testing.T) {
	b := onMemory()
	var took string
	on := func(pattern string) receiver.Route[*memory.Tx] {
		return receiver.OnState(pattern, func(_ context.Context, _ *memory.Tx, ev receiver.Typed[note]) error {
			took = pattern
			require.Equal(t, "hello", ev.Data.Text)
			require.JSONEq(t, `{"text":"hello","n":3,"more":true}`, string(ev.Event.Data))
			return nil
		})
	}
	narrow := []receiver.Route[*memory.Tx]{on("sub.created"), on("sub.*"), on("sub.plan.*"), on("sub.plan.up")}
	for _, c := range []struct {
		routes []receiver.Route[*memory.Tx]
		want   map[string]string
	}{
		{narrow, map[string]string{
			"sub.created": "sub.created", "sub.gone": "sub.*", "sub.created.again": "sub.*", "sub.plan": "sub.*",
			"sub.plan.up": "sub.plan.up", "sub.plan.down": "sub.plan.*", "sub.plan.up.twice": "sub.plan.*",
			"sub": "", "subs.created": "", "x.sub.created": "",
		}},
		{append(narrow, on("*")), map[string]string{"sub.gone": "sub.*", "sub": "*", "x.sub.created": "*"}},
	} {
		routes, err := receiver.Router(c.routes...)
		require.NoError(t, err)
		h := b.receiver(t, nil).Handler(routes)
		for eventType, want := range c.want {
			took = ""
			ev := typedEvent(eventType, 1, map[string]any{"text": "hello", "n": 3, "more": true})
			ev.Object.ID = fmt.Sprint(len(c.routes), eventType)
			a := newSender(t).Request(ev).Serve(h)
			require.Equal(t, 200, a.Status, eventType)
			require.Equal(t, want, took, eventType)
			require.Equal(t, want == "", a.Result == receiver.Ignored, eventType)
		}
	}
}

func TestRouterReportsEverything(t *testing.T) {
	h := func(context.Context, *sql.Tx, receiver.Typed[note]) error { return nil }
	_, err := receiver.NewRouter([]receiver.Route[*sql.Tx]{
		receiver.OnState("a.b", h), receiver.OnState("a.b", h),
		receiver.OnState("a*", h), receiver.OnState(".*", h), receiver.OnState("*.b", h), receiver.OnState("", h),
		receiver.OnState("webhook.challenge", h),
		receiver.OnState[*sql.Tx, note]("c", nil),
		receiver.OnThin[*sql.Tx, note]("d", nil, nil),
		{},
	}, &receiver.RouterConfig{Unknown: 7})
	for _, problem := range []string{
		`two routes have the pattern "a.b"`, `"a*"`, `".*"`, `"*.b"`, `pattern "": it must be`,
		"answered by the receiver itself", `"c" has no function`, `"d" has no function`, "Unknown is 7",
	} {
		require.ErrorContains(t, err, problem)
	}
	_, err = receiver.Router[*sql.Tx]()
	require.ErrorContains(t, err, "no routes")
}

// An ignored event leaves neither a marker nor a version. A version would make an older,
// wanted event stale.
func TestUnknownTypes(t *testing.T) {
	b, db := onSQLite(t)
	var hooked []string
	log := new(buffer)
	rcv := b.receiver(t, &receiver.Config{Logger: log.logger(), Hooks: receiver.Hooks{
		Ignored: func(_ context.Context, ev receiver.Event) {
			require.Zero(t, db.Stats().InUse)
			hooked = append(hooked, "ignored "+ev.Type)
		},
		Failed: func(_ context.Context, _ receiver.Event, err *receiver.Error) {
			require.ErrorIs(t, err, receiver.ErrUnknownType)
			hooked = append(hooked, string(err.Reason))
		},
		DeadLettered: func(_ context.Context, ev receiver.Event, _ error) { hooked = append(hooked, "kept "+ev.Type) },
	}})
	route := receiver.OnState("sub.updated", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[note]) error {
		return b.effect(ctx, tx, ev.Event)
	})
	handler := func(unknown receiver.Unknown) http.Handler {
		routes, err := receiver.NewRouter([]receiver.Route[*sql.Tx]{route}, &receiver.RouterConfig{Unknown: unknown})
		require.NoError(t, err)
		return rcv.Handler(routes)
	}
	snd := newSender(t)
	other := typedEvent("sub.renamed", 8, nil)
	require.Equal(t, receiver.Ignored, snd.Request(other).Serve(handler(receiver.IgnoreUnknown)).Result)
	require.Equal(t, state{}, b.state(t, other))
	require.Regexp(t, `level=INFO msg="receiver: no route matches this type.* event_type=sub.renamed`, log.String())
	require.Equal(t, receiver.Ignored, snd.Request(typedEvent("sub.renamed", 9, nil)).Serve(handler(receiver.IgnoreUnknown)).Result)
	require.Equal(t, 1, strings.Count(log.String(), "no route matches this type"), "said once")
	hooked = hooked[:1]
	a := snd.Request(other).Serve(handler(receiver.RefuseUnknown))
	require.Equal(t, 501, a.Status)
	require.Equal(t, state{}, b.state(t, other))
	require.Equal(t, receiver.Applied, snd.Request(typedEvent("sub.updated", 7, nil)).Serve(handler(receiver.IgnoreUnknown)).Result)
	require.Equal(t, receiver.DeadLettered, snd.Request(other).Serve(handler(receiver.KeepUnknown)).Result)
	require.Equal(t, state{Marker: true, Version: 7, DeadLetter: true}, b.state(t, other))
	require.Equal(t, []string{"ignored sub.renamed", "unknown_type", "kept sub.renamed"}, hooked)

	// By hand, too, only a router that knows the event applies it.
	routes, err := receiver.Router(route)
	require.NoError(t, err)
	res, err := rcv.ApplyDeadLetter(t.Context(), "default", other.ID, routes)
	require.NoError(t, err)
	require.Equal(t, receiver.Ignored, res)
	require.True(t, b.state(t, other).DeadLetter)
	res, err = rcv.ApplyDeadLetter(t.Context(), "default", other.ID, receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 8}, b.state(t, other))
}

type picky struct{}

func (*picky) UnmarshalJSON(b []byte) error { return errors.New("refused: " + string(b)) }

// An event whose data does not fit is set aside, and no value of the data gets into the
// log.
func TestTypedData(t *testing.T) {
	for _, c := range []struct {
		data    any
		lenient string
		strict  string
	}{
		{map[string]any{"text": "a", "n": 1}, "", ""},
		{map[string]any{"text": "a", "extra": 1}, "", `it has the field "extra"`},
		{map[string]any{"n": "s3cret"}, `its field "n" is a JSON string and must be a int`, `its field "n"`},
		{map[string]any{"text": 31337}, `its field "text" is a JSON number and must be a string`, `its field "text"`},
		{[]string{"s3cret"}, "it is a JSON array", "it is a JSON array"},
		{nil, "", "the event has no data"},
	} {
		for _, strict := range []bool{false, true} {
			b, log := onMemory(), new(buffer)
			routes, err := receiver.NewRouter([]receiver.Route[*memory.Tx]{
				receiver.OnState("*", func(ctx context.Context, tx *memory.Tx, ev receiver.Typed[note]) error {
					return b.effect(ctx, tx, ev.Event)
				}),
			}, &receiver.RouterConfig{Strict: strict})
			require.NoError(t, err)
			ev := typedEvent("a", 1, c.data)
			a := newSender(t).Request(ev).Serve(b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(routes))
			want := c.lenient
			if strict {
				want = c.strict
			}
			if want == "" {
				require.Equal(t, receiver.Applied, a.Result, "%v %v", c.data, strict)
				continue
			}
			require.Equal(t, receiver.DeadLettered, a.Result, "%v %v", c.data, strict)
			require.Equal(t, state{Marker: true, DeadLetter: true}, b.state(t, ev))
			require.Contains(t, strings.ReplaceAll(log.String(), `\"`, `"`), want)
			require.NotContains(t, log.String(), "s3cret")
			require.NotContains(t, log.String(), "31337")
		}
	}
	b, log := onMemory(), new(buffer)
	var cause error
	routes, err := receiver.Router(receiver.OnState("*", func(context.Context, *memory.Tx, receiver.Typed[picky]) error { return nil }))
	require.NoError(t, err)
	h := b.receiver(t, &receiver.Config{Logger: log.logger(), Hooks: receiver.Hooks{
		DeadLettered: func(_ context.Context, _ receiver.Event, err error) { cause = err },
	}}).Handler(routes)
	require.Equal(t, receiver.DeadLettered, newSender(t).Request(typedEvent("a", 1, "s3cret")).Serve(h).Result)
	require.ErrorContains(t, errors.Unwrap(errors.Unwrap(cause)), "s3cret", "the cause is there for who looks for it")
	require.NotContains(t, log.String(), "s3cret")

	routes, err = receiver.Router(receiver.OnState("*", func(_ context.Context, _ *memory.Tx, ev receiver.Typed[json.RawMessage]) error {
		require.Equal(t, `"raw"`, string(ev.Data))
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, newSender(t).Request(typedEvent("a", 1, "raw")).Serve(b.receiver(t, nil).Handler(routes)).Result)
}

// Thin events of a router keep the promises of Thin: no transaction is open during the
// fetch, the fetched version counts, an older version leaves no marker, a deleted object
// stays deleted, and a known version is not fetched.
func TestOnThin(t *testing.T) {
	b, db := onSQLite(t)
	var (
		source  receiver.Snapshot[note]
		fail    error
		fetched int
		stored  []receiver.Snapshot[note]
		reason  receiver.Reason
	)
	state1 := receiver.OnThin("subscriber.*",
		func(_ context.Context, ev receiver.Event) (receiver.Snapshot[note], error) {
			fetched++
			require.Zero(t, db.Stats().InUse, "a transaction is open")
			return source, fail
		},
		func(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[note]) error {
			stored = append(stored, now)
			return b.effect(ctx, tx, ev)
		})
	routes, err := receiver.Router(state1, receiver.OnState("invoice.paid", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[note]) error {
		return b.effect(ctx, tx, ev.Event)
	}))
	require.NoError(t, err)
	rcv := b.receiver(t, &receiver.Config{Hooks: receiver.Hooks{
		Failed: func(_ context.Context, _ receiver.Event, err *receiver.Error) { reason = err.Reason },
	}})
	h := rcv.Handler(routes)
	snd := newSender(t)
	ev5 := newEvent(5)

	source = receiver.Snapshot[note]{Version: 4}
	require.Equal(t, 503, snd.Request(ev5).Serve(h).Status)
	require.Equal(t, receiver.ReasonLagging, reason)
	require.Zero(t, b.rows(t), "a replica that lags leaves no marker")
	fail = errors.New("away")
	require.Equal(t, 503, snd.Request(ev5).Serve(h).Status)
	require.Equal(t, receiver.ReasonFetch, reason)
	require.Zero(t, b.rows(t))

	fail, source = nil, receiver.Snapshot[note]{Version: 8, State: note{Text: "new"}}
	require.Equal(t, receiver.Applied, snd.Request(ev5).Serve(h).Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 8}, b.state(t, ev5))
	fetched = 0
	require.Equal(t, receiver.Duplicate, snd.Request(ev5).Serve(h).Result)
	require.Equal(t, receiver.Stale, snd.Request(newEvent(8)).Serve(h).Result)
	require.Zero(t, fetched)

	source = receiver.Snapshot[note]{Gone: true, Version: 77, State: note{Text: "left over"}}
	gone := newEvent(9)
	require.Equal(t, receiver.Applied, snd.Request(gone).Serve(h).Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 9}, b.state(t, gone))
	require.Equal(t, []receiver.Snapshot[note]{{Version: 8, State: note{Text: "new"}}, {Version: 9, Gone: true}}, stored)

	thick := typedEvent("invoice.paid", 1, nil)
	thick.Object.Type = "invoice"
	require.Equal(t, receiver.Applied, snd.Request(thick).Serve(h).Result)

	// An event that was set aside is fetched again when it is applied by hand.
	fail = receiver.Permanent(errors.New("no such subscriber"))
	last := newEvent(10)
	require.Equal(t, receiver.DeadLettered, snd.Request(last).Serve(h).Result)
	require.Equal(t, state{Marker: true, Version: 9, DeadLetter: true}, b.state(t, last))
	fail, source = nil, receiver.Snapshot[note]{Version: 12, State: note{Text: "mended"}}
	res, err := rcv.ApplyDeadLetter(t.Context(), "default", last.ID, routes)
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 12}, b.state(t, last))
}

// A thin event that is overtaken during the fetch is stale.
func TestOnThinOvertaken(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, nil)
	routes, err := receiver.Router(receiver.OnThin("*",
		func(context.Context, receiver.Event) (int2, error) {
			require.Equal(t, receiver.Applied, newSender(t).Request(newEvent(6)).Serve(rcv.Handler(receiver.State(b.effect))).Result)
			return int2{Version: 5}, nil
		},
		func(context.Context, *sql.Tx, receiver.Event, int2) error { panic("must not be called") },
	))
	require.NoError(t, err)
	ev := newEvent(5)
	require.Equal(t, receiver.Stale, newSender(t).Request(ev).Serve(rcv.Handler(routes)).Result)
	require.Equal(t, state{Marker: true, Version: 6}, b.state(t, ev))
}
