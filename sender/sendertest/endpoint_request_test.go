package sendertest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

const body = `{"id":"evt_1","type":"subscriber.updated"}`

// signed signs a body with the schemes, lets the test change the request, and posts it.
func signed(t *testing.T, secret signing.Secret, at time.Time, schemes []signing.Scheme, meddle func(*http.Request)) sendertest.Request {
	t.Helper()
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://receiver.test/hooks", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, signing.Sign(req.Header, schemes, "evt_1", at, []byte(body), keys))
	if meddle != nil {
		meddle(req)
	}
	rt := sendertest.NewRoundTripper()
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return rt.Requests()[0]
}

func TestVerify(t *testing.T) {
	secret := signing.GenerateSecret()
	raw, err := signing.ParseSecret("correct-horse-battery-staple")
	require.NoError(t, err)
	hex, err := signing.ParseSecret("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef") // also base64, which verifies and does not sign
	require.NoError(t, err)
	both, first := signing.DefaultSchemes(), []signing.Scheme{signing.TimestampBody{}}
	timeless := []signing.Scheme{signing.GitHub()}
	ofID, err := signing.NewDescribed(signing.Description{
		Name: "of-the-id", SignatureHeader: "X-Signature", TimestampHeader: "X-Time", Signed: "{timestamp}.{field:id}",
	})
	require.NoError(t, err)
	bodiless := []signing.Scheme{ofID}
	now := time.Now()
	tests := []struct {
		name    string
		secret  signing.Secret
		at      time.Time
		schemes []signing.Scheme
		meddle  func(*http.Request)
		asked   []signing.Scheme
		is      error
		says    string
	}{
		{name: "both schemes", secret: secret, schemes: both},
		{name: "a raw secret has one scheme", secret: raw, schemes: both},
		{name: "a raw secret that is base64, too", secret: hex, schemes: both},
		{name: "a raw secret that is base64, too, for the scheme that does not sign with it", secret: hex, schemes: first, asked: []signing.Scheme{signing.StandardWebhooks{}}, is: signing.ErrSecretUnsuited},
		{name: "one scheme, asked for it alone", secret: secret, schemes: first, asked: first},
		{name: "one scheme, asked for both", secret: secret, schemes: first, is: signing.ErrMissingHeader, says: "standard-webhooks: "},
		{name: "the other scheme's signature is wrong", secret: secret, schemes: both, is: signing.ErrSignatureMismatch, says: "standard-webhooks: ",
			meddle: func(r *http.Request) { r.Header.Set("Webhook-Id", "evt_2") }},
		{name: "another body", secret: secret, schemes: both, is: signing.ErrSignatureMismatch, says: "timestamp-body: ",
			meddle: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{}")) }},
		{name: "a stale timestamp", secret: secret, schemes: both, at: now.Add(-time.Hour), is: signing.ErrTimestampOutsideWindow},
		{name: "a scheme that does not suit the secret", secret: raw, schemes: first, asked: []signing.Scheme{signing.StandardWebhooks{}}, is: signing.ErrSecretUnsuited},
		{name: "a scheme that covers no time", secret: secret, schemes: timeless, asked: timeless},
		{name: "a scheme that covers no time, and another body", secret: secret, schemes: timeless, asked: timeless, is: signing.ErrSignatureMismatch, says: "github: ",
			meddle: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{}")) }},
		{name: "a scheme that does not cover the body", secret: secret, schemes: bodiless, asked: bodiless, says: "do not cover the body"},
		{name: "no scheme", secret: secret, schemes: first, asked: []signing.Scheme{nil}, says: "nil"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			at := test.at
			if at.IsZero() {
				at = now
			}
			got := signed(t, test.secret, at, test.schemes, test.meddle).Verify(test.secret, test.asked...)
			if test.is == nil && test.says == "" {
				require.NoError(t, got)
				return
			}
			require.ErrorContains(t, got, test.says)
			if test.is != nil {
				require.ErrorIs(t, got, test.is)
			}
			require.NotContains(t, got.Error(), test.secret.Reveal())
		})
	}
}

func TestVerifyWithAnotherSecret(t *testing.T) {
	post := signed(t, signing.GenerateSecret(), time.Now(), signing.DefaultSchemes(), nil)
	err := post.Verify(signing.GenerateSecret())
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	require.ErrorContains(t, err, "timestamp-body: ")
	require.ErrorContains(t, err, "standard-webhooks: ")
	require.Error(t, post.Verify(signing.Secret{}), "a zero secret verifies nothing")
}

func TestVerifyJudgesTheTimeOfReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret := signing.GenerateSecret()
		post := signed(t, secret, time.Now(), signing.DefaultSchemes(), nil)
		time.Sleep(time.Hour)
		require.NoError(t, post.Verify(secret))
	})
}
