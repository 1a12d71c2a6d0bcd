package jose_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
)

// A push subscription's messages have one effect each, whatever deliveryAttempt says.
func TestPubSubThroughAReceiver(t *testing.T) {
	s := senders()["google-pubsub"]
	store := memory.New()
	effects := 0
	rcv, err := receiver.New(s.verifier(t), store.InTx, store, "pubsub", &receiver.Config{Envelope: &receiver.Envelope{
		DataField: "message",
		Read: func(ev *receiver.Event) error {
			var body struct {
				Message struct{ MessageID string }
			}
			if err := json.Unmarshal(ev.Body, &body); err != nil || body.Message.MessageID == "" {
				return errors.New("there is no messageId")
			}
			ev.ID = body.Message.MessageID
			return nil
		},
	}})
	require.NoError(t, err)
	h := rcv.Handler(receiver.Fact(func(context.Context, *memory.Tx, receiver.Event) error {
		effects++
		return nil
	}))
	for _, c := range []struct {
		token, body string
		status      int
		effects     int
	}{
		{token(s.alg, s.key, s.header, s.claims), s.body, 200, 1},
		{token(s.alg, s.key, s.header, s.claims), s.body, 200, 1},
		{token(s.alg, s.key, s.header, s.claims.with("iat", now.Unix())), strings.Replace(s.body, `"deliveryAttempt":1`, `"deliveryAttempt":2`, 1), 200, 1},
		{token(s.alg, s.key, s.header, s.claims), strings.Replace(s.body, "2070443601311540", "2070443601311541", 1), 200, 2},
		{token(s.alg, s.key, s.header, s.claims.with("email", "mallory@evil.iam.gserviceaccount.com")), strings.Replace(s.body, "2070443601311540", "1", 1), 401, 2},
	} {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		req.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		text, _ := io.ReadAll(w.Body)
		require.Equal(t, c.status, w.Code, string(text))
		require.Equal(t, c.effects, effects)
	}
}
