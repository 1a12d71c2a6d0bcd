package signing_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

const (
	eventID   = "evt_0123456789abcdefghijklmn"
	tolerance = 300 * time.Second
	plainText = "correct-horse-battery-staple"
)

var (
	now  = time.Unix(1_700_000_000, 0)
	body = []byte(`{"id":"evt_0123456789abcdefghijklmn","type":"subscriber.updated"}`)
)

func secret(tb testing.TB, text string) signing.Secret {
	tb.Helper()
	s, err := signing.ParseSecret(text)
	require.NoError(tb, err)
	return s
}

func ring(tb testing.TB, keys ...signing.Key) *signing.Keyring {
	tb.Helper()
	r, err := signing.NewKeyring(keys...)
	require.NoError(tb, err)
	return r
}

func ringOf(tb testing.TB, texts ...string) *signing.Keyring {
	tb.Helper()
	var keys []signing.Key
	for _, text := range texts {
		keys = append(keys, signing.Key{Secret: secret(tb, text)})
	}
	return ring(tb, keys...)
}

// signed returns a message that scheme has signed at the given time.
func signed(tb testing.TB, scheme signing.Scheme, keys *signing.Keyring, at time.Time) signing.Message {
	tb.Helper()
	m := signing.Message{Header: http.Header{}, Body: body}
	require.NoError(tb, scheme.Sign(m.Header, eventID, at, m.Body, keys))
	return m
}

// timestampBodyMAC is made without the package, from what the scheme is documented to be.
func timestampBodyMAC(text, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(text))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// refused holds both halves to the same answer.
func refused(tb testing.TB, s signing.Scheme, m signing.Message, keys *signing.Keyring, at time.Time, want error, what string) {
	tb.Helper()
	_, err := s.Verify(m, keys, at, tolerance)
	require.ErrorIs(tb, err, want, what)
	err = s.Precheck(m.Header, at, tolerance)
	require.ErrorIs(tb, err, want, "Precheck: "+what)
}
