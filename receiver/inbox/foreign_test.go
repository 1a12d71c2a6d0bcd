package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/signing"
)

// gitHub is a sender of another kind: its signatures cover no time, and its events' types stand
// in a header.
func gitHub(t *testing.T) (signing.Secret, []signing.Scheme, *signing.Verifier) {
	t.Helper()
	secret, err := signing.ParseTextSecret("a secret as others issue them")
	require.NoError(t, err)
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	require.NoError(t, err)
	schemes := []signing.Scheme{signing.GitHub()}
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: schemes, Deduplicated: true})
	require.NoError(t, err)
	return secret, schemes, verifier
}

// Events of another sender have no versions, and their headers are gone when they are
// applied. Their ids and types are kept, and the events of an object stay in the order in
// which they came.
func TestForeign(t *testing.T) {
	open := onSQLite(t)
	secret, schemes, verifier := gitHub(t)
	var applied, types []string
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	const events = 6
	rcv, err := receiver.New(verifier, open.inTx, open.dedup, "default", &receiver.Config{
		Logger: quiet,
		Envelope: &receiver.Envelope{UnsignedType: true, Read: func(ev *receiver.Event) error {
			ev.Object = dedup.Object{Type: "pull", ID: "1"}
			return nil
		}},
		Hooks: receiver.Hooks{Applied: func(context.Context, receiver.Event) {
			if len(applied) == events {
				stop()
			}
		}},
	})
	require.NoError(t, err)
	in, err := inbox.New(rcv, open.inTx, open.store, receiver.State(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
		applied, types = append(applied, string(ev.Data)), append(types, ev.Type)
		return nil
	}), &inbox.Config{Ordered: true, Logger: quiet})
	require.NoError(t, err)
	snd := receivertest.NewSender(t, secret, &receivertest.SenderConfig{Schemes: schemes})
	var bodies, want []string
	for i := range events {
		body := fmt.Sprintf(`{"no":%d}`, events-i)
		bodies, want = append(bodies, body), append(want, "pull_request")
		for _, res := range []receiver.Result{receiver.Recorded, receiver.Duplicate} {
			a := snd.Raw("unused", []byte(body)).Header("X-GitHub-Event", "pull_request").Serve(in.Handler())
			require.Equal(t, res, a.Result)
		}
	}
	require.NoError(t, in.Run(ctx))
	require.Equal(t, bodies, applied)
	require.Equal(t, want, types)
}

// An event that says all in its headers may have no body. Servers other than net/http give
// that as nil.
func emptyBody[Tx any](t *testing.T, open base[Tx]) {
	secret, schemes, verifier := gitHub(t)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	rcv, err := receiver.New(verifier, open.inTx, open.dedup, "default", &receiver.Config{
		Logger:   quiet,
		Envelope: &receiver.Envelope{ContentTypes: []string{"text/plain"}, UnsignedType: true},
		Hooks:    receiver.Hooks{Applied: func(context.Context, receiver.Event) { stop() }},
	})
	require.NoError(t, err)
	var bodies [][]byte
	in, err := inbox.New(rcv, open.inTx, open.store, receiver.State(func(_ context.Context, _ Tx, ev receiver.Event) error {
		bodies = append(bodies, ev.Body)
		return nil
	}), &inbox.Config{Logger: quiet})
	require.NoError(t, err)
	snd := receivertest.NewSender(t, secret, &receivertest.SenderConfig{Schemes: schemes})
	m := snd.Raw("unused", nil).Header("X-GitHub-Event", "ping").Header("Content-Type", "text/plain").Message()
	m.Body = nil
	res, err := in.Receive(ctx, m)
	require.NoError(t, err)
	require.Equal(t, receiver.Recorded, res)
	require.NoError(t, in.Run(ctx))
	require.Equal(t, [][]byte{{}}, bodies, "never nil, which a column that is NOT NULL would refuse")
}
