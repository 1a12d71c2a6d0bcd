package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// notes counts the rows that Then has committed.
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

// Work for which no sender waits may have more time than a request.
func TestTrustedHasATimeOfItsOwn(t *testing.T) {
	b := onMemory()
	var left time.Duration
	rcv := newReceiver(t, func(ctx context.Context, fn func(*memory.Tx) error) error {
		ends, _ := ctx.Deadline()
		left = time.Until(ends)
		return b.inTx(ctx, fn)
	}, b.store, &receiver.Config{Timeout: time.Minute})
	for _, timeout := range []time.Duration{0, time.Hour} {
		event := func(version int64) receiver.Trusted[*memory.Tx] {
			return receiver.Trusted[*memory.Tx]{Body: bodyOf(t, newEvent(version)), Timeout: timeout}
		}
		had := func() {
			t.Helper()
			require.Equal(t, timeout == 0, left <= time.Minute)
			require.LessOrEqual(t, left, time.Hour)
			left = 0
		}
		_, err := rcv.Apply(t.Context(), event(1), receiver.Fact(b.effect))
		require.NoError(t, err)
		had()
		_, err = rcv.SetAside(t.Context(), event(2), receiver.Fact(b.effect), errors.New("given up"))
		require.NoError(t, err)
		had()
	}
}

func TestApplyTrusted(t *testing.T) {
	b, db := onSQLite(t)
	_, err := db.Exec("CREATE TABLE notes (x)")
	require.NoError(t, err)
	rcv := b.receiver(t, nil)
	first, second, old := newEvent(1), newEvent(3), newEvent(2)

	// An event that was posted is a duplicate when it is read, and an event that was read
	// is a duplicate when it is posted.
	res, err := rcv.Receive(t.Context(), newSender(t).Request(first).Message(), receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, first))), receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Duplicate, res)
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, second))), receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
	res, err = rcv.Receive(t.Context(), newSender(t).Request(second).Message(), receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Duplicate, res)
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, old))), receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Stale, res)
	require.Equal(t, 3, notes(t, db), "Then is committed with each of them")
	for id, want := range map[string]int{first.ID: 1, second.ID: 1, old.ID: 0} {
		require.Equal(t, want, b.effects(t, id))
	}

	// A failure rolls back Then, and a failure of Then rolls back everything.
	broken := errors.New("broken")
	bad := newEvent(4)
	_, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, bad))), receiver.State(func(context.Context, *sql.Tx, receiver.Event) error { return broken }))
	require.ErrorIs(t, err, broken)
	failing := receiver.Trusted[*sql.Tx]{Body: bodyOf(t, bad), Then: func(context.Context, *sql.Tx) error { return broken }}
	_, err = rcv.Apply(t.Context(), failing, receiver.State(b.effect))
	require.ErrorIs(t, err, broken)
	require.Equal(t, state{Version: 3}, b.state(t, bad))
	require.Equal(t, 3, notes(t, db))

	// The events are a dead letter and an ignored event.
	permanent := func(context.Context, *sql.Tx, receiver.Event) error { return receiver.Permanent(broken) }
	_, err = rcv.Apply(t.Context(), failing, receiver.State(permanent))
	require.ErrorIs(t, err, broken)
	require.Equal(t, state{Version: 3}, b.state(t, bad), "no dead letter without its Then")
	res, err = rcv.Apply(t.Context(), trusted(string(bodyOf(t, bad))), receiver.State(permanent))
	require.NoError(t, err)
	require.Equal(t, receiver.DeadLettered, res)
	require.Equal(t, state{Marker: true, DeadLetter: true, Version: 3}, b.state(t, bad))
	require.Equal(t, 4, notes(t, db))
	routes, err := receiver.Router(receiver.OnState("other", func(context.Context, *sql.Tx, receiver.Typed[any]) error { return nil }))
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
		{"another scope than its own", nil, receiver.Trusted[*sql.Tx]{Body: body, Scope: "other"}, receiver.ReasonScope},
		{"a scope that is none", nil, receiver.Trusted[*sql.Tx]{Body: body, Scope: "\x00"}, receiver.ReasonScope},
		{"a challenge", nil, receiver.Trusted[*sql.Tx]{Body: []byte(`{"id":"evt_1","type":"webhook.challenge","object":{"type":"a","id":"b"},"version":1,"data":{"token":"x"}}`)}, receiver.ReasonDecode},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := b.receiver(t, c.cfg).Apply(t.Context(), c.t, receiver.State(b.effect))
			var e *receiver.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.reason, e.Reason)
			require.Zero(t, b.rows(t))
		})
	}
	res, err := b.receiver(t, byKey).Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: body, Scope: "tenant"}, receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		require.Equal(t, "tenant", ev.Scope)
		require.Zero(t, ev.Verified)
		require.Equal(t, dedup.Object{Type: "subscriber", ID: "sub_1"}, ev.Object)
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
}

// An event that the pipeline itself refuses for good is kept under an id that no other
// reader of the same bytes could take for another id, or it is not kept at all.
func TestSetAside(t *testing.T) {
	b, db := onSQLite(t)
	_, err := db.Exec("CREATE TABLE notes (x)")
	require.NoError(t, err)
	good := newEvent(7)
	for _, c := range []struct {
		name    string
		body    string
		cfg     *receiver.Config
		id      string // Trusted.ID
		refused receiver.Reason
		want    dedup.DeadLetter // without the fields that every dead letter has; no ID: it cannot be kept
	}{
		{name: "too large", body: string(bodyOf(t, good)), cfg: &receiver.Config{MaxBodyBytes: 10}, refused: receiver.ReasonTooLarge,
			want: dedup.DeadLetter{ID: good.ID, Type: good.Type, Object: good.Object, Version: 7}},
		{name: "a field is missing", body: `{"type":"a.b","id":"evt_1"}`, refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "evt_1", Type: "a.b"}},
		{name: "another field is there twice", body: `{"data":1,"data":2,"id":"evt_2","type":"a.b"}`, refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "evt_2", Type: "a.b"}},
		{name: "no UTF-8", body: `{"id":"evt_3","type":"a.b","data":"` + "\xff" + `"}`, refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "evt_3", Type: "a.b"}},
		{name: "a type that is none", body: `{"id":"evt_4","type":"a b"}`, refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "evt_4", Type: receiver.Untyped}},
		{name: "two types", body: `{"id":"evt_5","type":"a","Type":"b"}`, refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "evt_5", Type: receiver.Untyped}},
		{name: "an id in escapes", body: `{"\u0069d":"\u0065vt_6"}`, refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "evt_6", Type: receiver.Untyped}},
		{name: "another id than the one that it was kept by", body: string(bodyOf(t, good)), id: "evt_7", refused: receiver.ReasonIDMismatch, want: dedup.DeadLetter{ID: "evt_7", Type: receiver.Untyped}},
		{name: "an id that is given", body: "no JSON", id: "evt_8", refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "evt_8", Type: receiver.Untyped}},
		{name: "of another sender", body: `{"id":"evt/9","type":"a/b"}`, cfg: &receiver.Config{Envelope: &receiver.Envelope{Read: func(ev *receiver.Event) error {
			ev.ID = "evt_other"
			return errHopeless
		}}}, refused: receiver.ReasonDecode, want: dedup.DeadLetter{ID: "sha256-id-76b9998cdcf498a6dabd89f30385518ffc79604c2cb489ce325d89e53c5faed4", Type: "a.b"}},
		{name: "a Read that panics", body: `{"id":"evt_10"}`, cfg: &receiver.Config{Envelope: &receiver.Envelope{Read: func(*receiver.Event) error { panic("no") }}},
			refused: receiver.ReasonPanic, want: dedup.DeadLetter{ID: "evt_10", Type: receiver.Untyped}},
		{name: "no id", body: `{}`, refused: receiver.ReasonDecode},
		{name: "an id that is none", body: `{"id":"evt.1"}`, refused: receiver.ReasonDecode},
		{name: "two ids", body: `{"id":"evt_1","id":"evt_2"}`, refused: receiver.ReasonDecode},
		{name: "two ids in two cases", body: `{"id":"evt_1","ID":"evt_2"}`, refused: receiver.ReasonDecode},
		{name: "an id in another case", body: `{"Id":"evt_1"}`, refused: receiver.ReasonDecode},
		{name: "an id further in", body: `{"data":{"id":"evt_1"}}`, refused: receiver.ReasonDecode},
		{name: "a body that ends early", body: `{"id":"evt_1"`, refused: receiver.ReasonDecode},
		{name: "no body", refused: receiver.ReasonDecode},
		{name: "no id of another sender", body: `{}`, cfg: &receiver.Config{Envelope: &receiver.Envelope{}}, refused: receiver.ReasonDecode},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			var cfg receiver.Config
			if c.cfg != nil {
				cfg.MaxBodyBytes, cfg.Envelope = c.cfg.MaxBodyBytes, c.cfg.Envelope
			}
			cfg.Now, cfg.Logger = func() time.Time { return now }, discard
			var told error
			cfg.Hooks.DeadLettered = func(_ context.Context, _ receiver.Event, cause error) { told = cause }
			rcv, err := receiver.New(newVerifier(t, nil), b.inTx, b.store, c.name, &cfg)
			require.NoError(t, err)
			event := trusted(c.body)
			event.ID = c.id
			before := notes(t, db)
			_, refused := rcv.Apply(t.Context(), event, receiver.State(b.effect))
			var failure *receiver.Error
			require.ErrorAs(t, refused, &failure)
			require.Equal(t, c.refused, failure.Reason)
			require.Equal(t, c.refused != receiver.ReasonPanic, failure.Permanent())

			res, err := rcv.SetAside(t.Context(), event, receiver.State(b.effect), refused)
			if c.want.ID == "" {
				require.ErrorIs(t, err, receiver.ErrNotKept)
				require.Equal(t, before, notes(t, db))
				return
			}
			require.NoError(t, err)
			require.Equal(t, receiver.DeadLettered, res)
			require.ErrorIs(t, told, refused)
			want := c.want
			want.Scope, want.Body, want.Reason, want.At = c.name, []byte(c.body), refused.Error(), now
			require.NoError(t, b.inTx(t.Context(), func(tx *sql.Tx) error {
				letters, err := b.store.ListDeadLetters(t.Context(), tx, c.name, "", 10)
				require.Equal(t, []dedup.DeadLetter{want}, letters)
				return err
			}))
			require.Zero(t, count(t, db, "SELECT count(*) FROM surehook_dedup_versions WHERE scope = ?", c.name))
			res, err = rcv.SetAside(t.Context(), event, receiver.State(b.effect), refused)
			require.NoError(t, err)
			require.Equal(t, receiver.Duplicate, res)
			require.Equal(t, before+2, notes(t, db), "Then is committed with both")
		})
	}
}

func TestSetAsideNot(t *testing.T) {
	b, _ := onSQLite(t)
	ev, newer := newEvent(1), newEvent(2)
	set := receiver.Trusted[*sql.Tx]{Body: bodyOf(t, ev)}

	_, err := newReceiver(t, b.inTx, dedup.Store[*sql.Tx](brokenStore[*sql.Tx]{Store: b.store}), nil).SetAside(t.Context(), set, receiver.State(b.effect), errHopeless)
	require.ErrorIs(t, err, receiver.ErrNotKept, "there is nowhere to keep it")
	_, err = b.receiver(t, nil).SetAside(t.Context(), set, receiver.State(b.effect), nil)
	require.ErrorContains(t, err, "cause")
	_, err = b.receiver(t, &receiver.Config{ScopeOf: func(signing.Verified) string { return "other" }}).SetAside(t.Context(), set, receiver.State(b.effect), errHopeless)
	require.ErrorContains(t, err, "Scope")
	require.NotErrorIs(t, err, receiver.ErrNotKept)
	set.Then = func(context.Context, *sql.Tx) error { return errHopeless }
	_, err = b.receiver(t, nil).SetAside(t.Context(), set, receiver.State(b.effect), pgError("40001"))
	require.ErrorIs(t, err, errHopeless)
	require.Zero(t, b.rows(t), "not without its Then")

	// An event that was overtaken is no dead letter.
	_, err = b.receiver(t, nil).Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: bodyOf(t, newer)}, receiver.State(b.effect))
	require.NoError(t, err)
	set.Then = nil
	res, err := b.receiver(t, nil).SetAside(t.Context(), set, receiver.State(b.effect), errHopeless)
	require.NoError(t, err)
	require.Equal(t, receiver.Stale, res)
	require.Equal(t, state{Marker: true, Version: 2}, b.state(t, ev))

	// The cause's own error decides nothing: the event is kept, and can be applied by hand.
	last := newEvent(3)
	res, err = b.receiver(t, &receiver.Config{MaxBodyBytes: 10}).SetAside(t.Context(), receiver.Trusted[*sql.Tx]{Body: bodyOf(t, last)}, receiver.State(b.effect), pgError("40001"))
	require.NoError(t, err)
	require.Equal(t, receiver.DeadLettered, res)
	res, err = b.receiver(t, &receiver.Config{MaxBodyBytes: 10}).ApplyDeadLetter(t.Context(), "default", last.ID, receiver.State(b.effect))
	require.NoError(t, err)
	require.Equal(t, receiver.Applied, res)
}
