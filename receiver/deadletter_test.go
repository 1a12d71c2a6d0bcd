package receiver_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

var errHopeless = errors.New("no such customer")

type sqliteError int

func (e sqliteError) Error() string { return "busy" }
func (e sqliteError) Code() int     { return int(e) }

func hopeless[Tx any](effect receiver.HandlerFunc[Tx]) receiver.HandlerFunc[Tx] {
	return func(ctx context.Context, tx Tx, ev receiver.Event) error {
		_ = effect(ctx, tx, ev)
		return fmt.Errorf("applying: %w", receiver.Permanent(errHopeless))
	}
}

func TestPermanent(t *testing.T) {
	require.NoError(t, receiver.Permanent(nil))
	require.ErrorIs(t, receiver.Permanent(errHopeless), errHopeless)

	b, _ := onSQLite(t)
	var cause error
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rcv := b.receiver(t, &receiver.Config{Now: func() time.Time { return now }, Hooks: receiver.Hooks{
		DeadLettered: func(_ context.Context, _ receiver.Event, err error) { cause = err },
	}})
	ev := newEvent(7)
	req := newSender(t).Request(ev)
	require.Equal(t, receiver.DeadLettered, req.Serve(rcv.Handler(receiver.State(hopeless(b.effect)))).Result)
	require.ErrorIs(t, cause, errHopeless)
	require.Equal(t, state{Marker: true, DeadLetter: true}, b.state(t, ev))
	require.NoError(t, b.inTx(t.Context(), func(tx *sql.Tx) error {
		letter, err := b.store.DeadLetter(t.Context(), tx, "default", ev.ID)
		require.NoError(t, err)
		require.Equal(t, dedup.DeadLetter{
			Scope: "default", ID: ev.ID, Type: ev.Type, Object: ev.Object, Version: 7,
			Body: req.Message().Body, Reason: "applying: no such customer", At: now,
		}, letter)
		return nil
	}))
}

// If an error only looks permanent, or its event cannot be set aside, the answer makes the
// sender come again, and nothing is left.
func TestPermanentThatIsNot(t *testing.T) {
	b, _ := onSQLite(t)
	ev := newEvent(1)
	permanently := func(err error) receiver.HandlerFunc[*sql.Tx] {
		return func(context.Context, *sql.Tx, receiver.Event) error { return receiver.Permanent(err) }
	}
	fails := func(nth int) receiver.InTx[*sql.Tx] {
		return func(ctx context.Context, fn func(*sql.Tx) error) error {
			if nth--; nth == 0 {
				return errors.New("connection refused")
			}
			return b.inTx(ctx, fn)
		}
	}
	for name, c := range map[string]struct {
		inTx   receiver.InTx[*sql.Tx]
		store  dedup.Store[*sql.Tx]
		err    error
		reason receiver.Reason
	}{
		"a lock":                {b.inTx, b.store, errors.Join(errHopeless, sqliteError(5)), receiver.ReasonConflict},
		"a lost connection":     {b.inTx, b.store, driver.ErrBadConn, receiver.ReasonDatabase},
		"a store's transaction": {b.inTx, b.store, dedup.ErrRetryTx, receiver.ReasonConflict},
		"no dead letters":       {b.inTx, brokenStore[*sql.Tx]{Store: b.store}, errHopeless, receiver.ReasonApply},
		"serialization failure": {b.inTx, b.store, pgError("40001"), receiver.ReasonConflict},
		"database away":         {b.inTx, b.store, pgError("57P01"), receiver.ReasonDatabase},
		"second transaction":    {fails(2), b.store, errHopeless, receiver.ReasonDatabase},
	} {
		_, err := newReceiver(t, c.inTx, c.store, nil).Receive(t.Context(), newSender(t).Request(ev).Message(), receiver.State(permanently(c.err)))
		var failure *receiver.Error
		require.ErrorAs(t, err, &failure, name)
		require.Equal(t, c.reason, failure.Reason, name)
		require.Zero(t, b.rows(t), name)
	}
}

// lookAlikes are errors of others in the words of a database, with the reason that they
// have without Permanent.
var lookAlikes = map[string]struct {
	err    error
	reason receiver.Reason
}{
	"a body that ends early":       {io.ErrUnexpectedEOF, receiver.ReasonDatabase},
	"a name that is not known":     {&net.DNSError{Err: "no such host", Name: "crm.example", IsNotFound: true}, receiver.ReasonDatabase},
	"a service that is away":       {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, receiver.ReasonDatabase},
	"a text about a locked thing":  {errors.New("the customer's database is locked"), receiver.ReasonConflict},
	"a status that is like a code": {httpStatus(517), receiver.ReasonApply},
}

type httpStatus int

func (s httpStatus) Error() string { return fmt.Sprintf("status %d", int(s)) }
func (s httpStatus) Code() int     { return int(s) }

// The receiver believes Permanent unless the database itself says otherwise. It believes
// the handler, a function that fetches and a member of a Group alike.
func TestPermanentLookAlikes(t *testing.T) {
	b, _ := onSQLite(t)
	group, err := receiver.NewGroup(b.inTx, receiver.SQLExec, nil)
	require.NoError(t, err)
	snd := newSender(t)
	for name, lookAlike := range lookAlikes {
		for way, inTx := range map[string]receiver.InTx[*sql.Tx]{"alone": b.inTx, "in a group": group.InTx} {
			runs := 0
			permanently := func() error { runs++; return fmt.Errorf("reading: %w", receiver.Permanent(lookAlike.err)) }
			rcv := newReceiver(t, inTx, b.store, nil)
			for of, h := range map[string]http.Handler{
				"apply": rcv.Handler(receiver.State(func(context.Context, *sql.Tx, receiver.Event) error { return permanently() })),
				"fetch": rcv.Handler(fetching(permanently)),
			} {
				ev := newEvent(1)
				runs = 0
				require.Equal(t, receiver.DeadLettered, snd.Request(ev).Serve(h).Result, "%s, %s, %s", name, way, of)
				require.Equal(t, 1, runs, "%s, %s, %s", name, way, of)
				require.Equal(t, state{Marker: true, DeadLetter: true}, b.state(t, ev))
			}
		}
		_, err := b.receiver(t, nil).Receive(t.Context(), snd.Request(newEvent(1)).Message(), receiver.State(func(context.Context, *sql.Tx, receiver.Event) error { return lookAlike.err }))
		var failure *receiver.Error
		require.ErrorAs(t, err, &failure, name)
		require.Equal(t, lookAlike.reason, failure.Reason, name)
	}
}

// fetching is thin work whose fetch returns that error.
func fetching(err func() error) receiver.Work[*sql.Tx] {
	return receiver.Thin(func(context.Context, receiver.Event) (int2, error) { return int2{}, err() },
		func(context.Context, *sql.Tx, receiver.Event, int2) error { panic("must not be called") })
}

// A database's own error is believed from a function that fetches, too.
func TestPermanentFetchThatIsNot(t *testing.T) {
	b, _ := onSQLite(t)
	_, err := b.receiver(t, nil).Receive(t.Context(), newSender(t).Request(newEvent(1)).Message(),
		fetching(func() error { return receiver.Permanent(pgError("57P01")) }))
	var failure *receiver.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, receiver.ReasonFetch, failure.Reason)
	require.Zero(t, b.rows(t))
}

// Another process took the event between the two transactions.
func TestPermanentTakenMeanwhile(t *testing.T) {
	b, _ := onSQLite(t)
	ev := newEvent(1)
	n := 0
	inTx := func(ctx context.Context, fn func(*sql.Tx) error) error {
		if n++; n == 2 {
			require.Equal(t, receiver.Applied, newSender(t).Request(ev).Serve(b.receiver(t, nil).Handler(receiver.State(b.effect))).Result)
		}
		return b.inTx(ctx, fn)
	}
	a := newSender(t).Request(ev).Serve(newReceiver(t, inTx, b.store, nil).Handler(receiver.State(hopeless(b.effect))))
	require.Equal(t, receiver.Duplicate, a.Result)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 1}, b.state(t, ev))
}

func TestApplyDeadLetter(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		b, _ := onSQLite(t)
		testApplyDeadLetter(t, b)
	})
	t.Run("memory", func(t *testing.T) { testApplyDeadLetter(t, onMemory()) })
}

func testApplyDeadLetter[Tx any](t *testing.T, b bed[Tx]) {
	rcv := b.receiver(t, nil)
	snd := newSender(t)
	ev, old := newEvent(7), newEvent(6)
	for _, e := range []receivertest.Event{ev, old} {
		require.Equal(t, receiver.DeadLettered, snd.Request(e).Serve(rcv.Handler(receiver.State(hopeless(b.effect)))).Result)
	}

	_, err := rcv.ApplyDeadLetter(t.Context(), "default", "evt_none", receiver.State(b.effect))
	require.ErrorIs(t, err, dedup.ErrNotFound)

	_, err = rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, receiver.State(hopeless(b.effect)))
	require.ErrorIs(t, err, errHopeless)
	require.Equal(t, state{Marker: true, DeadLetter: true}, b.state(t, ev), "it stays")

	_, err = rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, receiver.State(func(context.Context, Tx, receiver.Event) error { return dedup.ErrNotFound }))
	var failure *receiver.Error
	require.ErrorAs(t, err, &failure, "what is not found is the function's")
	require.Equal(t, receiver.ReasonApply, failure.Reason)

	var got receiver.Event
	res, err := rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, receiver.State(func(ctx context.Context, tx Tx, ev receiver.Event) error {
		got = ev
		return b.effect(ctx, tx, ev)
	}))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	require.Equal(t, state{Marker: true, Effects: 1, Version: 7}, b.state(t, ev))
	require.Equal(t, ev.Object, got.Object)
	require.Equal(t, "default", got.Scope)

	_, err = rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, receiver.State(b.effect))
	require.ErrorIs(t, err, dedup.ErrNotFound)

	res, err = rcv.ApplyDeadLetter(t.Context(), "default", old.ID, receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Stale, res)
	require.Equal(t, state{Marker: true, Version: 7}, b.state(t, old))
	require.Equal(t, receiver.Duplicate, snd.Request(ev).Serve(rcv.Handler(receiver.State(b.effect))).Result)
}

func TestApplyDeadLetterWithoutAny(t *testing.T) {
	b, _ := onSQLite(t)
	rcv := newReceiver(t, b.inTx, dedup.Store[*sql.Tx](brokenStore[*sql.Tx]{Store: b.store}), nil)
	_, err := rcv.ApplyDeadLetter(t.Context(), "default", "evt_1", receiver.State(b.effect))
	require.ErrorContains(t, err, "keeps no dead letters")
}
