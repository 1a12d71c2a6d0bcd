package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// mirror is a bed with a table of objects, as many applications have one.
type mirror[Tx any] struct {
	bed[Tx]
	put func(ctx context.Context, tx Tx, id, state string) error
	get func(t testing.TB, id string) string
}

func (m mirror[Tx]) spoil(t testing.TB, id string) {
	t.Helper()
	require.NoError(t, m.inTx(t.Context(), func(tx Tx) error { return m.put(t.Context(), tx, id, "spoilt") }))
}

func mirrorOnSQLite(t *testing.T) mirror[*sql.Tx] {
	b, db := onSQLite(t)
	_, err := db.Exec("CREATE TABLE mirror (id TEXT PRIMARY KEY, state TEXT NOT NULL)")
	require.NoError(t, err)
	return mirror[*sql.Tx]{bed: b,
		put: func(ctx context.Context, tx *sql.Tx, id, state string) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO mirror VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state", id, state)
			return err
		},
		get: func(t testing.TB, id string) (state string) {
			require.NoError(t, db.QueryRow("SELECT state FROM mirror WHERE id = ?", id).Scan(&state))
			return state
		},
	}
}

func mirrorOnPostgres(t *testing.T, level string) mirror[pgx.Tx] {
	b, pool := onPostgres(t, level)
	_, err := pool.Exec(t.Context(), "CREATE TABLE mirror (id text PRIMARY KEY, state text NOT NULL)")
	require.NoError(t, err)
	return mirror[pgx.Tx]{bed: b,
		put: func(ctx context.Context, tx pgx.Tx, id, state string) error {
			_, err := tx.Exec(ctx, "INSERT INTO mirror VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET state = excluded.state", id, state)
			return err
		},
		get: func(t testing.TB, id string) (state string) {
			require.NoError(t, pool.QueryRow(context.Background(), "SELECT state FROM mirror WHERE id = $1", id).Scan(&state))
			return state
		},
	}
}

func TestReapply(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testReapply(t, mirrorOnSQLite(t)) })
	for _, level := range []string{"read committed", "repeatable read"} {
		t.Run("postgres, "+level, func(t *testing.T) { testReapply(t, mirrorOnPostgres(t, level)) })
	}
}

// A row was spoilt by hand, and both of its events are redelivered. Without a request this
// repairs nothing. With one the newest state is applied again, once.
func testReapply[Tx any](t *testing.T, m mirror[Tx]) {
	log := new(buffer)
	var hooked []string
	var failing error
	rcv := m.receiver(t, &receiver.Config{Logger: log.logger(), Hooks: receiver.Hooks{
		Reapplied: func(_ context.Context, ev receiver.Event) { hooked = append(hooked, ev.ID) },
	}})
	h := rcv.Handler(receiver.State(func(ctx context.Context, tx Tx, ev receiver.Event) error {
		return errors.Join(m.put(ctx, tx, ev.Object.ID, string(ev.Data)), failing)
	}))
	event := func(version int64, state string) *receivertest.Request {
		ev := newEvent(version)
		ev.Data = state
		return newSender(t).Request(ev)
	}
	first, second := event(1, "open"), event(2, "paid")
	id := newEvent(1).Object.ID
	want := func(req *receivertest.Request, res receiver.Result, state string) {
		t.Helper()
		require.Equal(t, res, req.Serve(h).Result)
		require.Equal(t, state, m.get(t, id))
	}
	want(first, receiver.Applied, `"open"`)
	want(second, receiver.Applied, `"paid"`)
	m.spoil(t, id)
	want(first, receiver.Duplicate, "spoilt")
	want(second, receiver.Duplicate, "spoilt")

	number, err := rcv.Reapply(t.Context(), receiver.ReapplyRequest{Object: newEvent(1).Object})
	require.NoError(t, err)
	require.Positive(t, number)
	require.Contains(t, log.String(), "will be applied again when they arrive once more")
	require.Equal(t, "spoilt", m.get(t, id), "by itself it changes nothing")
	failing = errors.New("still broken")
	require.Equal(t, 500, second.Serve(h).Status)
	require.Equal(t, "spoilt", m.get(t, id))
	failing = nil
	want(first, receiver.Stale, "spoilt") // the older state is skipped, before the newest and after it
	want(second, receiver.Reapplied, `"paid"`)
	want(first, receiver.Duplicate, `"paid"`)
	m.spoil(t, id)
	want(second, receiver.Duplicate, "spoilt") // once
	require.Len(t, hooked, 1)
	require.EqualValues(t, 1, rcv.Stats().Reapplied)

	// By an event's id, and by the time; newer events are not held up by any of it.
	again, err := rcv.Reapply(t.Context(), receiver.ReapplyRequest{Event: hooked[0], Scope: "default"})
	require.NoError(t, err)
	require.Greater(t, again, number)
	want(second, receiver.Reapplied, `"paid"`)
	m.spoil(t, id)
	_, err = rcv.Reapply(t.Context(), receiver.ReapplyRequest{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	third := event(3, "sent")
	want(third, receiver.Applied, `"sent"`)
	want(third, receiver.Duplicate, `"sent"`) // it was taken after the request
	want(second, receiver.Stale, `"sent"`)
}

// An event that was set aside is repaired in the same way, and one that cannot be applied
// again is set aside.
func TestReapplyAndDeadLetters(t *testing.T) {
	m := mirrorOnSQLite(t)
	rcv := m.receiver(t, nil)
	var failing error
	work := receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		return errors.Join(m.put(ctx, tx, ev.Object.ID, ev.ID), failing)
	})
	h := rcv.Handler(work)
	ev := newEvent(1)
	req := newSender(t).Request(ev)
	ask := func() {
		t.Helper()
		_, err := rcv.Reapply(t.Context(), receiver.ReapplyRequest{Event: ev.ID})
		require.NoError(t, err)
	}
	failing = receiver.Permanent(errors.New("first"))
	require.Equal(t, receiver.DeadLettered, req.Serve(h).Result)
	require.Equal(t, receiver.Duplicate, req.Serve(h).Result)
	ask()
	failing = nil
	require.Equal(t, receiver.Reapplied, req.Serve(h).Result)
	require.Equal(t, state{Marker: true, Version: 1}, m.state(t, ev))
	require.Equal(t, ev.ID, m.get(t, ev.Object.ID))

	// It cannot be applied again: it is set aside with the new reason, and by hand it can be
	// applied, though its own version is stored.
	m.spoil(t, ev.Object.ID)
	ask()
	failing = receiver.Permanent(errors.New("second"))
	require.Equal(t, receiver.DeadLettered, req.Serve(h).Result)
	require.Equal(t, receiver.Duplicate, req.Serve(h).Result, "the request is used up")
	require.Equal(t, state{Marker: true, Version: 1, DeadLetter: true}, m.state(t, ev))
	failing = nil
	res, err := rcv.ApplyDeadLetter(t.Context(), "default", ev.ID, work)
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	require.Equal(t, state{Marker: true, Version: 1}, m.state(t, ev))
	require.Equal(t, ev.ID, m.get(t, ev.Object.ID))

	// A catch-up run or an inbox sets aside what it cannot apply: it must come to an end.
	ask()
	res, err = rcv.SetAside(t.Context(), receiver.Trusted[*sql.Tx]{Body: req.Message().Body}, work, errors.New("third"))
	require.NoError(t, err)
	require.Equal(t, receiver.DeadLettered, res)
}

// Facts, thin events and wrapped handlers are applied again, too.
func TestReapplyOtherWork(t *testing.T) {
	for name, make := range map[string]func(rcv *receiver.Receiver[*sql.Tx], m mirror[*sql.Tx]) http.Handler{
		"fact": func(rcv *receiver.Receiver[*sql.Tx], m mirror[*sql.Tx]) http.Handler {
			return rcv.Handler(receiver.Fact(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
				return m.put(ctx, tx, ev.Object.ID, "good")
			}))
		},
		"thin": func(rcv *receiver.Receiver[*sql.Tx], m mirror[*sql.Tx]) http.Handler {
			return rcv.Handler(receiver.Thin(
				func(_ context.Context, ev receiver.Event) (receiver.Snapshot[string], error) {
					return receiver.Snapshot[string]{Version: ev.Version, State: "good"}, nil
				},
				func(ctx context.Context, tx *sql.Tx, ev receiver.Event, now receiver.Snapshot[string]) error {
					return m.put(ctx, tx, ev.Object.ID, now.State)
				}))
		},
		"wrapped": func(rcv *receiver.Receiver[*sql.Tx], m mirror[*sql.Tx]) http.Handler {
			return rcv.WrapState(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				tx, ev, _ := rcv.From(req.Context())
				if m.put(req.Context(), tx, ev.Object.ID, "good") == nil {
					_, _ = w.Write([]byte("mine"))
				}
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := mirrorOnSQLite(t)
			rcv := m.receiver(t, nil)
			h := make(rcv, m)
			ev := newEvent(1)
			req := newSender(t).Request(ev)
			require.Equal(t, 200, req.Serve(h).Status)
			m.spoil(t, ev.Object.ID)
			_, err := rcv.Reapply(t.Context(), receiver.ReapplyRequest{Object: ev.Object})
			require.NoError(t, err)
			a := req.Serve(h)
			require.Equal(t, 200, a.Status)
			require.Equal(t, "good", m.get(t, ev.Object.ID))
			if name == "wrapped" {
				require.Equal(t, "mine", string(a.Body))
			} else {
				require.Equal(t, receiver.Reapplied, a.Result)
			}
			m.spoil(t, ev.Object.ID)
			require.Equal(t, receiver.Duplicate, req.Serve(h).Result)
			require.Equal(t, "spoilt", m.get(t, ev.Object.ID))
		})
	}
}

func TestReapplyRefused(t *testing.T) {
	b := onMemory()
	rcv := b.receiver(t, nil)
	now := time.Now()
	for want, req := range map[string]receiver.ReapplyRequest{
		"it would cover everything":   {},
		"event id has the character":  {Event: "a b"},
		"object id is empty":          {Object: dedup.Object{Type: "a"}},
		"its end must come after its": {From: now, Until: now},
	} {
		_, err := rcv.Reapply(t.Context(), req)
		require.ErrorIs(t, err, dedup.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	type bare struct{ dedup.Store[*memory.Tx] }
	rcv = newReceiver[*memory.Tx](t, b.inTx, bare{b.store}, nil)
	_, err := rcv.Reapply(t.Context(), receiver.ReapplyRequest{Event: "a"})
	require.ErrorContains(t, err, "the store keeps no requests")
	d := newDoor(t, newTenants().lookup, nil, nil)
	_, err = d.rcv.Reapply(t.Context(), receiver.ReapplyRequest{Event: "a"})
	require.ErrorContains(t, err, "ReapplyRequest.Scope is empty")
}
