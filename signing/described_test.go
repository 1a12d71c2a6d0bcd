package signing_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// pairs is a Stripe-Signature made without the package.
func stripePairs(text, timestamp string, body []byte) string {
	return "t=" + timestamp + ",v1=" + timestampBodyMAC(text, timestamp, body)
}

func TestListsOfPairs(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	good := timestampBodyMAC(secretA, seconds(now), body)
	bad := strings.Repeat("0", 64)
	at := "t=" + seconds(now)
	for value, want := range map[string]error{
		at + ",v1=" + good:                                     nil,
		"v1=" + good + "," + at:                                nil,
		at + ",v1=" + bad + ",v1=" + good:                      nil,
		at + ",v1=" + good + ",v1=" + bad:                      nil,
		at + ",v0=" + bad + ",v1=" + good:                      nil, // Stripe's test mode
		at + ",v1=bad_signature,v1=" + good:                    nil,
		at + ",,v1=" + good + ",x":                             nil,
		at + strings.Repeat(",v1="+bad, 15) + ",v1=" + good:    nil,
		at + strings.Repeat(",v2=x", 30) + ",v1=" + good:       nil,
		at + strings.Repeat(",v1="+bad, 16) + ",v1=" + good:    signing.ErrMalformedHeader,
		at + strings.Repeat(",v1=", 16) + ",v1=" + good:        signing.ErrMalformedHeader,
		at + strings.Repeat(",v2=x", 31) + ",v1=" + good:       signing.ErrMalformedHeader,
		strings.Repeat("v1="+bad+",", 21_000) + at:             signing.ErrMalformedHeader,
		at + ",v1=" + bad + ",v1=" + bad:                       signing.ErrSignatureMismatch,
		at + ",v0=" + good:                                     signing.ErrMalformedHeader,
		at + ",v1=" + strings.ToUpper(good):                    signing.ErrMalformedHeader,
		at + ", v1=" + good:                                    signing.ErrMalformedHeader,
		at + ",v1= " + good:                                    signing.ErrMalformedHeader,
		at + ";v1=" + good:                                     signing.ErrMalformedHeader,
		at + ",v1":                                             signing.ErrMalformedHeader,
		at:                                                     signing.ErrMalformedHeader,
		"":                                                     signing.ErrMalformedHeader,
		"v1=" + good:                                           signing.ErrMalformedHeader,
		"t=,v1=" + good:                                        signing.ErrMalformedHeader,
		"t=1700000000.5,v1=" + good:                            signing.ErrMalformedHeader,
		"t= 1700000000,v1=" + good:                             signing.ErrMalformedHeader,
		"t=01700000000,v1=" + good:                             signing.ErrMalformedHeader,
		"t=9223372036854775807,v1=" + good:                     signing.ErrMalformedHeader,
		at + "," + at + ",v1=" + good:                          signing.ErrMalformedHeader, // which of the two?
		"T=" + seconds(now) + ",v1=" + good:                    signing.ErrMalformedHeader,
		"t=1699999699,v1=" + good:                              signing.ErrTimestampOutsideWindow,
		"t=1700000001,v1=" + good:                              signing.ErrSignatureMismatch,
		at + "x,v1=" + good:                                    signing.ErrMalformedHeader,
		at + ",v1=" + good + good:                              signing.ErrMalformedHeader,
		at + ",v1=" + good[:62] + "," + "v1=" + good[62:]:      signing.ErrMalformedHeader,
		at + ",v1=" + good[:32] + "=" + good[33:]:              signing.ErrMalformedHeader,
		stripePairs(secretA, seconds(now), append(body, '\n')): signing.ErrSignatureMismatch,
	} {
		m := signing.Message{Header: http.Header{"Stripe-Signature": {value}}, Body: body}
		_, err := signing.Stripe().Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, want, "%.120s", value)
		if err != nil {
			require.NotContains(t, err.Error(), good[:12], "%.120s", value)
		}
	}
}

func TestHook0CoversHeaders(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	covering := func(names, values string, h http.Header) signing.Message {
		text := names + "." + values + "." + string(body)
		h.Set("X-Hook0-Signature", "t="+seconds(now)+",h="+names+",v1="+timestampBodyMAC(secretA, seconds(now), []byte(text)))
		return signing.Message{Header: h, Body: body}
	}
	both := func() http.Header { return http.Header{"X-Event-Id": {"evt-1"}, "X-Event-Type": {"user.created"}} }

	m := covering("x-event-id x-event-type", "evt-1.user.created", both())
	v, err := signing.Hook0().Verify(m, keys, now, tolerance)
	require.NoError(t, err)
	require.Equal(t, "evt-1", v.ID)
	facts := signing.Hook0().Facts(m, v)
	require.Equal(t, "evt-1", facts.ID)
	require.Empty(t, facts.UnsignedID)

	// "user" and "created.evt-1" are joined to the same text: only the first value is certain.
	m = covering("x-event-type x-event-id", "user.created.evt-1", both())
	v, err = signing.Hook0().Verify(m, keys, now, tolerance)
	require.NoError(t, err)
	require.Empty(t, v.ID)
	require.EqualValues(t, "evt-1", signing.Hook0().Facts(m, v).UnsignedID)
	m.Header.Set("X-Event-Type", "user")
	m.Header.Set("X-Event-Id", "created.evt-1")
	v, err = signing.Hook0().Verify(m, keys, now, tolerance)
	require.NoError(t, err)
	require.Empty(t, v.ID)

	changed := covering("x-event-id x-event-type", "evt-1.user.created", both())
	changed.Header.Set("X-Event-Id", "evt-2")
	_, err = signing.Hook0().Verify(changed, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)

	many := strings.TrimSuffix(strings.Repeat("x-event-id ", 17), " ")
	for what, c := range map[string]struct {
		names string
		want  error
	}{
		"capital":     {"X-Event-Id", signing.ErrMalformedHeader},
		"two spaces":  {"x-event-id  x-event-type", signing.ErrMalformedHeader},
		"empty":       {"", signing.ErrMalformedHeader},
		"full stop":   {"x-event-id.evt-1", signing.ErrMalformedHeader},
		"too many":    {many, signing.ErrMalformedHeader},
		"not there":   {"x-event-id x-other", signing.ErrMissingHeader},
		"repeated":    {"x-event-id x-twice", signing.ErrRepeatedHeader},
		"named twice": {"x-event-id,h=x-event-type", signing.ErrMalformedHeader},
	} {
		h := both()
		h["X-Twice"] = []string{"1", "2"}
		refused(t, signing.Hook0(), covering(c.names, "evt-1", h), keys, now, c.want, what)
	}
}

func TestLinearNeedsTheTimeInTheBody(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	signedBody := func(text string) signing.Message {
		m := signing.Message{Header: http.Header{}, Body: []byte(text)}
		d := signing.Linear().Description()
		d.TimestampField, d.MaxTolerance = "", 0
		bodyOnly, err := signing.NewDescribed(d)
		require.NoError(t, err)
		require.NoError(t, bodyOnly.Sign(m.Header, eventID, now, m.Body, keys))
		return m
	}
	for text, want := range map[string]error{
		`{"webhookTimestamp":1700000000999}`:                                              nil,
		` { "a" : [ { "webhookTimestamp" : 1 } ] , "webhookTimestamp" : 1700000000000 } `: nil,
		`{"webhookTimestamp":"1700000000000"}`:                                            nil,
		`{"webhookTimestamp":1699999940000}`:                                              nil,
		`{"webhookTimestamp":1699999939999}`:                                              signing.ErrTimestampOutsideWindow,
		`{"webhookTimestamp":1700000061000}`:                                              signing.ErrTimestampOutsideWindow,
		`{"webhookTimestamp":1700000000}`:                                                 signing.ErrTimestampOutsideWindow,
		`{}`:                                                                              signing.ErrNoTimestamp,
		``:                                                                                signing.ErrNoTimestamp,
		`[1700000000000]`:                                                                 signing.ErrNoTimestamp,
		`{"webhookTimestamp":1700000000000`:                                               signing.ErrNoTimestamp,
		`{"webhookTimestamp":1.7e12}`:                                                     signing.ErrNoTimestamp,
		`{"webhookTimestamp":-1700000000000}`:                                             signing.ErrNoTimestamp,
		`{"webhookTimestamp":null}`:                                                       signing.ErrNoTimestamp,
		`{"webhookTimestamp":""}`:                                                         signing.ErrNoTimestamp,
		`{"webhookTimestamp":[1700000000000]}`:                                            signing.ErrNoTimestamp,
		`{"data":{"webhookTimestamp":1700000000000}}`:                                     signing.ErrNoTimestamp,
		`{"webhookTimestamp":1700000000000,"webhookTimestamp":1}`:                         signing.ErrNoTimestamp,
		`{"webhookTimestamp":1700000000000,"webhookTimes\u0074amp":1}`:                    signing.ErrNoTimestamp,
		`{"webhooktimestamp":1700000000000}`:                                              signing.ErrNoTimestamp,
		`{"webhookTimestamp":` + strings.Repeat("1", 100_000) + `}`:                       signing.ErrNoTimestamp,
	} {
		_, err := signing.Linear().Verify(signedBody(text), keys, now, tolerance)
		require.ErrorIs(t, err, want, "%.80s", text)
		if want != nil {
			require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow, "so that it is answered with 401: %.80s", text)
		}
	}
	_, err := signing.Linear().Verify(signing.Message{Header: signedBody(`{"a":1}`).Header, Body: []byte(`{"a":2}`)}, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch, "nothing is read in a body that nobody has signed")
	require.ErrorIs(t, signing.Linear().Sign(http.Header{}, "", now, []byte(`{}`), keys), signing.ErrMalformedHeader, "the id")
	require.ErrorIs(t, signing.Linear().Sign(http.Header{}, eventID, now, []byte(`{}`), keys), signing.ErrNoTimestamp)
}

func TestTimesOfZendesk(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	plain, err := signing.NewDescribed(signing.Description{Name: "plain", SignatureHeader: "X-Zendesk-Webhook-Signature", Encoding: signing.Base64, Signed: "{body}"})
	require.NoError(t, err)
	for text, want := range map[string]error{
		"2023-11-14T22:13:20Z":                     nil,
		"2023-11-14T22:13:20.123456789Z":           nil,
		"2023-11-14T23:13:20+01:00":                nil,
		"2023-11-14T22:08:19Z":                     signing.ErrTimestampOutsideWindow,
		"1969-12-31T23:59:59Z":                     signing.ErrMalformedHeader,
		"2023-11-14T22:13:20":                      signing.ErrMalformedHeader,
		"2023-11-14 22:13:20Z":                     signing.ErrMalformedHeader,
		"2023-11-14T22:13:20,5Z":                   signing.ErrMalformedHeader,
		"2023-11-14T2:13:20Z":                      signing.ErrMalformedHeader,
		"2023-11-14T22:13:60Z":                     signing.ErrMalformedHeader,
		"2023-11-14T22:13:20z":                     signing.ErrMalformedHeader,
		"2023-11-14T22:13:20Z ":                    signing.ErrMalformedHeader,
		"2023-11-14T22:13:20.1234567890123456789Z": signing.ErrMalformedHeader,
		"1700000000":                               signing.ErrMalformedHeader,
		"":                                         signing.ErrMalformedHeader,
	} {
		m := signing.Message{Header: http.Header{"X-Zendesk-Webhook-Signature-Timestamp": {text}}, Body: body}
		require.NoError(t, plain.Sign(m.Header, "", now, append([]byte(text), body...), keys))
		_, err := signing.Zendesk().Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, want, text)
	}
}

func TestNewDescribedReportsAllProblems(t *testing.T) {
	_, err := signing.NewDescribed(signing.Description{
		SignatureHeader: "a b",
		SignatureLabel:  "v 1",
		SignaturePrefix: "v1=",
		Separator:       '|',
		Algorithm:       signing.Ed25519,
		TimestampHeader: "X-Time",
		TimestampLabel:  "v 1",
		IDHeader:        "x-time",
		HeadersLabel:    "h",
		Signed:          "{id}{body}",
		URL:             "example.com",
		MaxTolerance:    time.Millisecond,
	})
	for _, problem := range []string{
		"it needs a Name", `"a b"`, "TimestampHeader and IDHeader are the same header", "exclude each other", "must stand alone", "Separator is '|'",
		`the label "v 1" must have visible`, `the label "v 1" is used twice`, "only one of TimestampHeader", "must have {timestamp}", "must have {headers}",
		"must have {url}", "must be a whole URL", "MaxTolerance is 1ms",
	} {
		require.ErrorContains(t, err, problem)
	}
	good := signing.Description{Name: "x", SignatureHeader: "X-Sig", Signed: "{body}"}
	_, err = signing.NewDescribed(good)
	require.NoError(t, err)
	for problem, change := range map[string]func(*signing.Description){
		"must have {body}":         func(d *signing.Description) { d.Signed = "x" },
		"is not known":             func(d *signing.Description) { d.Signed = "{oops{body}" },
		"has {id} twice":           func(d *signing.Description) { d.Signed, d.IDHeader = "{id}{id}{body}", "X-Id" },
		"set IDHeader":             func(d *signing.Description) { d.Signed = "{id}{body}" },
		"cannot have it otherwise": func(d *signing.Description) { d.Signed = "{timestamp}{body}" },
		"EveryKey needs a SignatureLabel, MoreSignatureHeaders": func(d *signing.Description) { d.SignWith = signing.EveryKey },
		"need a SignatureLabel":                                 func(d *signing.Description) { d.Separator = ';' },
		"must be constants":                                     func(d *signing.Description) { d.Algorithm = 9 },
		"HeadersLabel needs an IDHeader": func(d *signing.Description) {
			d.SignatureLabel, d.HeadersLabel, d.Signed = "v1", "h", "{headers}{body}"
		},
		"it cannot have a full stop": func(d *signing.Description) {
			d.SignatureLabel, d.HeadersLabel, d.IDHeader, d.Signed = "v1", "h", "X.Id", "{headers}.{body}"
		},
	} {
		d := good
		change(&d)
		_, err := signing.NewDescribed(d)
		require.ErrorContains(t, err, problem)
	}
	for _, text := range []string{"v1\x00=", "v1\r\n", "\tv1", "vé=", "v\x7f"} { // what no header can have
		d := good
		d.SignaturePrefix = text
		_, err := signing.NewDescribed(d)
		require.ErrorContains(t, err, "SignaturePrefix is ", text)
		d.SignaturePrefix, d.SignatureLabel = "", strings.TrimSuffix(text, "=")
		_, err = signing.NewDescribed(d)
		require.ErrorContains(t, err, "must have visible", text)
	}
	good.SignaturePrefix = " v1="
	_, err = signing.NewDescribed(good)
	require.ErrorContains(t, err, "SignaturePrefix is ", "net/http takes the space away")
	good.SignaturePrefix = "HMAC v1 "
	_, err = signing.NewDescribed(good)
	require.NoError(t, err)
	for _, url := range []string{"", "example.com", "ftp://example.com/", "https://", "https://example.com/#x", "://"} {
		_, err := signing.NewSquare(url)
		require.Error(t, err, url)
		_, err = signing.NewTwilio(url)
		require.Error(t, err, url)
	}
	_, err = signing.NewTwilio("https://example.com/?bodySHA256=0")
	require.ErrorContains(t, err, "give it without")
}

// The id is part of what is signed, and keeps its form so that the text can be split
// in one way alone.
func TestDescribedIDs(t *testing.T) {
	s, err := signing.NewDescribed(signing.Description{
		Name: "ids", SignatureHeader: "X-Sig", IDHeader: "X-Id", TimestampHeader: "X-Time", Signed: "{id}.{timestamp}.{body}",
	})
	require.NoError(t, err)
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	m := signed(t, s, keys, now)
	v, err := s.Verify(m, keys, now, tolerance)
	require.NoError(t, err)
	require.Equal(t, eventID, v.ID)
	require.Equal(t, eventID, s.Facts(m, v).ID)
	for id, want := range map[string]error{"": signing.ErrMalformedHeader, "a.b": signing.ErrMalformedHeader, "evt_2": signing.ErrSignatureMismatch} {
		m.Header.Set("X-Id", id)
		_, err := s.Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, want, id)
	}
	m.Header.Del("X-Id")
	_, err = s.Verify(m, keys, now, tolerance)
	require.ErrorIs(t, err, signing.ErrMissingHeader)
}

// Other senders have ids of other forms. Nothing is refused but what would let the signed
// text be split in two ways.
func TestForeignIDs(t *testing.T) {
	odd := []string{"evt:1", "evt/1", "a=b=", "~!@#$%^&*()[]{}|;'\"<>,?", strings.Repeat("x", 256)}
	schemes := map[string]signing.Scheme{".": signing.StandardWebhooks{}, "..": signing.Svix(), "...": signing.Hook0()}
	for _, signed := range []string{"{id}.{timestamp}.{body}", "{timestamp}:{id}:{body}", "v0\n{id}\n{timestamp}{body}"} {
		s, err := signing.NewDescribed(signing.Description{
			Name: "ids", SignatureHeader: "X-Sig", IDHeader: "X-Id", TimestampHeader: "X-Time", Signed: signed,
		})
		require.NoError(t, err)
		schemes[signed[strings.Index(signed, "{id}")+len("{id}"):][:1]+signed] = s
	}
	secret, err := signing.ParseSecret(publishedHMAC)
	require.NoError(t, err)
	keys := ring(t, signing.Key{Secret: secret})
	for name, s := range schemes {
		for _, id := range odd {
			h := http.Header{}
			err := s.Sign(h, id, now, body, keys)
			if strings.Contains(id, name[:1]) {
				require.ErrorIs(t, err, signing.ErrMalformedHeader, "%s %s", name, id)
				continue
			}
			require.NoError(t, err, "%s %s", name, id)
			v, err := s.Verify(signing.Message{Header: h, Body: body}, keys, now, tolerance)
			require.NoError(t, err, "%s %s", name, id)
			require.Equal(t, id, v.ID, name)
		}
		for _, id := range []string{"", "a" + name[:1] + "b", "a b", "a\tb", "é", "\x7f", strings.Repeat("x", 257)} {
			require.ErrorIs(t, s.Sign(http.Header{}, id, now, body, keys), signing.ErrMalformedHeader, "%s %q", name, id)
		}
	}
	// Nothing separates these ids but their own form.
	for _, signed := range []string{"{id}{timestamp}{body}", "{id}-{timestamp}.{body}", "{timestamp}{id}", "{id}{url}", "{id}"} {
		d := signing.Description{Name: "ids", SignatureHeader: "X-Sig", IDHeader: "X-Id", Signed: strings.TrimSuffix(signed, "{body}") + "{body}"}
		if strings.Contains(signed, "{timestamp}") {
			d.TimestampHeader = "X-Time"
		}
		if strings.Contains(signed, "{url}") {
			d.URL = "https://example.com"
		}
		s, err := signing.NewDescribed(d)
		require.NoError(t, err)
		require.NoError(t, s.Sign(http.Header{}, "a-B_1", now, body, keys))
		for _, id := range odd {
			require.ErrorIs(t, s.Sign(http.Header{}, id, now, body, keys), signing.ErrMalformedHeader, "%s %q", signed, id)
		}
	}
}

// The key is what the description says, told by MACs that were made without the package.
func TestDescribedKeys(t *testing.T) {
	d := signing.Description{Name: "keys", SignatureHeader: "X-Sig", TimestampHeader: "X-Time", Signed: "{timestamp}.{body}"}
	keys := ring(t, signing.Key{Secret: base64Secret(t, secretA)})
	for form, key := range map[signing.KeyForm]string{signing.TextKey: base64Secret(t, secretA).Reveal(), signing.DecodedKey: secretA} {
		d.Key = form
		s, err := signing.NewDescribed(d)
		require.NoError(t, err)
		require.Equal(t, timestampBodyMAC(key, seconds(now), body), signed(t, s, keys, now).Header.Get("X-Sig"))
	}
}

// A verifier does not look at the clock for a scheme that signs no time. It must for the
// end of a key.
func TestAKeyEndsForSchemesWithoutATime(t *testing.T) {
	ends := signing.Key{ID: "ends", Secret: textSecret(t, secretA), NotAfter: now}
	other := signing.Key{ID: "other", Secret: signing.GenerateSecret()}
	m := signed(t, signing.GitHub(), ring(t, ends), now)
	for what, keys := range map[string]*signing.Keyring{
		"alone":             ring(t, ends),
		"before another":    ring(t, ends, other),
		"behind another":    ring(t, other, ends),
		"taken out of both": ring(t, ends, other).Only("ends", now),
	} {
		for late, want := range map[time.Duration]bool{0: true, time.Second: false} {
			v, err := signing.NewVerifier(keys, &signing.VerifierConfig{
				Schemes: []signing.Scheme{signing.GitHub()}, Deduplicated: true, Now: at(now.Add(late)),
			})
			require.NoError(t, err)
			_, err = v.Verify(m)
			require.Equal(t, want, err == nil, "%s: %v", what, err)
		}
	}
}

// A secret is the key that its text stands for only if all of the text does, and if the key
// is as long and as random as any other must be.
func TestFormsOfAKey(t *testing.T) {
	text := func(encoding *base64.Encoding, n int) string { return encoding.EncodeToString(decoded(b64(n))) }
	equal := bytes.Repeat([]byte{9}, 32)
	for _, c := range []struct {
		what, text string
		form       signing.KeyForm
		is         bool
	}{
		{"base64 of 23 bytes", b64(23), signing.DecodedKey, false},
		{"base64 of 24 bytes", b64(24), signing.DecodedKey, true},
		{"base64 of 64 bytes", b64(64), signing.DecodedKey, true},
		{"base64 of 65 bytes", b64(65), signing.DecodedKey, false},
		{"base64 of equal bytes", base64.StdEncoding.EncodeToString(equal), signing.DecodedKey, false},
		{"base64 and more", b64(48) + "!", signing.DecodedKey, false},
		{"hex of 15 bytes", hex.EncodeToString(decoded(b64(15))), signing.HexKey, false},
		{"hex of 16 bytes", hex.EncodeToString(decoded(b64(16))), signing.HexKey, true},
		{"hex of equal bytes", hex.EncodeToString(equal), signing.HexKey, false},
		{"hex and more", hex.EncodeToString(decoded(b64(16))) + "xx", signing.HexKey, false},
		{"base64url of 16 bytes", text(base64.URLEncoding, 16), signing.Base64URLKey, true},
		{"base64url of 18 bytes", text(base64.URLEncoding, 18), signing.Base64URLKey, true},
		{"base64url of 19 bytes, without padding", text(base64.RawURLEncoding, 19), signing.Base64URLKey, true},
		{"base64url of 15 bytes", text(base64.URLEncoding, 15) + "====", signing.Base64URLKey, false},
		{"base64url of equal bytes", base64.URLEncoding.EncodeToString(equal), signing.Base64URLKey, false},
		{"base64url and more", text(base64.URLEncoding, 24) + "!!", signing.Base64URLKey, false},
		{"base64url with padding of nothing", text(base64.URLEncoding, 24) + "=", signing.Base64URLKey, false},
	} {
		s, err := signing.NewDescribed(signing.Description{
			Name: "keys", SignatureHeader: "X-Sig", TimestampHeader: "X-Time", Signed: "{timestamp}.{body}", Key: c.form,
		})
		require.NoError(t, err)
		_, err = signing.NewVerifier(ringOf(t, c.text), &signing.VerifierConfig{Schemes: []signing.Scheme{s}})
		if c.is {
			require.NoError(t, err, c.what)
		} else {
			require.ErrorIs(t, err, signing.ErrSecretUnsuited, c.what)
		}
	}
}

func TestParseTextSecret(t *testing.T) {
	for _, text := range []string{"It's a Secret to Everybody", "whsec_c4BGkQ1YwfKi2qTnZzPz0Rk1x", "Ibxx_5AKakO-3qeNVR61Dw", "fifteen bytes..", strings.Repeat("ab", 512)} {
		s, err := signing.ParseTextSecret(text)
		require.NoError(t, err, text)
		require.Equal(t, text, s.Reveal())
	}
	for _, text := range []string{
		"", "fourteen bytes", strings.Repeat("a", 32), strings.Repeat("ab", 513), " leading space is wrong", "trailing newline is wrong\n",
		"a tab\tinside is wrong", "zero width\u200bspace is wrong", "invalid UTF-8 \xff is wrong", publishedPublic, publishedPrivate,
	} {
		_, err := signing.ParseTextSecret(text)
		require.ErrorIs(t, err, signing.ErrSecret, text)
		if len(text) > 8 {
			require.NotContains(t, err.Error(), text[4:])
		}
	}
}

func TestParseHexPublicKey(t *testing.T) {
	const public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a" // RFC 8032 section 7.1, test 1
	s, err := signing.ParseHexPublicKey(public)
	require.NoError(t, err)
	require.Equal(t, public, s.Reveal())
	for _, text := range []string{"", public[:63], public + "00", " " + public, public + "\n", strings.Repeat("0", 64), strings.Repeat("g", 64)} {
		_, err := signing.ParseHexPublicKey(text)
		require.ErrorIs(t, err, signing.ErrSecret, text)
	}

	keys := ring(t, signing.Key{Secret: privateKey(t, secretA)})
	m := signed(t, signing.Discord(), keys, now)
	_, err = signing.Discord().Verify(m, ring(t, signing.Key{Secret: s}), now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch)
}
