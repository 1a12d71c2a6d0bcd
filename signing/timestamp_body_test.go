package signing_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func TestTimestampBody(t *testing.T) {
	h := http.Header{"Other": {"kept"}, "webhook-timestamp": {"left over"}}
	at := time.Unix(publishedTime, 999_999_999)
	keys := ringOf(t, publishedHMAC)
	require.NoError(t, signing.TimestampBody{}.Sign(h, publishedID, at, []byte(publishedBody), keys))
	// openssl dgst -sha256 -hmac whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
	require.Empty(t, cmp.Diff(http.Header{
		"Other":               {"kept"},
		"Webhook-Id":          {publishedID},
		"Webhook-Timestamp":   {"1614265330"},
		"Webhook-Hmac-Sha256": {"2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964"},
	}, h))

	verified, err := signing.TimestampBody{}.Verify(signing.Message{Header: h, Body: []byte(publishedBody)}, keys, at, tolerance)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(signing.Verified{
		Scheme:    "timestamp-body",
		KeyID:     secret(t, publishedHMAC).Fingerprint(),
		Timestamp: time.Unix(publishedTime, 0).UTC(),
	}, verified), "the id is not covered, so it must not be reported")
}

func TestTimestampBodyWithKeysAndBodiesOfAllSizes(t *testing.T) {
	keyBytes := strings.Repeat("0123456789abcdef", 10)
	for _, n := range []int{24, 63, 64, 65, 131} {
		for _, size := range []int{0, 1, 42, 52, 53, 54, 64, 1000} {
			b := []byte(strings.Repeat("\x00\xff{", size))[:size]
			h := http.Header{}
			keys := ringOf(t, keyBytes[:n])
			require.NoError(t, signing.TimestampBody{}.Sign(h, eventID, now, b, keys))
			require.Equal(t, timestampBodyMAC(keyBytes[:n], seconds(now), b), h.Get("Webhook-Hmac-Sha256"), "%d %d", n, size)
			_, err := signing.TimestampBody{}.Verify(signing.Message{Header: h, Body: b}, keys, now, tolerance)
			require.NoError(t, err)
		}
	}
}

func TestTimestampBodyRefusesOtherHeaders(t *testing.T) {
	keys := ringOf(t, plainText)
	good := timestampBodyMAC(plainText, seconds(now), body)
	for _, c := range []struct {
		what string
		set  func(h http.Header)
		want error
	}{
		{"no signature", func(h http.Header) { delete(h, "Webhook-Hmac-Sha256") }, signing.ErrNotSigned},
		{"no signature, the other sentinel", func(h http.Header) { h["Webhook-Hmac-Sha256"] = nil }, signing.ErrMissingHeader},
		{"no timestamp", func(h http.Header) { delete(h, "Webhook-Timestamp") }, signing.ErrMissingHeader},
		{"two signatures", func(h http.Header) { h.Add("Webhook-Hmac-Sha256", good) }, signing.ErrRepeatedHeader},
		{"two timestamps", func(h http.Header) { h.Add("Webhook-Timestamp", seconds(now)) }, signing.ErrRepeatedHeader},
		{"two ids", func(h http.Header) { h.Add("Webhook-Id", eventID) }, signing.ErrRepeatedHeader},
		{"two spellings", func(h http.Header) {
			delete(h, "Webhook-Timestamp")
			h["webhook-timestamp"], h["WEBHOOK-TIMESTAMP"] = []string{seconds(now)}, []string{seconds(now)}
		}, signing.ErrRepeatedHeader},
		{"joined signatures", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", good+", "+good) }, signing.ErrMalformedHeader},
		{"joined timestamps", func(h http.Header) { h.Set("Webhook-Timestamp", "1700000000, 1700000000") }, signing.ErrMalformedHeader},
		{"empty signature", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", "") }, signing.ErrMalformedHeader},
		{"upper case", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", strings.ToUpper(good)) }, signing.ErrMalformedHeader},
		{"one upper case digit", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", strings.Repeat("0", 63)+"A") }, signing.ErrMalformedHeader},
		{"odd digits", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", good[:63]) }, signing.ErrMalformedHeader},
		{"short", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", good[:62]) }, signing.ErrMalformedHeader},
		{"long", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", good+"00") }, signing.ErrMalformedHeader},
		{"leading space", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", " "+good) }, signing.ErrMalformedHeader},
		{"trailing newline", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", good+"\n") }, signing.ErrMalformedHeader},
		{"prefix", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", "sha256="+good) }, signing.ErrMalformedHeader},
		{"not hex", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", "g"+good[1:]) }, signing.ErrMalformedHeader},
		{"not ASCII", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", "\xff"+good[1:]) }, signing.ErrMalformedHeader},
		{"other MAC", func(h http.Header) { h.Set("Webhook-Hmac-Sha256", strings.Repeat("0", 64)) }, signing.ErrSignatureMismatch},
		{"other timestamp", func(h http.Header) { h.Set("Webhook-Timestamp", "1700000001") }, signing.ErrSignatureMismatch},
	} {
		m := signed(t, signing.TimestampBody{}, keys, now)
		c.set(m.Header)
		_, err := signing.TimestampBody{}.Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, c.want, c.what)
		require.NotContains(t, err.Error(), good, c.what)
		err = signing.TimestampBody{}.Precheck(m.Header, now, tolerance)
		if errors.Is(c.want, signing.ErrSignatureMismatch) {
			require.NoError(t, err, c.what)
		} else {
			require.ErrorIs(t, err, c.want, c.what)
		}
	}
}

func TestTimestampBodyAcceptsWhatIsNotItsConcern(t *testing.T) {
	keys := ringOf(t, plainText)
	for what, set := range map[string]func(h http.Header){
		"no id":             func(h http.Header) { delete(h, "Webhook-Id") },
		"id of other form":  func(h http.Header) { h.Set("Webhook-Id", "evt.1:2") },
		"raw lower case":    lowerCase,
		"other signatures":  func(h http.Header) { h["Webhook-Signature"] = []string{"v1,x", "v1,y"} },
		"header of one len": func(h http.Header) { h["Xebhook-Timestamp"] = []string{"1", "2"} },
	} {
		m := signed(t, signing.TimestampBody{}, keys, now)
		set(m.Header)
		_, err := signing.TimestampBody{}.Verify(m, keys, now, tolerance)
		require.NoError(t, err, what)
		require.NoError(t, signing.TimestampBody{}.Precheck(m.Header, now, tolerance), what)
	}
}

func lowerCase(h http.Header) {
	for name, values := range h {
		delete(h, name)
		h[strings.ToLower(name)] = values
	}
}

func TestEveryBitOfASignatureCounts(t *testing.T) {
	keys := ringOf(t, publishedHMAC, publishedPrivate)
	for _, c := range []struct {
		scheme signing.Scheme
		header string
		bits   func(value string) []string
	}{
		{signing.TimestampBody{}, "Webhook-Hmac-Sha256", func(value string) (all []string) {
			for _, raw := range flips(unhex(t, value)) {
				all = append(all, hex.EncodeToString(raw))
			}
			return all
		}},
		{signing.StandardWebhooks{}, "Webhook-Signature", func(value string) (all []string) {
			for entry := range strings.SplitSeq(value, " ") {
				version, signature, _ := strings.Cut(entry, ",")
				for _, raw := range flips(decoded(signature)) {
					all = append(all, version+","+base64.StdEncoding.EncodeToString(raw))
				}
			}
			return all
		}},
	} {
		m := signed(t, c.scheme, keys, now)
		changed := c.bits(m.Header.Get(c.header))
		require.GreaterOrEqual(t, len(changed), 256)
		for _, value := range changed {
			m.Header.Set(c.header, value)
			_, err := c.scheme.Verify(m, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch)
		}
	}
}

// flips returns raw with each of its bits changed, one at a time.
func flips(raw []byte) (all [][]byte) {
	for i := range 8 * len(raw) {
		changed := bytes.Clone(raw)
		changed[i/8] ^= 1 << (i % 8)
		all = append(all, changed)
	}
	return all
}

// The bytes are signed as they are: what a proxy or a framework adds or takes away
// is another body.
func TestTimestampBodyTrimsNothing(t *testing.T) {
	keys := ringOf(t, plainText)
	for what, b := range map[string]string{
		"newline":         string(body) + "\n",
		"CRLF":            string(body) + "\r\n",
		"byte order mark": "\ufeff" + string(body),
		"space":           " " + string(body),
		"truncated":       string(body[:len(body)-1]),
		"empty":           "",
	} {
		m := signed(t, signing.TimestampBody{}, keys, now)
		m.Body = []byte(b)
		_, err := signing.TimestampBody{}.Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, what)
	}
}

// A MAC over "T.99.rest" must not pass for the timestamp "T.99" with the body "rest".
func TestTimestampBodyCannotBeSplitInTwoWays(t *testing.T) {
	keys := ringOf(t, plainText)
	m := signing.Message{Header: http.Header{
		"Webhook-Timestamp":   {seconds(now) + ".99"},
		"Webhook-Hmac-Sha256": {timestampBodyMAC(plainText, seconds(now), []byte("99.rest"))},
	}, Body: []byte("rest")}
	refused(t, signing.TimestampBody{}, m, keys, now, signing.ErrMalformedHeader, "split")
}

// Anyone who knows a public key could make HMACs with it.
func TestTimestampBodyNeverUsesAPublicKey(t *testing.T) {
	for _, text := range []string{publishedPublic, publishedPrivate} {
		keys := ringOf(t, text)
		m := signed(t, signing.TimestampBody{}, ringOf(t, plainText), now)
		for _, keyText := range []string{text, string(decoded(text[5:]))} {
			m.Header.Set("Webhook-Hmac-Sha256", timestampBodyMAC(keyText, seconds(now), body))
			_, err := signing.TimestampBody{}.Verify(m, keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrNoValidKey)
			require.ErrorIs(t, err, signing.ErrSecretUnsuited)
		}
		require.ErrorIs(t, signing.TimestampBody{}.Sign(http.Header{}, eventID, now, body, keys), signing.ErrSecretUnsuited)
	}
}

func TestTimestampBodyWithOtherHeaderNames(t *testing.T) {
	s := signing.TimestampBody{IDHeader: "x-id", TimestampHeader: "X-time", SignatureHeader: "X-SIGNATURE"}
	keys := ringOf(t, plainText)
	m := signed(t, s, keys, now)
	require.ElementsMatch(t, []string{"X-Id", "X-Time", "X-Signature"}, names(m.Header))
	_, err := s.Verify(m, keys, now, tolerance)
	require.NoError(t, err)
	refused(t, signing.TimestampBody{}, m, keys, now, signing.ErrNotSigned, "default names")
}

func names(h http.Header) (all []string) {
	for name := range h {
		all = append(all, name)
	}
	return all
}
