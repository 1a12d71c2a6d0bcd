package signing_test

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

func adyenVerifier(t *testing.T) *signing.Verifier {
	t.Helper()
	v, err := signing.NewVerifier(ring(t, signing.Key{Secret: textSecret(t, hex.EncodeToString([]byte(secretA)))}),
		&signing.VerifierConfig{Schemes: []signing.Scheme{signing.NewAdyen()}, Deduplicated: true, UnsignedBody: true})
	require.NoError(t, err)
	return v
}

func TestAdyen(t *testing.T) {
	v := adyenVerifier(t)
	good, _ := adyenBody(hex.EncodeToString([]byte(secretA)))
	_, facts, err := v.VerifyFacts(signing.Message{Body: good})
	require.NoError(t, err)
	require.Equal(t, "AUTHORISATION", facts.Type)
	require.Equal(t, signing.Unsigned("7914073381342284"), facts.UnsignedID)
	change := func(old, new string) []byte {
		changed := strings.Replace(string(good), old, new, 1)
		require.NotEqual(t, string(good), changed, old)
		return []byte(changed)
	}
	for _, same := range [][]byte{change(`"success"`, `"reason":"x","success"`), change(`{"notificationItems"`, `{"live":"true","notificationItems"`)} {
		_, again, err := v.VerifyFacts(signing.Message{Body: same})
		require.NoError(t, err)
		require.Equal(t, facts.DedupKey(), again.DedupKey(), "what is not signed makes no other event")
	}
	for what, body := range map[string][]byte{
		"another value":              change("1130", "11300"),
		"a value as a text":          change("1130", `"11300"`),
		"a value in another form":    change("1130", "1.13e3"),
		"shifted by a colon":         change(`"merchantAccountCode":"TestMerchant","merchantReference":"order:7"`, `"merchantAccountCode":"TestMerchant:order","merchantReference":"7"`),
		"no success":                 change(`,"success":"true"`, ""),
		"success twice":              change(`"success":"true"`, `"success":"true","success":"false"`),
		"success as another type":    change(`"true"`, `true`),
		"originalReference missing":  change(`"originalReference":"8515131751004933",`, ""),
		"originalReference twice":    change(`"originalReference"`, `"originalReference":"x","originalReference"`),
		"two items":                  change(`{"notificationItems":[`, `{"notificationItems":[{"NotificationRequestItem":{}},`),
		"no item":                    []byte(`{"notificationItems":[]}`),
		"no list":                    []byte(`{"notificationItems":{}}`),
		"the list twice":             change(`{"notificationItems"`, `{"notificationItems":[],"notificationItems"`),
		"no signature":               change(`"hmacSignature"`, `"other"`),
		"no JSON":                    good[1:],
		"nothing":                    nil,
		"a signature with an ending": change(`="},"pspReference"`, `= "},"pspReference"`),
	} {
		_, err := v.Verify(signing.Message{Body: body})
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, what)
	}
}

// A missing field may be there as null, but not twice: then another reader could take a
// value that nobody has signed.
func TestAdyenWithoutAnOriginalReference(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056")})
	const item = `"pspReference":"7914073381342284","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704","amount":{"value":1130,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true","additionalData":{"hmacSignature":"coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="}`
	for more, good := range map[string]bool{
		``: true, `"originalReference":null,`: true, `"originalReference":"",`: true,
		`"originalReference":"x",`: false, `"originalReference":7,`: false, `"originalReference":{},`: false,
		`"originalReference":"x","originalReference":"y",`:         false,
		`"originalReference":"","original\u0052eference":"y",`:     false,
		`"originalReference":null,"originalReference":"stranger",`: false,
	} {
		_, err := signing.NewAdyen().Verify(signing.Message{Body: []byte(`{"notificationItems":[{"NotificationRequestItem":{` + more + item + `}}]}`)}, keys, now, tolerance)
		require.Equal(t, good, err == nil, more)
	}
}

func TestBraintree(t *testing.T) {
	v, err := signing.NewVerifier(ring(t, signing.Key{Secret: textSecret(t, secretA)}),
		&signing.VerifierConfig{Schemes: []signing.Scheme{signing.NewBraintree()}, Deduplicated: true})
	require.NoError(t, err)
	good := string(braintreeBody(secretA))
	_, facts, err := v.VerifyFacts(signing.Message{Body: []byte(good)})
	require.NoError(t, err)
	require.Equal(t, "check", facts.Type)
	require.True(t, now.Equal(facts.Time))
	form, err := url.ParseQuery(good)
	require.NoError(t, err)
	reordered := "bt_signature=" + url.QueryEscape(form.Get("bt_signature")) + "&bt_payload=" + url.QueryEscape(form.Get("bt_payload"))
	_, again, err := v.VerifyFacts(signing.Message{Body: []byte(reordered)})
	require.NoError(t, err)
	require.Equal(t, facts.DedupKey(), again.DedupKey(), "another way of writing makes no other event")
	for what, body := range map[string]string{
		"another parameter":             good + "&kind=x",
		"payload twice":                 good + "&bt_payload=x",
		"signature twice":               good + "&bt_signature=x",
		"no signature":                  strings.Split(good, "&bt_signature")[0],
		"no payload":                    "bt_signature=" + url.QueryEscape(form.Get("bt_signature")),
		"another payload":               strings.Replace(good, "bt_payload=", "bt_payload=A", 1),
		"too many pairs":                strings.Replace(good, "bt_signature=", "bt_signature="+url.QueryEscape(strings.Repeat("x|"+strings.Repeat("0", 40)+"&", 4)), 1),
		"capital hex":                   "bt_payload=" + url.QueryEscape(form.Get("bt_payload")) + "&bt_signature=" + url.QueryEscape(strings.ToUpper(form.Get("bt_signature"))),
		"a payload that ends otherwise": "bt_payload=" + url.QueryEscape(strings.TrimSpace(form.Get("bt_payload"))) + "&bt_signature=" + url.QueryEscape(form.Get("bt_signature")),
		"no form":                       "%zz",
		"nothing":                       "",
	} {
		_, err := v.Verify(signing.Message{Body: []byte(body)})
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, what)
	}
	require.ErrorContains(t, signing.NewBraintree().Sign(http.Header{}, "", now, nil, nil), "in the body")
}

// A signature in the body has no header that says whose a request is.
func TestSignaturesInBodiesComeLast(t *testing.T) {
	keys := ring(t, signing.Key{Secret: textSecret(t, hex.EncodeToString([]byte(secretA)))})
	for _, s := range []signing.Scheme{signing.NewAdyen(), signing.NewBraintree()} {
		_, err := signing.NewVerifier(keys, withSchemes(s, signing.GitHub()))
		require.ErrorContains(t, err, "it must be the last scheme", s.Name())
		_, err = signing.NewVerifier(keys, withSchemes(signing.GitHub(), s))
		require.NoError(t, err, s.Name())
		_, err = signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, UnsignedBody: true})
		require.ErrorContains(t, err, "Deduplicated", s.Name())
		_, err = signing.NewVerifier(ring(t, signing.Key{Secret: privateKey(t, secretA)}), withSchemes(s))
		require.ErrorIs(t, err, signing.ErrSecretUnsuited, s.Name())
	}
	_, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{signing.NewAdyen()}, Deduplicated: true})
	require.ErrorContains(t, err, "UnsignedBody")
}
