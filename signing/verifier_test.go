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

func at(moment time.Time) func() time.Time { return func() time.Time { return moment } }

func verifier(tb testing.TB, keys *signing.Keyring, schemes ...signing.Scheme) *signing.Verifier {
	tb.Helper()
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: schemes, Now: at(now)})
	require.NoError(tb, err)
	return v
}

func TestNewVerifierReportsAllProblems(t *testing.T) {
	_, err := signing.NewVerifier(nil, &signing.VerifierConfig{
		Tolerance: -time.Second,
		Schemes: []signing.Scheme{
			nil,
			signing.TimestampBody{IDHeader: "a b"},
			signing.StandardWebhooks{IDHeader: "x", TimestampHeader: "X"},
		},
	})
	require.ErrorContains(t, err, "needs a keyring")
	require.ErrorContains(t, err, "tolerance is -1s")
	require.ErrorContains(t, err, "scheme 0 is nil")
	require.ErrorContains(t, err, `"a b" cannot be the name of a header`)
	require.ErrorContains(t, err, "three different names")

	_, err = signing.NewVerifier(ringOf(t, plainText), &signing.VerifierConfig{Tolerance: time.Millisecond})
	require.ErrorContains(t, err, "tolerance is 1ms")
	_, err = signing.NewVerifier(ringOf(t, plainText), &signing.VerifierConfig{Tolerance: time.Second})
	require.NoError(t, err)

	for _, scheme := range []signing.Scheme{
		signing.StandardWebhooks{IDHeader: "x", SignatureHeader: "X"}, signing.TimestampBody{TimestampHeader: "x", SignatureHeader: "X"},
	} {
		_, err := signing.NewVerifier(ringOf(t, publishedHMAC), &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
		require.ErrorContains(t, err, "three different names")
	}

	for text, scheme := range map[string]signing.Scheme{
		publishedPublic: signing.TimestampBody{},
		plainText:       signing.StandardWebhooks{},
	} {
		_, err := signing.NewVerifier(ringOf(t, text), &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
		require.ErrorIs(t, err, signing.ErrSecretUnsuited)
	}
}

func TestDefaultVerifier(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	v, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)

	m := signed(t, signing.TimestampBody{}, keys, time.Now())
	require.NoError(t, v.Precheck(m.Header))
	_, err = v.Verify(m)
	require.NoError(t, err)

	old := signed(t, signing.TimestampBody{}, keys, time.Now().Add(-305*time.Second))
	require.ErrorIs(t, v.Precheck(old.Header), signing.ErrTimestampOutsideWindow)

	other := signed(t, signing.StandardWebhooks{}, keys, time.Now())
	verified, err := v.Verify(other)
	require.NoError(t, err)
	require.Equal(t, "standard-webhooks", verified.Scheme)

	both := signing.Message{Header: http.Header{}, Body: body}
	require.NoError(t, signing.Sign(both.Header, signing.DefaultSchemes(), eventID, time.Now(), body, keys))
	verified, err = v.Verify(both)
	require.NoError(t, err)
	require.Equal(t, "standard-webhooks", verified.Scheme, "it is looked for first")
	both.Header["Webhook-Signature"] = []string{otherV1}
	_, err = v.Verify(both)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch, "the next scheme is not asked")

	_, err = v.Verify(signed(t, signing.GitHub(), keys, time.Now()))
	require.ErrorIs(t, err, signing.ErrNotSigned, "the request must not choose its scheme")
}

// A scheme that no secret suits is no scheme of the default.
func TestDefaultVerifierHasTheSchemesThatSuit(t *testing.T) {
	another := ring(t, signing.Key{Secret: signing.GenerateSecret()})
	base64 := strings.TrimPrefix(publishedHMAC, "whsec_")
	for _, c := range []struct {
		what, secrets string
		standard, own bool
	}{
		{"whsec_ and base64", publishedHMAC, true, true},
		{"base64 alone", base64, true, true},
		{"no base64", plainText, false, true},
		{"a public key", publishedPublic, true, false},
		{"a private key", publishedPrivate, true, false},
		{"the old secret suits one, the new one both", plainText + " " + publishedHMAC, true, true},
		{"the old secret suits both, the new one one", publishedHMAC + " " + plainText, true, true},
		{"each suits one", publishedPrivate + " " + plainText, true, true},
	} {
		var keys []signing.Key
		for text := range strings.FieldsSeq(c.secrets) {
			s, err := signing.ParseSecret(text)
			require.NoError(t, err)
			keys = append(keys, signing.Key{Secret: s})
		}
		v, err := signing.NewVerifier(ring(t, keys...), &signing.VerifierConfig{Now: at(now)})
		require.NoError(t, err, c.what)
		// The signatures are wrong, so what is wrong with a request tells which schemes
		// have looked at it.
		for scheme, has := range map[signing.Scheme]bool{signing.StandardWebhooks{}: c.standard, signing.TimestampBody{}: c.own} {
			_, err := v.Verify(signed(t, scheme, another, now))
			if has {
				require.ErrorIs(t, err, signing.ErrSignatureMismatch, "%s: %s", c.what, scheme.Name())
			} else {
				require.ErrorIs(t, err, signing.ErrNotSigned, "%s: %s", c.what, scheme.Name())
			}
		}
	}

	discord, err := signing.ParseHexPublicKey(strings.Repeat("ab", 32))
	require.NoError(t, err)
	_, err = signing.NewVerifier(ring(t, signing.Key{Secret: discord}), nil)
	require.NoError(t, err)
	_, err = signing.NewVerifier(nil, nil)
	require.ErrorContains(t, err, "needs a keyring")
	require.NotErrorIs(t, err, signing.ErrSecretUnsuited)
	_, ec := ecdsaKey(t)
	_, err = signing.NewVerifier(ring(t, signing.Key{Secret: ec}), nil)
	require.ErrorIs(t, err, signing.ErrSecretUnsuited, "no scheme suits")
}

// A secret that came from another system, in hex for example, is replaced by one of this module.
// A list of signatures can only have those of secrets with whsec_, so while both are valid it
// has one signature alone. Who knows the other secret must not be judged by that.
func TestASecretOfAnotherFormIsReplaced(t *testing.T) {
	hex, based := strings.Repeat("0123456789abcdef", 4), signing.GenerateSecret().Reveal()
	for _, c := range []struct{ old, next string }{{hex, based}, {based, hex}, {plainText, based}, {based, plainText}} {
		old := signing.Key{Secret: secret(t, c.old), NotAfter: now.Add(2 * time.Hour)}
		next := signing.Key{Secret: secret(t, c.next), NotBefore: now.Add(time.Hour)}
		for moment, signs := range map[time.Time]signing.Key{now: old, now.Add(time.Hour): next} {
			m := signing.Message{Header: http.Header{}, Body: body}
			require.NoError(t, signing.Sign(m.Header, signing.DefaultSchemes(), eventID, moment, body, ring(t, old, next)))
			require.NotEmpty(t, m.Header.Get("Webhook-Signature"))
			for what, knows := range map[string][]signing.Key{"the one that signs": {signs}, "both": {old, next}} {
				v, err := signing.NewVerifier(ring(t, knows...), &signing.VerifierConfig{Now: at(moment)})
				require.NoError(t, err)
				require.NoError(t, v.Precheck(m.Header))
				_, err = v.Verify(m)
				require.NoError(t, err, "from %q to %q at %v: a receiver that knows %s", c.old, c.next, moment, what)
			}
		}
	}
}

func TestAZeroVerifierAcceptsNothing(t *testing.T) {
	var v signing.Verifier
	m := signed(t, signing.TimestampBody{}, ringOf(t, plainText), now)
	require.ErrorIs(t, v.Precheck(m.Header), signing.ErrNoValidKey)
	_, err := v.Verify(m)
	require.ErrorIs(t, err, signing.ErrNoValidKey)
}

func TestTheFirstSchemeWhoseSignatureIsThereDecides(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	both := verifier(t, keys, signing.StandardWebhooks{}, signing.TimestampBody{})

	first := signed(t, signing.StandardWebhooks{}, keys, now)
	verified, err := both.Verify(first)
	require.NoError(t, err)
	require.Equal(t, "standard-webhooks", verified.Scheme)
	require.Equal(t, eventID, verified.ID)

	second := signed(t, signing.TimestampBody{}, keys, now)
	require.NoError(t, both.Precheck(second.Header))
	verified, err = both.Verify(second)
	require.NoError(t, err)
	require.Equal(t, "timestamp-body", verified.Scheme)

	for what, c := range map[string]struct {
		signature []string
		want      error
	}{
		"wrong":     {[]string{otherV1}, signing.ErrSignatureMismatch},
		"malformed": {[]string{"nonsense"}, signing.ErrMalformedHeader},
		"empty":     {[]string{""}, signing.ErrMalformedHeader},
		"repeated":  {[]string{otherV1, otherV1}, signing.ErrRepeatedHeader},
	} {
		m := signed(t, signing.TimestampBody{}, keys, now)
		m.Header["Webhook-Signature"] = c.signature
		_, err := both.Verify(m)
		require.ErrorIs(t, err, c.want, "%s: no fallback", what)
	}

	_, err = both.Verify(signing.Message{Body: body})
	require.ErrorIs(t, err, signing.ErrNotSigned)
	require.ErrorIs(t, err, signing.ErrMissingHeader)
	header, ok := errors.AsType[*signing.HeaderError](err)
	require.True(t, ok)
	require.Equal(t, "Webhook-Signature", header.Header, "the first scheme's header is the one to ask for")
	require.ErrorIs(t, both.Precheck(nil), signing.ErrNotSigned)
}

func TestAVerifierKeepsItsSchemes(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	schemes := []signing.Scheme{signing.TimestampBody{}}
	v := verifier(t, keys, schemes...)
	schemes[0] = signing.StandardWebhooks{}
	_, err := v.Verify(signed(t, signing.TimestampBody{}, keys, now))
	require.NoError(t, err)
}

func TestSign(t *testing.T) {
	sign := func(text string, schemes ...signing.Scheme) (http.Header, error) {
		h := http.Header{}
		return h, signing.Sign(h, schemes, eventID, now, body, ringOf(t, text))
	}
	defaults := signing.DefaultSchemes()
	require.Equal(t, "standard-webhooks", defaults[0].Name())

	h, err := sign(publishedHMAC, defaults...)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Hmac-Sha256", "Webhook-Signature"}, names(h))
	for _, scheme := range defaults {
		_, err := verifier(t, ringOf(t, publishedHMAC), scheme).Verify(signing.Message{Header: h, Body: body})
		require.NoError(t, err)
	}

	h, err = sign(plainText, defaults...)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Hmac-Sha256"}, names(h))

	h, err = sign(publishedPrivate, defaults...)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}, names(h))

	for _, schemes := range [][]signing.Scheme{defaults, {signing.StandardWebhooks{}}} {
		h, err = sign(publishedPublic, schemes...)
		require.ErrorIs(t, err, signing.ErrSecretUnsuited)
		require.Empty(t, h)
	}
	_, err = sign(publishedHMAC)
	require.Error(t, err, "no scheme")
}

type brokenScheme struct{ signing.TimestampBody }

var errBroken = errors.New("broken")

func (brokenScheme) Sign(http.Header, string, time.Time, []byte, *signing.Keyring) error {
	return errBroken
}

func TestSignLeavesOutOnlyWhatDoesNotSuit(t *testing.T) {
	schemes := []signing.Scheme{brokenScheme{}, signing.TimestampBody{}}
	require.ErrorIs(t, signing.Sign(http.Header{}, schemes, eventID, now, body, ringOf(t, plainText)), errBroken)
}

func TestSignRefusesWhatNobodyWouldAccept(t *testing.T) {
	keys := ringOf(t, publishedHMAC)
	for _, scheme := range signing.DefaultSchemes() {
		for _, id := range []string{"", "a.b", "a b", "a\n", "ä"} {
			h := http.Header{}
			require.ErrorIs(t, signing.Sign(h, []signing.Scheme{scheme}, id, now, body, keys), signing.ErrMalformedHeader, "%q", id)
			require.Empty(t, h)
		}
		for _, moment := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1, 0), time.Unix(100_000_000_000, 0)} {
			require.ErrorIs(t, scheme.Sign(http.Header{}, eventID, moment, body, keys), signing.ErrMalformedHeader, moment)
		}
		for _, moment := range []time.Time{time.Unix(1, 0), time.Unix(99_999_999_999, 0)} {
			require.NoError(t, scheme.Sign(http.Header{}, eventID, moment, body, keys))
		}
		require.Error(t, scheme.Sign(nil, eventID, now, body, keys))
	}
}
