package signing_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func newTwilio(t *testing.T, url string) *signing.Twilio {
	t.Helper()
	s, err := signing.NewTwilio(url)
	require.NoError(t, err)
	return s
}

func TestTwilioForms(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	s := newTwilio(t, "https://example.com/sms")
	h := http.Header{}
	require.NoError(t, s.Sign(h, eventID, now, []byte("B=2&A=1+1&A=0&C="), keys))
	require.Equal(t, eventID, h.Get("I-Twilio-Idempotency-Token"))
	for body, same := range map[string]bool{
		"B=2&A=1+1&A=0&C=":       true,
		"A=0&A=1%201&B=2&C=":     true,
		"A=0&A=1%201&B=2&C":      true,
		"A=0&A=0&A=1%201&B=2&C=": true, // a set of values, as Twilio's libraries have it
		"A=1+1&B=2&C=":           false,
		"A=0&A=11&B=2&C=":        false,
		"A=0&A=1+1&B=2":          false,
		"":                       false,
	} {
		_, err := s.Verify(signing.Message{URL: "/sms", Header: h, Body: []byte(body)}, keys, now, tolerance)
		require.Equal(t, same, err == nil, body)
	}

	require.ErrorContains(t, s.Sign(h, eventID, now, []byte("A=%zz"), keys), "well-formed")
	require.ErrorContains(t, new(signing.Twilio).Sign(http.Header{}, eventID, now, nil, keys), "has no URL")

	many := []byte(strings.Repeat("A=1&", 1000))
	require.NoError(t, s.Sign(h, eventID, now, many, keys))
	_, err := s.Verify(signing.Message{URL: "/sms", Header: h, Body: many}, keys, now, tolerance)
	require.NoError(t, err)
	require.ErrorContains(t, s.Sign(h, eventID, now, append(many, "A=1"...), keys), "at most 1000")
	_, err = s.Verify(signing.Message{URL: "/sms", Header: h, Body: append(many, "A=1"...)}, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
}

func TestTwilioHashedBodies(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	for _, url := range []string{"https://example.com/sms", "https://example.com/sms?x=1"} {
		s := newTwilio(t, url)
		h := http.Header{"Content-Type": {"application/json"}}
		require.NoError(t, s.Sign(h, eventID, now, body, keys))
		target := s.HashURL(body)
		require.True(t, strings.HasPrefix(target, url), target)
		_, err := s.Verify(signing.Message{URL: target, Header: h, Body: body}, keys, now, tolerance)
		require.NoError(t, err)
		for what, m := range map[string]signing.Message{
			"other body":      {URL: target, Body: append([]byte(" "), body...)},
			"no hash":         {URL: url, Body: body},
			"upper case hash": {URL: strings.ToUpper(target), Body: body},
		} {
			m.Header = h
			_, err := s.Verify(m, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, what)
		}
	}
}

// Parameters have nothing between them in the text that Twilio signs. The text of a message
// must not become a part of the URL, where it could say which body is right.
func TestTwilioParametersAreNoURL(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	hash := strings.TrimPrefix(newTwilio(t, "https://example.com/").HashURL(body), "https://example.com/?")

	s := newTwilio(t, "https://example.com/sms")
	h := http.Header{}
	require.NoError(t, s.Sign(h, eventID, now, []byte("Body=%3F"+strings.Replace(hash, "=", "%3D", 1)), keys))
	_, err := s.Verify(signing.Message{URL: "/smsBody?" + hash, Header: h, Body: body}, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)

	s = newTwilio(t, "https://example.com/sms?x=1")
	require.NoError(t, s.Sign(h, eventID, now, []byte("Body=%26"+strings.Replace(hash, "=", "%3D", 1)+"&From=%2B1"), keys))
	_, err = s.Verify(signing.Message{URL: "/sms?x=1Body&" + hash + "From+1", Header: h, Body: body}, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
}

func TestTwilioURLs(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	for _, c := range []struct {
		signs, verifies, target string
		ok                      bool
	}{
		{"https://example.com/sms", "https://example.com:443/sms", "/sms", true},
		{"https://example.com:443/sms", "https://example.com/sms", "/sms", true},
		{"http://example.com/sms", "http://example.com:80/sms", "/sms", true},
		{"https://example.com:8443/sms", "https://example.com:8443/sms", "/sms", true},
		{"https://example.com", "https://example.com", "/", true},
		{"https://example.com/", "https://example.com/", "https://example.com/", true},
		{"https://example.com/", "https://example.com/", "https://example.com", false},
		{"https://example.com/?a=1", "https://example.com/", "/?a=1", true},
		{"https://example.com/?a=1", "https://example.com/", "/?a=2", false},
		{"https://example.com/sms", "http://example.com/sms", "/sms", false},
		{"https://example.com/sms", "https://example.org/sms", "/sms", false},
		{"https://example.com/sms", "https://example.com/sms", "/SMS", false},
		{"https://example.com/sms", "https://example.com/sms", "/sms/", false},
		{"https://example.com/sms", "https://example.com/sms", "/sms?", false},
	} {
		h := http.Header{}
		require.NoError(t, newTwilio(t, c.signs).Sign(h, eventID, now, []byte("A=1"), keys))
		_, err := newTwilio(t, c.verifies).Verify(signing.Message{URL: c.target, Header: h, Body: []byte("A=1")}, keys, now, tolerance)
		require.Equal(t, c.ok, err == nil, "%+v: %v", c, err)
	}
}
