package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// notes counts what Then has committed.
func notes(t *testing.T, db *sql.DB) int { return count(t, db, "SELECT count(*) FROM notes") }

func bodyOf(t *testing.T, ev receivertest.Event) []byte {
	return newSender(t).Request(ev).Message().Body
}

func trusted(ev string) receiver.Trusted[*sql.Tx] {
	return receiver.Trusted[*sql.Tx]{Body: []byte(ev), Then: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO notes VALUES (1)")
		return err
	}}
}

func TestApplyTrusted(t *testing.T) {
	b, db := onSQLite(t)
	_, err := db.Exec("CREATE TABLE notes (x)")
	require.NoError(t, err)
	rcv := b.receiver(t, nil)
	first, second, old := newEvent(1), newEvent(3), newEvent(2)

	// What was posted is a duplicate, and what was read is one to a post.
	res, err := rcv.Receive(t.Context(), newSender(t).Request(first).Message(), b.effect)
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, first))), b.effect)
	require.NoError(t, err)
	require.Equal(t, receiver.Duplicate, res)
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, second))), b.effect)
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	res, err = rcv.Receive(t.Context(), newSender(t).Request(second).Message(), b.effect)
	require.NoError(t, err)
	require.Equal(t, receiver.Duplicate, res)
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, old))), b.effect)
	require.NoError(t, err)
	require.Equal(t, receiver.Stale, res)
	require.Equal(t, 3, notes(t, db), "Then is committed with each of them")
	for id, want := range map[string]int{first.ID: 1, second.ID: 1, old.ID: 0} {
		require.Equal(t, want, b.effects(t, id))
	}

	// A failure takes Then with it, and a failure of Then takes everything.
	broken := errors.New("broken")
	bad := newEvent(4)
	_, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, bad))), func(context.Context, *sql.Tx, receiver.Event) error { return broken })
	require.ErrorIs(t, err, broken)
	failing := receiver.Trusted[*sql.Tx]{Body: bodyOf(t, bad), Then: func(context.Context, *sql.Tx) error { return broken }}
	_, err = rcv.Apply(t.Context(), failing, b.effect)
	require.ErrorIs(t, err, broken)
	require.Equal(t, state{Version: 3}, b.state(t, bad))
	require.Equal(t, 3, notes(t, db))

	// A dead letter, and what is ignored.
	permanent := func(context.Context, *sql.Tx, receiver.Event) error { return receiver.Permanent(broken) }
	_, err = rcv.Apply(t.Context(), failing, permanent)
	require.ErrorIs(t, err, broken)
	require.Equal(t, state{Version: 3}, b.state(t, bad), "no dead letter without its Then")
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, bad))), permanent)
	require.NoError(t, err)
	require.Equal(t, receiver.DeadLettered, res)
	require.Equal(t, state{Marker: true, DeadLetter: true, Version: 3}, b.state(t, bad))
	require.Equal(t, 4, notes(t, db))
	routes, err := receiver.Router(receiver.On("other", func(context.Context, *sql.Tx, receiver.Typed[any]) error { return nil }))
	require.NoError(t, err)
	unknown := newEvent(5)
	_, err = rcv.Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: bodyOf(t, unknown), Then: failing.Then}, routes)
	require.ErrorIs(t, err, broken)
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, unknown))), routes)
	require.NoError(t, err)
	require.Equal(t, receiver.Ignored, res)
	require.Equal(t, 5, notes(t, db))
	require.Equal(t, state{Version: 3}, b.state(t, unknown))
}

func TestApplyRefuses(t *testing.T) {
	b, _ := onSQLite(t)
	byKey := &receiver.Config{ScopeOf: func(signing.Verified) string { return "other" }}
	body := bodyOf(t, newEvent(1))
	for _, c := range []struct {
		name   string
		cfg    *receiver.Config
		t      receiver.Trusted[*sql.Tx]
		reason receiver.Reason
	}{
		{"no event", nil, receiver.Trusted[*sql.Tx]{Body: []byte(`{"id":"evt_1"}`)}, receiver.ReasonDecode},
		{"too large", &receiver.Config{MaxBodyBytes: 10}, receiver.Trusted[*sql.Tx]{Body: body}, receiver.ReasonTooLarge},
		{"no scope", byKey, receiver.Trusted[*sql.Tx]{Body: body}, receiver.ReasonScope},
		{"a scope that is none", nil, receiver.Trusted[*sql.Tx]{Body: body, Scope: "\x00"}, receiver.ReasonScope},
		{"a challenge", nil, receiver.Trusted[*sql.Tx]{Body: []byte(`{"id":"evt_1","type":"webhook.challenge","object":{"type":"a","id":"b"},"version":1,"data":{"token":"x"}}`)}, receiver.ReasonDecode},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := b.receiver(t, c.cfg).Apply(t.Context(), c.t, b.effect)
			var e *receiver.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.reason, e.Reason)
			require.Zero(t, b.rows(t))
		})
	}
	res, err := b.receiver(t, byKey).Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: body, Scope: "tenant"}, func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		require.Equal(t, "tenant", ev.Scope)
		require.Zero(t, ev.Verified)
		require.Equal(t, dedup.Object{Type: "subscriber", ID: "sub_1"}, ev.Object)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
}
