package signing_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

const diagnosedSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// signedWith is "TIMESTAMP.BODY" under any key, as somebody else's code makes it.
func signedWith(at time.Time, key, body string) signing.Message {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(stamp + "." + body))
	return signing.Message{Header: http.Header{
		"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {stamp}, "Webhook-Hmac-Sha256": {hex.EncodeToString(mac.Sum(nil))},
	}, Body: []byte(body)}
}

func diagnosing(t *testing.T, cfg *signing.VerifierConfig, keys ...signing.Key) *signing.Verifier {
	t.Helper()
	if keys == nil {
		secret, err := signing.ParseSecret(diagnosedSecret)
		require.NoError(t, err)
		keys = []signing.Key{{ID: "key_1", Secret: secret}}
	}
	ring, err := signing.NewKeyring(keys...)
	require.NoError(t, err)
	v, err := signing.NewVerifier(ring, cfg)
	require.NoError(t, err)
	return v
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// A change after signing is found, and the message stays refused.
func TestDiagnoseBody(t *testing.T) {
	v := diagnosing(t, nil)
	const reserialised = "parsed and serialised again"
	for _, c := range []struct{ signed, arrived, want string }{
		{`{"a":1}`, "{\"a\":1}\n", "white space around it was added"},
		{"{\"a\":1}\n", `{"a":1}`, "the newline at its end was removed"},
		{"{\r\n}", "{\n}", "line ends were CR LF"},
		{"{\n}", "{\r\n}", "line ends were LF"},
		{`{"a":1}`, "\ufeff{\"a\":1}", "a byte order mark was added"},
		{"\ufeff{}", "{}", "byte order mark was removed"},
		{`{"a":1}`, base64.StdEncoding.EncodeToString([]byte(`{"a":1}`)), "base64, as API gateways do"},
		{`{"a":1}`, zipped(t, `{"a":1}`), "the signature is of the uncompressed body"},
		{`{"a": 1, "b": [1, 2]}`, `{"a":1,"b":[1,2]}`, reserialised},
		{`{"a":1,"b":"x: \"y, z"}`, `{"a": 1, "b": "x: \"y, z"}`, reserialised},
		{`{"b": "x:\"y,z", "a": 1}`, `{"b":"x:\"y,z","a":1}`, reserialised},
		{"{\n  \"a\": 1\n}", `{"a":1}`, reserialised},
		{`{"a":"\u00fc\ud83d\ude00"}`, `{"a": "ü😀"}`, reserialised},
		{`{"a":"http:\/\/x"}`, `{"a":"http://x"}`, reserialised},
		{`{"a":2,"b":12345678901234567890}`, `{"b":12345678901234567890,"a":2}`, reserialised},
		{`{"a":1}`, "", "the body is empty"},
	} {
		m := signedWith(time.Now(), diagnosedSecret, c.signed)
		m.Body = []byte(c.arrived)
		found := v.Diagnose(m)
		require.Len(t, found, 1, c.arrived)
		require.Contains(t, found[0], c.want)
		_, err := v.Verify(m)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch)
	}
	m := signedWith(time.Now(), diagnosedSecret, `{"a":1}`)
	require.Empty(t, v.Diagnose(m), "there is nothing wrong")
	m.Body = []byte(`{"a":2}`)
	forged := v.Diagnose(m)
	require.Len(t, forged, 1, "forged")
	require.Contains(t, forged[0], "no known mistake explains the signature")
	large := strings.Repeat("x", 256<<10)
	m = signedWith(time.Now(), diagnosedSecret, large)
	m.Body = []byte(large + "\n")
	require.Empty(t, v.Diagnose(m), "too large to try")
}

// How the sender has the key is found, without a byte of it in the sentence.
func TestDiagnoseSecret(t *testing.T) {
	bare := strings.TrimPrefix(diagnosedSecret, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(bare)
	require.NoError(t, err)
	v := diagnosing(t, nil)
	for key, want := range map[string]string{
		bare:                         `the text of the key "key_1" without its prefix whsec_`,
		string(raw):                  "the decoded base64 of",
		diagnosedSecret + "\n":       `white space behind it ("\n")`,
		diagnosedSecret + " ":        `white space behind it (" ")`,
		" " + diagnosedSecret:        "white space before it",
		`"` + diagnosedSecret + `"`:  "in quotation marks",
		"another secret, altogether": "it may have rotated its secret",
	} {
		found := v.Diagnose(signedWith(time.Now(), key, `{"a":1}`))
		require.Len(t, found, 1, want)
		require.Contains(t, found[0], want)
		require.Contains(t, found[0], `"key_1"`)
		require.NotContains(t, found[0], bare[:6])
	}
	// The other way round: the text where the decoded bytes are meant.
	v = diagnosing(t, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.StandardWebhooks{}}})
	at := time.Now()
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(diagnosedSecret))
	mac.Write([]byte("evt_1." + stamp + ".{}"))
	m := signing.Message{Header: http.Header{
		"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {stamp},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}, Body: []byte("{}")}
	require.Equal(t, []string{`the sender's key is the text of the key "key_1"`}, v.Diagnose(m))

	hexed := hex.EncodeToString([]byte("thirty-two bytes, no more, no le"))
	secret, err := signing.ParseSecret(hexed)
	require.NoError(t, err)
	found := diagnosing(t, nil, signing.Key{ID: "h", Secret: secret}).Diagnose(signedWith(at, "thirty-two bytes, no more, no le", "{}"))
	require.Equal(t, []string{`the sender's key is the decoded hex of the key "h"`}, found)
}

// A prefix that was cut off is named rather than the scheme that needs none, and an old
// secret rather than the scheme that still carries its signature. Fingerprints are there to
// compare, and nothing of a secret is.
func TestDiagnosePrefixAndRotation(t *testing.T) {
	bare := strings.TrimPrefix(diagnosedSecret, "whsec_")
	whole, err := signing.ParseSecret(diagnosedSecret)
	require.NoError(t, err)
	cut, err := signing.ParseSecret(bare)
	require.NoError(t, err)
	hex := &signing.VerifierConfig{Schemes: []signing.Scheme{signing.TimestampBody{}}}
	send := func(body string, keys ...signing.Key) signing.Message {
		ring, err := signing.NewKeyring(keys...)
		require.NoError(t, err)
		h := http.Header{}
		require.NoError(t, signing.Sign(h, signing.DefaultSchemes(), "evt_1", time.Now(), []byte(body), ring))
		return signing.Message{Header: h, Body: []byte(body)}
	}
	v := diagnosing(t, nil, signing.Key{ID: "cut", Secret: cut})
	require.Equal(t, []string{`the prefix whsec_ of the key "cut" was cut off: give the secret exactly as the sender shows it`},
		v.Diagnose(send("{}", signing.Key{Secret: whole})), "with the schemes of NewReceiver")
	v = diagnosing(t, hex, signing.Key{ID: "cut", Secret: cut})
	require.Equal(t, []string{`the prefix whsec_ of the key "cut" was cut off: give the secret exactly as the sender shows it`},
		v.Diagnose(send("{}", signing.Key{Secret: whole})))
	require.Equal(t, []string{`the prefix whsec_ of the key "cut" was cut off: give the secret exactly as the sender shows it`},
		v.Diagnose(signedWith(time.Now(), diagnosedSecret, "{}")), "with one signature alone")
	v = diagnosing(t, hex, signing.Key{ID: "added", Secret: whole})
	require.Equal(t, []string{`the sender's key is the text of the key "added" without its prefix whsec_: the prefix was added here, or cut off there: both sides must have the secret exactly as it was shown`},
		v.Diagnose(send("{}", signing.Key{Secret: cut})))

	// The sender has a newer secret, with which alone it signs in hex.
	newer := signing.GenerateSecret()
	v = diagnosing(t, hex, signing.Key{ID: "old", Secret: whole})
	require.Equal(t, []string{`the signature is right under the scheme standard-webhooks with the key "old", and that of timestamp-body was made with another key: the sender has probably rotated its secret: give the new one to this receiver`},
		v.Diagnose(send("{}", signing.Key{Secret: whole}, signing.Key{Secret: newer})))
	// The overlap is over.
	for _, cfg := range []*signing.VerifierConfig{hex, {Schemes: []signing.Scheme{signing.StandardWebhooks{}}}} {
		found := diagnosing(t, cfg, signing.Key{ID: "old", Secret: whole}, signing.Key{ID: "gone", Secret: newer, NotAfter: time.Now().Add(-time.Hour)}).
			Diagnose(send("{}", signing.Key{Secret: signing.GenerateSecret()}))
		require.Equal(t, []string{`no known mistake explains the signature: compare the fingerprints of the keys that were tried, ["old" (fingerprint ` + whole.Fingerprint() +
			`)], with the sender's: it may have rotated its secret, or the one here may be another endpoint's; if they are equal, something in front of the receiver changes bodies`}, found)
	}
}

func TestTried(t *testing.T) {
	a, b := signing.GenerateSecret(), signing.GenerateSecret()
	v := diagnosing(t, nil, signing.Key{ID: "a", Secret: a}, signing.Key{ID: "b", Secret: b}, signing.Key{ID: "c", Secret: signing.GenerateSecret(), NotAfter: time.Now().Add(-time.Hour)})
	require.Equal(t, []signing.TriedKey{{ID: "b", Fingerprint: b.Fingerprint()}, {ID: "a", Fingerprint: a.Fingerprint()}}, v.Tried())
	require.Empty(t, new(signing.Verifier).Tried())
}

func TestDiagnoseKeysAndSchemes(t *testing.T) {
	old, err := signing.ParseSecret(diagnosedSecret)
	require.NoError(t, err)
	ended := time.Now().Add(-time.Hour)
	v := diagnosing(t, nil, signing.Key{ID: "old", Secret: old, NotAfter: ended}, signing.Key{ID: "new", Secret: signing.GenerateSecret()})
	require.Equal(t, []string{`the signature was made with the key "old", which does not count: it ended at ` + ended.UTC().Format(time.RFC3339)},
		v.Diagnose(signedWith(time.Now(), diagnosedSecret, "{}")))

	ring, err := signing.NewKeyring(signing.Key{Secret: old})
	require.NoError(t, err)
	h := http.Header{"Webhook-Hmac-Sha256": {strings.Repeat("0", 64)}}
	require.NoError(t, signing.Sign(h, []signing.Scheme{signing.StandardWebhooks{}}, "evt_1", time.Now(), []byte("{}"), ring))
	v = diagnosing(t, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.TimestampBody{}}})
	require.Contains(t, v.Diagnose(signing.Message{Header: h, Body: []byte("{}")})[0], "right under the scheme standard-webhooks")
}

// Whichever sender a request is from, a verifier of another one's scheme says so: before
// the body is read by the header alone, and afterwards because the signature is right.
func TestDiagnoseForeignSchemes(t *testing.T) {
	secret, err := signing.ParseSecret(diagnosedSecret)
	require.NoError(t, err)
	square, err := signing.NewSquare("https://example.com/webhooks")
	require.NoError(t, err)
	twilio, err := signing.NewTwilio("https://example.com/webhooks")
	require.NoError(t, err)
	_, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	edwards, err := signing.ParseSecret("whsk_" + base64.StdEncoding.EncodeToString(private.Seed()))
	require.NoError(t, err)
	ring, err := signing.NewKeyring(signing.Key{Secret: secret}, signing.Key{Secret: edwards})
	require.NoError(t, err)
	for _, c := range []struct {
		scheme       signing.Scheme
		before, name string // what is said: of the header, of the signature
	}{
		{signing.StandardWebhooks{}, "Standard Webhooks", ""}, {signing.Svix(), "Svix", ""}, {signing.Stripe(), "Stripe", ""},
		{signing.GitHub(), "GitHub or Meta", ""}, {signing.Meta(), "GitHub or Meta", "github"}, {signing.Slack(), "Slack", ""},
		{signing.Shopify(), "Shopify", ""}, {signing.Paddle(), "Paddle", ""}, {signing.Zendesk(), "Zendesk", ""},
		{signing.Linear(), "Linear", ""}, {signing.Discord(), "Discord", ""}, {signing.Hook0(), "hook0", ""},
		{signing.Hook0Body(), "hook0", ""}, {signing.ConvoySimple(), "Convoy", ""}, {signing.ConvoyAdvanced(), "Convoy", ""},
		{square, "Square", "Square"}, {twilio, "Twilio", "Twilio"},
	} {
		at := time.Now()
		body := []byte(fmt.Sprintf(`{"webhookTimestamp":%d}`, at.UnixMilli()))
		h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		require.NoError(t, signing.Sign(h, []signing.Scheme{c.scheme}, "evt_1", at, body, ring), c.scheme.Name())
		v, err := signing.NewVerifier(ring, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.TimestampBody{}}})
		require.NoError(t, err)
		for want, m := range map[string]signing.Message{
			c.before:                        {Header: h},
			cmp.Or(c.name, c.scheme.Name()): {Header: h, Body: body},
		} {
			found := v.Diagnose(m)
			require.Len(t, found, 1, c.scheme.Name())
			require.Contains(t, found[0], want)
			require.Contains(t, found[0], "this verifier accepts other")
		}
		_, err = v.Verify(signing.Message{Header: h, Body: body})
		require.ErrorIs(t, err, signing.ErrNotSigned)
	}
}

// mismatching is a scheme that has keys of its own, none of which suits any signature.
type mismatching struct{ signing.TimestampBody }

func (mismatching) OwnKeys() {}

func (s mismatching) Verify(m signing.Message, _ *signing.Keyring, now time.Time, tolerance time.Duration) (signing.Verified, error) {
	if err := s.Precheck(m.Header, now, tolerance); err != nil {
		return signing.Verified{}, err
	}
	return signing.Verified{}, signing.ErrSignatureMismatch
}

// Without a keyring it says so, and what can be seen without one.
func TestDiagnoseWithoutAKeyring(t *testing.T) {
	v, err := signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{mismatching{}}})
	require.NoError(t, err)
	for what, c := range map[string]struct {
		v    *signing.Verifier
		m    signing.Message
		want string
	}{
		"a zero verifier": {new(signing.Verifier), signing.Message{}, "without a scheme and without a keyring"},
		"a signature":     {v, signedWith(time.Now(), diagnosedSecret, "{}"), "there is no keyring"},
		"a time":          {v, signedWith(time.Now().Add(-2*time.Hour), diagnosedSecret, "{}"), "time zone's difference"},
		"a header":        {v, signing.Message{Header: http.Header{"Stripe-Signature": {"t=1,v1=ab"}}}, "carries Stripe-Signature"},
	} {
		found := c.v.Diagnose(c.m)
		require.Len(t, found, 1, what)
		require.Contains(t, found[0], c.want)
	}
}

func TestDiagnoseHeaders(t *testing.T) {
	v := diagnosing(t, nil)
	for _, c := range []struct {
		change func(http.Header)
		want   string
	}{
		{func(h http.Header) {
			h.Del("Webhook-Hmac-Sha256")
			h.Set("Stripe-Signature", "t=1,v1=ab")
		}, "carries Stripe-Signature, as Stripe sends it"},
		{func(h http.Header) { h.Set("Webhook-Timestamp", h.Get("Webhook-Timestamp")+"000") }, "milliseconds"},
		{func(h http.Header) { h.Set("Webhook-Timestamp", h.Get("Webhook-Timestamp")+" ") }, "white space around"},
		{func(h http.Header) { h.Set("Webhook-Hmac-Sha256", strings.ToUpper(h.Get("Webhook-Hmac-Sha256"))) }, "upper case"},
		{func(h http.Header) { h.Set("Webhook-Hmac-Sha256", "sha256="+h.Get("Webhook-Hmac-Sha256")) }, `"name=value"`},
		{func(h http.Header) { h.Set("Webhook-Hmac-Sha256", "dGhpcyBpcyBub3QgaGV4dGhpcyBpcyBub3QgaGV4dGk=") }, ""},
		{func(h http.Header) { h.Del("Webhook-Timestamp") }, ""},
	} {
		m := signedWith(time.Now(), diagnosedSecret, "{}")
		c.change(m.Header)
		found := v.Diagnose(m)
		if c.want == "" {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1, c.want)
		require.Contains(t, found[0], c.want)
	}
	for skew, want := range map[time.Duration]string{
		301 * time.Second:                                "5m1s behind the clock here: one of the two clocks is off, the request was kept",
		-400 * time.Second:                               "6m40s ahead of the clock here: one of the two clocks is off",
		2*time.Hour + 3*time.Second:                      "2h0m3s behind the clock here: that is a time zone's difference",
		-(5*time.Hour + 30*time.Minute - 20*time.Second): "time zone's difference",
		15*time.Minute + 20*time.Second:                  "15m20s behind the clock here: one of the two clocks is off",
		72 * time.Hour:                                   "was captured and sent again",
	} {
		now := time.Unix(1_800_000_000, 0)
		v := diagnosing(t, &signing.VerifierConfig{Now: func() time.Time { return now }})
		found := v.Diagnose(signedWith(now.Add(-skew), diagnosedSecret, "{}"))
		require.Len(t, found, 1)
		require.Contains(t, found[0], want)
	}
}
