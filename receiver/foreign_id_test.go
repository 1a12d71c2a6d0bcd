package receiver_test

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
)

// The ids that other senders sign need not have the form of a marker's. Each is an event
// of its own, and arrives once.
func TestForeignIDs(t *testing.T) {
	b, db := onSQLite(t)
	keys, err := signing.NewKeyring(signing.Key{ID: "key_1", Secret: testSecret})
	require.NoError(t, err)
	colons, err := signing.NewDescribed(signing.Description{
		Name: "colons", SignatureHeader: "X-Sig", IDHeader: "X-Id", TimestampHeader: "X-Time", Signed: "{id}:{timestamp}:{body}",
	})
	require.NoError(t, err)
	for _, c := range []struct {
		scheme signing.Scheme
		ids    map[string]string // the event's, or empty: it is the sender's hash
	}{
		{signing.StandardWebhooks{}, map[string]string{"evt:1": "", "evt/1": "", "a=b=": "", "evt_1": "evt_1", strings.Repeat("x", 129): "", "sha256-x": ""}},
		{signing.Svix(), map[string]string{"msg#1": "", "msg_1": "msg_1"}},
		{colons, map[string]string{"a.b": "", "a/b": "", "a-b": "a-b"}},
	} {
		verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{c.scheme}})
		require.NoError(t, err)
		var got []string
		rcv, err := receiver.New(verifier, b.inTx, b.store, c.scheme.Name(), &receiver.Config{Envelope: &receiver.Envelope{}, Logger: new(buffer).logger()})
		require.NoError(t, err)
		for id, want := range c.ids {
			body := []byte(`{"type":"a.b"}`) // the same for all
			h := http.Header{"Content-Type": {"application/json"}}
			require.NoError(t, c.scheme.Sign(h, id, time.Now(), body, keys))
			for _, result := range []receiver.Result{receiver.Applied, receiver.Duplicate} {
				res, err := rcv.Receive(t.Context(), signing.Message{Method: "POST", Header: h, Body: body}, receiver.Fact(func(_ context.Context, _ *sql.Tx, ev receiver.Event) error {
					got = append(got, ev.ID)
					if want != "" {
						require.Equal(t, want, ev.ID)
					} else {
						require.Regexp(t, `^sha256-id-[0-9a-f]{64}$`, ev.ID)
					}
					return nil
				}))
				require.NoError(t, err, "%s %s", c.scheme.Name(), id)
				require.Equal(t, result, res, "%s %s", c.scheme.Name(), id)
			}
		}
		require.Len(t, got, len(c.ids))
		require.Equal(t, len(c.ids), count(t, db, "SELECT count(*) FROM surehook_dedup_markers WHERE scope = ?", c.scheme.Name()))
	}
}

// Events of this module have ids of the narrow form, in the header as in the body.
func TestOwnIDsStayStrict(t *testing.T) {
	b := onMemory()
	keys, err := signing.NewKeyring(signing.Key{ID: "key_1", Secret: testSecret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.StandardWebhooks{}}})
	require.NoError(t, err)
	rcv, err := receiver.New(verifier, b.inTx, b.store, "default", &receiver.Config{Logger: new(buffer).logger()})
	require.NoError(t, err)
	for inBody, reason := range map[string]receiver.Reason{"evt:1": receiver.ReasonDecode, "evt_1": receiver.ReasonIDMismatch} {
		body := []byte(`{"id":"` + inBody + `","type":"a.b","object":{"type":"a","id":"1"},"version":1,"occurred_at":"2026-01-01T00:00:00Z","data":{}}`)
		h := http.Header{"Content-Type": {"application/json"}}
		require.NoError(t, signing.StandardWebhooks{}.Sign(h, "evt:1", time.Now(), body, keys))
		_, err := rcv.Receive(t.Context(), signing.Message{Method: "POST", Header: h, Body: body}, receiver.State(b.effect))
		var failure *receiver.Error
		require.ErrorAs(t, err, &failure, inBody)
		require.Equal(t, reason, failure.Reason, inBody)
	}
}
