package jose_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// A push subscription's messages have one effect each, whatever deliveryAttempt says.
func TestPubSubThroughAReceiver(t *testing.T) {
	s := senders()["google-pubsub"]
	store := memory.New()
	effects := 0
	vendor, _ := vendors.Find("google-pubsub")
	rcv, err := receiver.New(s.verifier(t), store.InTx, store, "pubsub", &receiver.Config{Envelope: receiver.VendorEnvelope(vendor)})
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
		{token(s.alg, s.key, s.header, s.claims), `{"message":{}}`, 400, 2},
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

// The entries of package vendors say the same of these senders as their schemes.
func TestEntriesOfVendors(t *testing.T) {
	all := senders()
	found := 0
	for _, v := range vendors.All() {
		if v.Kind != vendors.JWT {
			continue
		}
		found++
		s, there := all[v.Name]
		require.True(t, there, v.Name)
		require.Equal(t, v.SchemeName(), s.scheme.Name())
		require.Equal(t, http.CanonicalHeaderKey(s.name), v.Description.SignatureHeader)
		says := s.scheme.(interface {
			CoversBody() bool
			ReplayDefence() signing.ReplayDefence
		})
		require.Equal(t, says.CoversBody(), !v.UnsignedBody(), v.Name)
		require.Equal(t, says.ReplayDefence() == signing.TimeWindow, v.SignsTime(), v.Name)
		_, own := s.scheme.(signing.OwnKeys)
		require.Equal(t, own, v.Key == vendors.PublicKeys, v.Name)
		_, err := v.Secret(secret)
		require.Equal(t, own, err != nil)
	}
	require.Equal(t, len(all), found)
}
