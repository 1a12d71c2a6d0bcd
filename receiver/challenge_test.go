package receiver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

func newChallenge(data any) receivertest.Event {
	ev := receivertest.NewEvent("subscription", "wsub_1", 1)
	ev.Type, ev.Data = "webhook.challenge", data
	return ev
}

// Every way in answers a challenge, and a challenge leaves nothing behind, so that the same
// one can come again.
func TestChallenge(t *testing.T) {
	b, db := onSQLite(t)
	log := new(buffer)
	var hooked []receiver.Event
	rcv := b.receiver(t, &receiver.Config{Logger: log.logger(), Hooks: receiver.Hooks{
		Challenged: func(_ context.Context, ev receiver.Event) {
			require.Zero(t, db.Stats().InUse)
			hooked = append(hooked, ev)
		},
		Applied: func(context.Context, receiver.Event) { t.Error("applied") },
	}})
	never := func(context.Context, *sql.Tx, receiver.Event) error {
		t.Error("the function was called")
		return nil
	}
	const token = "abcDEF_-0123456789"
	ev := newChallenge(map[string]any{"token": token, "more": 1})
	req := newSender(t).Request(ev)
	before := b.rows(t)
	for name, h := range map[string]http.Handler{
		"Handler": rcv.Handler(receiver.State(never)),
		"thin": rcv.Handler(receiver.Thin(func(context.Context, receiver.Event) (int2, error) {
			t.Error("the function was called")
			return int2{}, nil
		}, func(context.Context, *sql.Tx, receiver.Event, int2) error { return nil })),
		"wrap": rcv.WrapState(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })),
	} {
		for range 2 {
			a := req.Serve(h)
			require.Equal(t, 200, a.Status, name)
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			require.JSONEq(t, `{"token":"`+token+`"}`, string(a.Body))
		}
	}
	res, err := rcv.Receive(t.Context(), req.Message(), receiver.State(never))
	require.NoError(t, err)
	require.True(t, res.Challenged())
	require.JSONEq(t, `{"token":"`+token+`"}`, string(receiver.AnswerTo(res, err).Body))
	for _, other := range []receiver.Result{receiver.Applied, receiver.Duplicate, receiver.Stale, receiver.DeadLettered} {
		require.False(t, other.Challenged())
	}
	require.Equal(t, before, b.rows(t))
	require.Len(t, hooked, 7)
	require.Equal(t, ev.ID, hooked[0].ID)
	require.Contains(t, log.String(), "challenge answered")
	require.NotContains(t, log.String(), token)
}

// Only a sender with the secret is answered, and only a token is sent back.
func TestChallengeRefused(t *testing.T) {
	b, _ := onSQLite(t)
	h := b.receiver(t, nil).Handler(receiver.State(b.effect))
	snd := newSender(t)
	good := newChallenge(map[string]string{"token": "abc"})
	require.Equal(t, 401, snd.Request(good).WrongSecret().Serve(h).Status)
	require.Equal(t, 401, snd.Request(good).Tampered().Serve(h).Status)
	for name, data := range map[string]any{
		"no data": nil, "no object": "abc", "no token": map[string]string{}, "empty": map[string]string{"token": ""},
		"a number": map[string]int{"token": 1}, "markup": map[string]string{"token": "<script>"}, "a quote": map[string]string{"token": `"`},
		"too long": map[string]string{"token": strings.Repeat("a", 257)}, "another case": map[string]string{"Token": "abc"},
		"twice": json.RawMessage(`{"token":"abc","token":"def"}`),
	} {
		a := snd.Request(newChallenge(data)).Serve(h)
		require.Equal(t, 400, a.Status, name)
		require.JSONEq(t, `{"error":"Bad Request"}`, string(a.Body))
	}
	require.Equal(t, 200, snd.Request(newChallenge(map[string]string{"token": strings.Repeat("a", 256)})).Serve(h).Status)
	require.Zero(t, b.effects(t, good.ID))
}
