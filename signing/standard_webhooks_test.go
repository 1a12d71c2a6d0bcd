package signing_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func TestStandardWebhooksRefusesOtherHeaders(t *testing.T) {
	at := time.Unix(publishedTime, 0)
	keys := ringOf(t, publishedHMAC)
	signature := func(value string) func(http.Header) {
		return func(h http.Header) { h["Webhook-Signature"] = []string{value} }
	}
	bare := publishedV1[3:]
	for _, c := range []struct {
		what string
		set  func(h http.Header)
		want error
	}{
		{"no signature", func(h http.Header) { delete(h, "Webhook-Signature") }, signing.ErrNotSigned},
		{"no id", func(h http.Header) { delete(h, "Webhook-Id") }, signing.ErrMissingHeader},
		{"no timestamp", func(h http.Header) { delete(h, "Webhook-Timestamp") }, signing.ErrMissingHeader},
		{"two signature headers", func(h http.Header) { h.Add("Webhook-Signature", publishedV1) }, signing.ErrRepeatedHeader},
		{"two ids", func(h http.Header) { h.Add("Webhook-Id", publishedID) }, signing.ErrRepeatedHeader},
		{"two timestamps", func(h http.Header) { h.Add("Webhook-Timestamp", "1614265330") }, signing.ErrRepeatedHeader},
		{"empty id", func(h http.Header) { h.Set("Webhook-Id", "") }, signing.ErrMalformedHeader},
		{"id with a full stop", func(h http.Header) { h.Set("Webhook-Id", "msg.1") }, signing.ErrMalformedHeader},
		{"id with a space", func(h http.Header) { h.Set("Webhook-Id", "msg 1") }, signing.ErrMalformedHeader},
		{"id beyond ASCII", func(h http.Header) { h.Set("Webhook-Id", "msgé") }, signing.ErrMalformedHeader},
		{"long id", func(h http.Header) { h.Set("Webhook-Id", strings.Repeat("x", 257)) }, signing.ErrMalformedHeader},
		{"other id of the longest size", func(h http.Header) { h.Set("Webhook-Id", strings.Repeat("x", 256)) }, signing.ErrSignatureMismatch},
		{"other id", func(h http.Header) { h.Set("Webhook-Id", publishedID+"x") }, signing.ErrSignatureMismatch},
		{"empty", signature(""), signing.ErrMalformedHeader},
		{"spaces", signature("   "), signing.ErrMalformedHeader},
		{"no version", signature(bare), signing.ErrMalformedHeader},
		{"no signature after the version", signature("v1"), signing.ErrMalformedHeader},
		{"unknown versions only", signature("v0," + bare + " v3," + bare + " V1," + bare), signing.ErrMalformedHeader},
		{"joined by commas", signature(publishedV1 + "," + publishedV1), signing.ErrMalformedHeader},
		{"joined by comma and space", signature(otherV1 + ", " + publishedV1), signing.ErrMalformedHeader},
		{"joined with space before the comma", signature(otherV1 + " ," + publishedV1), signing.ErrMalformedHeader},
		{"no padding", signature(strings.TrimRight(publishedV1, "=")), signing.ErrMalformedHeader},
		{"trailing bits", signature(strings.TrimSuffix(publishedV1, "E=") + "F="), signing.ErrMalformedHeader},
		{"URL alphabet", signature(strings.ReplaceAll(publishedV1, "+", "-")), signing.ErrMalformedHeader},
		{"trailing newline", signature(publishedV1 + "\n"), signing.ErrMalformedHeader},
		{"line break within", signature(publishedV1[:20] + "\n" + publishedV1[20:]), signing.ErrMalformedHeader},
		{"line breaks for letters", signature(publishedV1[:20] + "\r\n\r\n" + publishedV1[24:]), signing.ErrMalformedHeader},
		{"tab for space", signature(otherV1 + "\t" + publishedV1), signing.ErrMalformedHeader},
		{"truncated MAC", signature("v1," + bare[:20]), signing.ErrMalformedHeader},
		{"MAC of 31 bytes", signature("v1," + bare[:40] + "AA=="), signing.ErrMalformedHeader},
		{"MAC of 33 bytes", signature("v1," + bare[:42] + "AA"), signing.ErrMalformedHeader},
		{"v1a too short", signature("v1a," + publishedV1a[4:84] + "AAA="), signing.ErrMalformedHeader},
		{"17 signatures", signature(strings.Repeat(otherV1+" ", 16) + publishedV1), signing.ErrMalformedHeader},
		{"five signatures of Ed25519", signature(strings.Repeat(publishedV1a+" ", 4) + publishedV1a), signing.ErrMalformedHeader},
		{"17 entries of any kind", signature(strings.Repeat("v9,x ", 16) + publishedV1), signing.ErrMalformedHeader},
		{"thousands of signatures", signature(strings.Repeat(otherV1+" ", 20000)), signing.ErrMalformedHeader},
		{"hex", signature("v1," + strings.Repeat("0f", 32)), signing.ErrMalformedHeader},
		{"other MAC", signature(otherV1), signing.ErrSignatureMismatch},
	} {
		m := published(publishedV1)
		c.set(m.Header)
		_, err := signing.StandardWebhooks{}.Verify(m, keys, at, tolerance)
		require.ErrorIs(t, err, c.want, c.what)
		require.NotContains(t, err.Error(), bare[:12], c.what)
		err = signing.StandardWebhooks{}.Precheck(m.Header, at, tolerance)
		if errors.Is(c.want, signing.ErrSignatureMismatch) {
			require.NoError(t, err, c.what)
		} else {
			require.ErrorIs(t, err, c.want, c.what)
		}
	}
}

func TestStandardWebhooksAcceptsLists(t *testing.T) {
	at := time.Unix(publishedTime, 0)
	keys := ringOf(t, publishedHMAC)
	for what, value := range map[string]string{
		"first":                publishedV1 + " " + otherV1,
		"last of 16":           strings.Repeat(otherV1+" ", 15) + publishedV1,
		"twice":                publishedV1 + " " + publishedV1,
		"beside a later one":   "v3,{signature} " + publishedV1,
		"beside a v1a":         publishedV1a + " " + publishedV1,
		"beside a broken one":  "v1,?? " + publishedV1,
		"beside no version":    "garbage " + publishedV1,
		"with a doubled space": otherV1 + "  " + publishedV1,
	} {
		m := published(value)
		_, err := signing.StandardWebhooks{}.Verify(m, keys, at, tolerance)
		require.NoError(t, err, what)
		require.NoError(t, signing.StandardWebhooks{}.Precheck(m.Header, at, tolerance), what)
	}
	_, err := signing.StandardWebhooks{}.Verify(published(strings.Repeat(publishedV1a+" ", 3)+publishedV1a), ringOf(t, publishedPublic), at, tolerance)
	require.NoError(t, err, "v1a four times")

	m := published(publishedV1)
	lowerCase(m.Header)
	_, err = signing.StandardWebhooks{}.Verify(m, keys, at, tolerance)
	require.NoError(t, err, "raw lower-case names")
}

func TestStandardWebhooksSignsWithEveryValidKey(t *testing.T) {
	old, current, next, gone := signing.GenerateSecret(), signing.GenerateSecret(), signing.GenerateSecret(), signing.GenerateSecret()
	keys := ring(t,
		signing.Key{ID: "old", Secret: old, NotAfter: now.Add(time.Hour)},
		signing.Key{ID: "ed", Secret: secret(t, publishedPrivate), NotBefore: now.Add(-time.Hour)},
		signing.Key{ID: "current", Secret: current, NotBefore: now.Add(-time.Minute)},
		signing.Key{ID: "next", Secret: next, NotBefore: now.Add(time.Second)},
		signing.Key{ID: "gone", Secret: gone, NotAfter: now.Add(-time.Second)},
		signing.Key{ID: "plain", Secret: secret(t, plainText), NotBefore: now.Add(-time.Second)},
		signing.Key{ID: "public", Secret: secret(t, publishedPublic), NotAfter: now.Add(-time.Hour)},
	)
	m := signed(t, signing.StandardWebhooks{}, keys, now)
	signatures := strings.Split(m.Header.Get("Webhook-Signature"), " ")
	require.Len(t, signatures, 3)
	for i, s := range []signing.Secret{current, secret(t, publishedPublic), old} {
		m.Header.Set("Webhook-Signature", signatures[i])
		_, err := signing.StandardWebhooks{}.Verify(m, ring(t, signing.Key{Secret: s}), now, tolerance)
		require.NoError(t, err, "signature %d", i)
	}
}

func TestStandardWebhooksSignsOnlyWithSecretsThatSuit(t *testing.T) {
	for what, text := range map[string]string{
		"plain text":            plainText,
		"base64 without prefix": publishedHMAC[6:],
		"public key":            publishedPublic,
	} {
		h := http.Header{}
		err := signing.StandardWebhooks{}.Sign(h, eventID, now, body, ringOf(t, text))
		require.ErrorIs(t, err, signing.ErrSecretUnsuited, what)
		require.Empty(t, h, what)
	}
	m := published(publishedV1)
	_, err := signing.StandardWebhooks{}.Verify(m, ringOf(t, plainText), time.Unix(publishedTime, 0), tolerance)
	require.ErrorIs(t, err, signing.ErrNoValidKey)
}
