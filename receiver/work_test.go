package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// A fact counts once, whatever its version, which it neither reads nor moves. A state of
// the same object does not mind.
func TestFact(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		b, _ := onSQLite(t)
		testFact(t, b)
	})
	t.Run("memory", func(t *testing.T) { testFact(t, onMemory()) })
}

func testFact[Tx any](t *testing.T, b bed[Tx]) {
	rcv, snd := b.receiver(t, nil), newSender(t)
	wrapped := rcv.WrapFact(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tx, ev, _ := rcv.From(r.Context())
		require.NoError(t, b.effect(r.Context(), tx, ev))
	}))
	for name, h := range map[string]http.Handler{"handler": rcv.Handler(receiver.Fact(b.effect)), "wrapped": wrapped} {
		stored, overtaken, newer := newEvent(3), newEvent(2), newEvent(9)
		for _, ev := range []*receivertest.Event{&stored, &overtaken, &newer} {
			ev.Object.ID = name
		}
		require.Equal(t, receiver.Applied, snd.Request(stored).Serve(rcv.Handler(receiver.State(b.effect))).Result)
		for _, ev := range []receivertest.Event{newer, overtaken} {
			require.Equal(t, receiver.Applied, snd.Request(ev).Serve(h).Result, name)
			require.Equal(t, receiver.Duplicate, snd.Request(ev).Serve(h).Result, name)
			require.Equal(t, state{Marker: true, Effects: 1, Version: 3}, b.state(t, ev), name)
		}
	}
}

// A fact that is older than markers are kept may have been applied before. It is never
// applied, and never lost.
func TestFactThatIsTooOld(t *testing.T) {
	const retention = 32 * 24 * time.Hour
	for _, c := range []struct {
		age   time.Duration // 0: the event does not say
		fresh bool
	}{{0, true}, {time.Hour, true}, {retention - 301*time.Second, true}, {retention - 299*time.Second, false}, {400 * 24 * time.Hour, false}} {
		b, db := onSQLite(t)
		_, err := db.Exec("CREATE TABLE notes (x)")
		require.NoError(t, err)
		now := time.Now()
		var cause error
		cfg := &receiver.Config{Now: func() time.Time { return now }, Hooks: receiver.Hooks{
			DeadLettered: func(_ context.Context, _ receiver.Event, err error) { cause = err },
		}}
		rcv := b.receiver(t, cfg)
		ev := newEvent(7)
		if ev.OccurredAt = now.Add(-c.age); c.age == 0 {
			ev.OccurredAt = time.Time{}
		}
		event := trusted(string(bodyOf(t, ev)))
		if c.age == 0 {
			event = trusted(`{"id":"` + ev.ID + `","type":"a.b","object":{"type":"subscriber","id":"sub_1"},"version":7}`)
		}
		if !c.fresh { // with a store that keeps no dead letters
			_, err := newReceiver(t, b.inTx, dedup.Store[*sql.Tx](brokenStore[*sql.Tx]{Store: b.store}), cfg).Apply(t.Context(), event, receiver.Fact(b.effect))
			var failure *receiver.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, receiver.ReasonTooOld, failure.Reason)
			require.Equal(t, 500, failure.Status())
			require.True(t, failure.Permanent())
			require.Zero(t, b.rows(t))
		}
		res, err := rcv.Apply(t.Context(), event, receiver.Fact(b.effect))
		require.NoError(t, err)
		require.Equal(t, 1, notes(t, db), "Then is committed with it")
		if c.fresh {
			require.Equal(t, receiver.Applied, res, c.age)
			require.Equal(t, state{Marker: true, Effects: 1}, b.state(t, ev))
			continue
		}
		require.Equal(t, receiver.DeadLettered, res, c.age)
		require.ErrorContains(t, cause, "markers are kept for 768h0m0s")
		require.Equal(t, state{Marker: true, DeadLetter: true}, b.state(t, ev))
		res, err = rcv.Apply(t.Context(), event, receiver.Fact(b.effect))
		require.NoError(t, err)
		require.Equal(t, receiver.Duplicate, res)

		res, err = rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, receiver.Fact(b.effect))
		require.NoError(t, err)
		require.Equal(t, receiver.Applied, res, "by hand, by somebody who knows")
		require.Equal(t, state{Marker: true, Effects: 1}, b.state(t, ev))

		_, err = rcv.Reapply(t.Context(), receiver.ReapplyRequest{Event: ev.ID})
		require.NoError(t, err)
		res, err = rcv.Apply(t.Context(), event, receiver.Fact(b.effect))
		require.NoError(t, err)
		require.Equal(t, receiver.Reapplied, res, "its marker is there, so it is known")
		require.Equal(t, state{Marker: true, Effects: 2}, b.state(t, ev))

		old := newEvent(8)
		old.OccurredAt = ev.OccurredAt
		require.Equal(t, receiver.Applied, newSender(t).Request(old).Serve(rcv.Handler(receiver.State(b.effect))).Result, "its version tells a state from a duplicate")
	}
}

// A Work without a function is an error wherever an error can be returned, and is never
// taken for one that succeeds.
func TestWorkWithoutAFunction(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := b.receiver(t, nil)
	for name, work := range map[string]receiver.Work[*sql.Tx]{
		"zero": {}, "state": receiver.State[*sql.Tx](nil), "fact": receiver.Fact[*sql.Tx](nil), "thin": receiver.Thin[*sql.Tx, int](nil, nil),
	} {
		const want = "the Work has no function: make it with State, Fact, Thin or Router"
		ev := newEvent(1)
		require.ErrorContains(t, work.Check(), want, name)
		_, err := rcv.Receive(t.Context(), newSender(t).Request(ev).Message(), work)
		require.ErrorContains(t, err, want, name)
		_, err = rcv.Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: bodyOf(t, ev)}, work)
		require.ErrorContains(t, err, want, name)
		_, err = rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, work)
		require.ErrorContains(t, err, want, name)
		require.Equal(t, 500, newSender(t).Request(ev).Serve(rcv.Handler(work)).Status, name)
	}
	require.Zero(t, b.rows(t))
	require.NoError(t, receiver.State(b.effect).Check())
}

// The type of an event tells what it is, before any transaction. So none is begun in vain.
func TestTransactionsOfARoute(t *testing.T) {
	b, _ := onSQLite(t)
	begun, undone := 0, 0
	inTx := func(ctx context.Context, fn func(*sql.Tx) error) error {
		begun++
		err := b.inTx(ctx, fn)
		if err != nil {
			undone++
		}
		return err
	}
	do := func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[any]) error {
		return b.effect(ctx, tx, ev.Event)
	}
	routes := []receiver.Route[*sql.Tx]{
		receiver.OnState("a.state", do), receiver.OnFact("a.fact", do),
		receiver.OnThin("a.thin", func(_ context.Context, ev receiver.Event) (int2, error) { return int2{Version: ev.Version}, nil },
			func(ctx context.Context, tx *sql.Tx, ev receiver.Event, _ int2) error { return b.effect(ctx, tx, ev) }),
	}
	rcv := newReceiver(t, inTx, b.store, nil)
	for _, c := range []struct {
		kind    string
		unknown receiver.Unknown
		status  int
		res     receiver.Result
		begun   int
	}{
		{"a.state", receiver.IgnoreUnknown, 200, receiver.Applied, 1},
		{"a.fact", receiver.IgnoreUnknown, 200, receiver.Applied, 1},
		{"a.thin", receiver.IgnoreUnknown, 200, receiver.Applied, 2}, // it looks at the version before it fetches
		{"a.other", receiver.IgnoreUnknown, 200, receiver.Ignored, 0},
		{"a.other", receiver.RefuseUnknown, 501, "", 0},
		{"a.other", receiver.KeepUnknown, 200, receiver.DeadLettered, 1},
	} {
		work, err := receiver.NewRouter(routes, &receiver.RouterConfig{Unknown: c.unknown})
		require.NoError(t, err)
		begun, undone = 0, 0
		ev := typedEvent(c.kind, 1, nil)
		ev.Object.ID = c.kind
		a := newSender(t).Request(ev).Serve(rcv.Handler(work))
		require.Equal(t, c.status, a.Status, c)
		require.Equal(t, c.res, a.Result, c)
		require.Equal(t, c.begun, begun, c)
		require.Zero(t, undone, c)
	}
}

// Nobody has said what an unknown type is. So its event is kept, although its object has a
// newer version.
func TestKeepUnknownThatWasOvertaken(t *testing.T) {
	b, _ := onSQLite(t)
	rcv, snd := b.receiver(t, nil), newSender(t)
	require.Equal(t, receiver.Applied, snd.Request(newEvent(5)).Serve(rcv.Handler(receiver.State(b.effect))).Result)
	work, err := receiver.NewRouter([]receiver.Route[*sql.Tx]{
		receiver.OnState("a", func(context.Context, *sql.Tx, receiver.Typed[any]) error { return nil }),
	}, &receiver.RouterConfig{Unknown: receiver.KeepUnknown})
	require.NoError(t, err)
	ev := newEvent(4)
	for _, want := range []receiver.Result{receiver.DeadLettered, receiver.Duplicate} {
		require.Equal(t, want, snd.Request(ev).Serve(rcv.Handler(work)).Result)
		require.Equal(t, state{Marker: true, Version: 5, DeadLetter: true}, b.state(t, ev))
	}
	res, err := rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, receiver.Fact(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 5}, b.state(t, ev))
}

// A fact that was overtaken is kept, a state is not, and an event that nobody wants is not
// either. An event that cannot be decoded is kept, whatever its type seems to be.
func TestSetAsideByKind(t *testing.T) {
	b, db := onSQLite(t)
	_, err := db.Exec("CREATE TABLE notes (x)")
	require.NoError(t, err)
	rcv := b.receiver(t, nil)
	do := func(context.Context, *sql.Tx, receiver.Typed[any]) error { panic("it is not to be applied") }
	work, err := receiver.Router(receiver.OnState("a.state", do), receiver.OnFact("a.fact", do))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, newSender(t).Request(newEvent(5)).Serve(rcv.Handler(receiver.State(b.effect))).Result)
	for i, c := range []struct {
		kind string
		want receiver.Result
	}{{"a.state", receiver.Stale}, {"a.fact", receiver.DeadLettered}, {"a.other", receiver.Ignored}} {
		ev := typedEvent(c.kind, 4, nil)
		res, err := rcv.SetAside(t.Context(), trusted(string(bodyOf(t, ev))), work, errHopeless)
		require.NoError(t, err)
		require.Equal(t, c.want, res)
		require.Equal(t, state{Marker: c.want != receiver.Ignored, Version: 5, DeadLetter: c.want == receiver.DeadLettered}, b.state(t, ev))
		require.Equal(t, i+1, notes(t, db))
	}
	res, err := rcv.SetAside(t.Context(), trusted(`{"id":"evt_1","type":"a.other"}`), work, errHopeless)
	require.NoError(t, err)
	require.Equal(t, receiver.DeadLettered, res)
}

// A skipped event is in the log, and all outcomes are counted.
func TestNothingIsSilent(t *testing.T) {
	b, log := onMemory(), new(buffer)
	rcv := b.receiver(t, &receiver.Config{Logger: log.logger()})
	snd, h := newSender(t), rcv.Handler(receiver.State(b.effect))
	ev, old := newEvent(2), newEvent(1)
	snd.Request(ev).Serve(h)
	snd.Request(ev).Serve(h)
	snd.Request(old).Serve(h)
	snd.Request(newEvent(3)).Serve(rcv.Handler(receiver.State(hopeless(b.effect))))
	snd.Request(ev).Tampered().Serve(h)
	snd.Request(newEvent(3)).Serve(rcv.Handler(receiver.State(func(context.Context, *memory.Tx, receiver.Event) error { return errors.New("no") })))
	snd.Request(newChallenge(map[string]any{"token": "t"})).Serve(h)
	work, err := receiver.Router(receiver.OnFact("a", func(context.Context, *memory.Tx, receiver.Typed[any]) error { return nil }))
	require.NoError(t, err)
	snd.Request(newEvent(3)).Serve(rcv.Handler(work))
	snd.Request(newEvent(3)).Serve(rcv.RecordHandler(func(context.Context, *memory.Tx, receiver.Event) (bool, error) { return true, nil }))
	require.Equal(t, receiver.Stats{
		Applied: 1, Duplicate: 1, Stale: 1, DeadLettered: 1, Rejected: 1, Failed: 1, Challenged: 1, Ignored: 1, Recorded: 1,
	}, rcv.Stats())
	require.Regexp(t, `level=INFO msg="receiver: stale event skipped: its handler did not run, because [^"]*" event_id=`+old.ID+
		` event_type=subscriber.updated scope=default key_id=key_1 object_type=subscriber object_id=sub_1 version=1\n`, log.String())
}
