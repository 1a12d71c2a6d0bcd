package signing_test

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

// known is a value that a vendor has published.
type known struct {
	Vendor string            `json:"vendor"`
	Secret string            `json:"secret"`
	URL    string            `json:"url"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
	At     int64             `json:"at"`
	Source string            `json:"source"`
}

func knownValues(tb testing.TB) (all []known) {
	tb.Helper()
	text, err := os.ReadFile("testdata/known.json")
	require.NoError(tb, err)
	require.NoError(tb, json.Unmarshal(text, &all))
	return all
}

// Published secrets are often shorter than those that vendors issue.
func knownSecret(tb testing.TB, v vendors.Vendor, text string) signing.Secret {
	tb.Helper()
	if v.Key == vendors.Text {
		return signing.ShortSecret(text)
	}
	s, err := v.Secret(text)
	require.NoError(tb, err, v.Name)
	return s
}

// Every entry that says Published has a value here, and every value verifies, also those that
// a vendor's own program has made.
func TestPublishedValuesOfVendors(t *testing.T) {
	has := map[string]bool{}
	for _, k := range knownValues(t) {
		v, found := vendors.Find(k.Vendor)
		require.True(t, found, k.Vendor)
		require.NotEqual(t, vendors.Unverified, v.Evidence, k.Vendor)
		require.NotEmpty(t, k.Source, k.Vendor)
		has[k.Vendor] = true
		s, err := schemeOf(v, k.URL)
		require.NoError(t, err, k.Vendor)
		h := http.Header{}
		for name, value := range k.Header {
			h.Set(name, value)
		}
		m := signing.Message{Method: http.MethodPost, URL: pathOf(k.URL), Header: h, Body: []byte(k.Body)}
		keys := ring(t, signing.Key{Secret: knownSecret(t, v, k.Secret)})
		verified, err := s.Verify(m, keys, time.Unix(k.At, 0), tolerance)
		require.NoError(t, err, k.Vendor)
		require.Equal(t, v.SchemeName(), verified.Scheme, k.Vendor)
		require.Equal(t, v.SignsTime(), !verified.Timestamp.IsZero(), k.Vendor)
		m.Body = append([]byte(k.Body), ' ')
		if v.Kind == vendors.Adyen { // which signs values and no bytes
			m.Body = bytes.Replace([]byte(k.Body), []byte("EUR"), []byte("USD"), 1)
		}
		_, err = s.Verify(m, keys, time.Unix(k.At, 0), tolerance)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, k.Vendor)
	}
	for _, v := range vendors.All() {
		require.True(t, v.Evidence != vendors.Published || has[v.Name] || v.Kind == vendors.JWT, v.Name) // package jose has those of tokens
	}
}

// schemeOf makes the weak schemes, too, each by the name that says so.
func schemeOf(v vendors.Vendor, callback string) (signing.Scheme, error) {
	d := v.Description
	d.URL = callback
	switch v.Kind {
	case vendors.UnsignedToken:
		return signing.NewUnsignedToken(d)
	case vendors.PlainHash:
		return signing.NewPlainHash(d)
	}
	return v.Scheme(callback)
}

func pathOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return ""
	}
	return u.RequestURI()
}

func TestVendorsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vendors.All() {
		require.False(t, seen[v.Name], v.Name)
		seen[v.Name] = true
		require.Regexp(t, `^[a-z0-9-]+$`, v.Name)
		require.NotEmpty(t, v.Title, v.Name)
		require.Regexp(t, `^https://[^ ]+$`, v.Docs, v.Name)
		require.NotEmpty(t, v.Success, v.Name)
		require.Equal(t, v.Evidence != vendors.Unverified, v.Source != "", v.Name)
		if v.Evidence != vendors.Unverified {
			require.NotEmpty(t, v.Read, v.Name)
		}
		if v.Read != "" {
			_, err := time.Parse(time.DateOnly, v.Read)
			require.NoError(t, err, v.Name)
		}
		require.Equal(t, v.ObjectType == "", v.ObjectID == "", v.Name)
		if v.Key == vendors.Certificate || v.Kind == vendors.JWT {
			_, err := v.Scheme("")
			require.ErrorContains(t, err, "signing/", v.Name)
			continue
		}
		const endpoint = "https://example.com/hooks?x=1"
		_, err := v.Scheme(map[bool]string{true: "", false: endpoint}[v.NeedsURL()])
		require.Error(t, err, v.Name)
		s, err := schemeOf(v, map[bool]string{true: endpoint, false: ""}[v.NeedsURL()])
		require.NoError(t, err, v.Name)
		require.Equal(t, v.SchemeName(), s.Name(), v.Name)
		if d, ok := s.(*signing.Described); ok {
			require.Equal(t, v.SignsTime(), d.ReplayDefence() == signing.TimeWindow, v.Name)
			require.Equal(t, v.UnsignedBody(), !strings.Contains(d.Description().Signed, "{body}"), v.Name)
			if max := d.Description().MaxTolerance; max != 0 {
				require.Equal(t, v.Window, max, v.Name)
			}
		}
		_, err = v.Secret("short")
		require.ErrorIs(t, err, signing.ErrSecret, v.Name)
	}
	_, found := vendors.Find("nobody")
	require.False(t, found)
}

// vendorRequest is what a vendor would send, signed at now, the keys that verify it, and
// which headers its signature covers.
type vendorRequest struct {
	vendor  vendors.Vendor
	scheme  signing.Scheme
	m       signing.Message
	keys    *signing.Keyring
	other   *signing.Keyring
	headers []string
	// parts of the body that are signed; nil: all of it is
	signed []string
}

const vendorURL = "https://example.com/hooks?x=1"

func vendorRequests(tb testing.TB) (all []vendorRequest) {
	tb.Helper()
	for _, v := range vendors.All() {
		if v.Key == vendors.Certificate || v.Kind == vendors.JWT {
			continue // see packages sns, paypal and jose
		}
		r := vendorRequest{vendor: v}
		var err error
		r.scheme, err = schemeOf(v, map[bool]string{true: vendorURL}[v.NeedsURL()])
		require.NoError(tb, err)
		d := v.Description
		r.m = signing.Message{Method: http.MethodPost, URL: pathOf(vendorURL), Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(linearBody)}
		for _, part := range strings.Split(d.Signed, "{header:")[1:] {
			name, _, _ := strings.Cut(part, "}")
			r.m.Header.Set(name, "a-value")
			r.headers = append(r.headers, http.CanonicalHeaderKey(name))
		}
		r.keys, r.other = ring(tb, signing.Key{Secret: vendorSecret(tb, v, secretA)}), ring(tb, signing.Key{Secret: vendorSecret(tb, v, secretB)})
		switch {
		case v.Kind == vendors.Standard:
			r.headers = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}
		case v.Kind == vendors.Svix:
			r.headers = []string{"Svix-Id", "Svix-Timestamp", "Svix-Signature"}
		case v.Kind == vendors.Twilio:
			r.headers = []string{"X-Twilio-Signature"}
			r.m.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.m.Body = []byte("Body=Hello%21&From=%2B14158675309&To=7")
		case v.Kind == vendors.Adyen:
			r.m.Body, r.signed = adyenBody(hex.EncodeToString([]byte(secretA)))
		case v.Kind == vendors.Braintree:
			r.m.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.m.Body = braintreeBody(secretA)
		case v.Name == "mercadopago":
			r.m.Body = []byte(`{"action":"payment.updated","data":{"id":"ORD01JQ"},"type":"payment"}`)
			r.signed = []string{"01"} // the case of letters is not signed
		case v.Kind == vendors.UnsignedToken && d.SignatureField != "":
			r.m.Body = fmt.Appendf(nil, `{"value":[{"clientState":"%s","resource":"a"},{"clientState":"%s"}]}`, secretA, secretA)
			r.signed = []string{secretA}
		case v.Kind == vendors.UnsignedToken:
			r.m.Header.Set(d.SignatureHeader, secretA)
			r.signed = []string{}
		case v.Kind == vendors.PlainHash:
			text := strings.NewReplacer("{method}", "POST", "{url}", vendorURL, "{body}", string(r.m.Body)).Replace(d.Signed)
			r.m.Header.Set(d.SignatureHeader, fmt.Sprintf("%x", sha256.Sum256([]byte(secretA+text))))
		case d.SignatureField != "":
			r.m.Body = fmt.Appendf(nil, `{"signature":{"timestamp":"%s","token":"%s","signature":"%x"},"event-data":{"event":"opened"}}`, seconds(now), secretB, macOf(secretA, seconds(now)+secretB))
			r.signed = []string{seconds(now), secretB, hex.EncodeToString(macOf(secretA, seconds(now)+secretB))}
		case d.Algorithm == signing.ECDSAP256:
			private, public := ecdsaKey(tb)
			_, another := ecdsaKey(tb)
			r.keys, r.other = ring(tb, signing.Key{Secret: public}), ring(tb, signing.Key{Secret: another})
			sum := sha256.Sum256(append([]byte(seconds(now)), r.m.Body...))
			signature, err := private.Sign(rand.Reader, sum[:], crypto.SHA256)
			require.NoError(tb, err)
			r.m.Header.Set(d.SignatureHeader, base64.StdEncoding.EncodeToString(signature))
			r.m.Header.Set(d.TimestampHeader, seconds(now))
		}
		signs := !slices.Contains([]vendors.Kind{vendors.UnsignedToken, vendors.PlainHash, vendors.Adyen, vendors.Braintree}, v.Kind)
		if signs && d.SignatureField == "" && d.Algorithm != signing.ECDSAP256 {
			require.NoError(tb, r.scheme.Sign(r.m.Header, eventID, now, r.m.Body, r.keys), v.Name)
		}
		if d.SignatureHeader != "" {
			r.headers = append(r.headers, http.CanonicalHeaderKey(d.SignatureHeader))
		}
		if d.TimestampHeader != "" {
			r.headers = append(r.headers, http.CanonicalHeaderKey(d.TimestampHeader))
		}
		if strings.Contains(d.Signed, "{id}") {
			r.headers = append(r.headers, http.CanonicalHeaderKey(d.IDHeader))
		}
		all = append(all, r)
	}
	return all
}

// adyenBody is made as Adyen's documentation says, not by the package.
func adyenBody(hexKey string) (body []byte, signed []string) {
	key, _ := hex.DecodeString(hexKey)
	values := []string{"7914073381342284", "8515131751004933", "TestMerchant", "order:7", "1130", "EUR", "AUTHORISATION", "true"}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(values, ":")))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	body = fmt.Appendf(nil, `{"notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"%s"},"pspReference":"%s","originalReference":"%s","merchantAccountCode":"%s","merchantReference":"%s","amount":{"value":%s,"currency":"%s"},"eventCode":"%s","success":"%s"}}]}`,
		signature, values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7])
	return body, append(values, signature)
}

// braintreeBody is made as Braintree's libraries do.
func braintreeBody(private string) []byte {
	payload := base64.StdEncoding.EncodeToString([]byte(`<notification><timestamp type="datetime">2023-11-14T22:13:20Z</timestamp><kind>check</kind><subject/></notification>`)) + "\n"
	key := sha1.Sum([]byte(private))
	mac := hmac.New(sha1.New, key[:])
	mac.Write([]byte(payload))
	return []byte(url.Values{"bt_signature": {"other|" + strings.Repeat("0", 40) + "&public|" + hex.EncodeToString(mac.Sum(nil))}, "bt_payload": {payload}}.Encode())
}

// vendorSecret is one in the vendor's form, which also signs.
func vendorSecret(tb testing.TB, v vendors.Vendor, text string) signing.Secret {
	tb.Helper()
	switch v.Key {
	case vendors.Whsec, vendors.Base64:
		return base64Secret(tb, text)
	case vendors.Ed25519Hex, vendors.Ed25519Base64:
		return privateKey(tb, text)
	case vendors.HexDigits:
		return textSecret(tb, hex.EncodeToString([]byte(text)))
	case vendors.ECDSA:
		return signing.ShortSecret(text) // it is made with its key
	}
	return textSecret(tb, text)
}

// A request of every vendor verifies as it was sent. With a byte of its body, of a header
// that is signed, or of the signature changed, with another key, or outside of the window
// where a time is signed, it does not.
func TestPropertyTamperingWithAnyVendorsRequestIsRefused(t *testing.T) {
	all := vendorRequests(t)
	for _, r := range all { // each of them once, whatever rapid draws
		_, err := r.scheme.Verify(r.m, r.keys, now, tolerance)
		require.NoError(t, err, r.vendor.Name)
		_, err = r.scheme.Verify(r.m, r.other, now, tolerance)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, r.vendor.Name)
		for _, name := range r.headers {
			for i := range r.m.Header.Get(name) {
				if i == 0 && r.vendor.Description.List == signing.KeyedSignatures {
					continue // the key's id chooses no key
				}
				tampered := r.with(name, i, 1)
				_, err := r.scheme.Verify(tampered, r.keys, now, tolerance)
				require.Error(t, err, "%s: %s: %q", r.vendor.Name, name, tampered.Header.Get(name))
			}
		}
		if r.vendor.NeedsURL() {
			elsewhere, err := schemeOf(r.vendor, strings.Replace(vendorURL, "hooks", "other", 1))
			require.NoError(t, err)
			_, err = elsewhere.Verify(r.m, r.keys, now, tolerance)
			require.ErrorIs(t, err, signing.ErrSignatureMismatch, "%s: another URL", r.vendor.Name)
		}
		for _, off := range []time.Duration{-20 * time.Minute, 20 * time.Minute} {
			_, err := r.scheme.Verify(r.m, r.keys, now.Add(off), tolerance)
			if r.vendor.SignsTime() {
				require.ErrorIs(t, err, signing.ErrTimestampOutsideWindow, r.vendor.Name)
			} else {
				require.NoError(t, err, r.vendor.Name)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r := all[rapid.IntRange(0, len(all)-1).Draw(t, "vendor")]
		flip := byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		tampered := r.m
		tampered.Body = bytes.Clone(r.m.Body)
		switch rapid.SampledFrom([]string{"body", "cut", "longer", "header", "method"}).Draw(t, "what") {
		case "body":
			i := rapid.IntRange(0, len(r.m.Body)-1).Draw(t, "byte")
			if r.signed != nil && len(r.signed) == 0 {
				return
			}
			if r.signed != nil {
				part := rapid.SampledFrom(r.signed).Draw(t, "part")
				i = bytes.Index(r.m.Body, []byte(part)) + i%len(part)
			}
			tampered.Body[i] ^= flip
			if formKind(r.vendor) && sameForm(r.vendor, tampered.Body, r.m.Body) {
				return
			}
		case "cut":
			if r.signed != nil && len(r.signed) == 0 {
				return
			}
			tampered.Body = tampered.Body[:rapid.IntRange(0, len(r.m.Body)-1).Draw(t, "length")]
		case "longer":
			if r.signed != nil {
				return
			}
			tampered.Body = append(tampered.Body, rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "more")...)
			if formKind(r.vendor) && sameForm(r.vendor, tampered.Body, r.m.Body) {
				return
			}
		case "header":
			if len(r.headers) == 0 {
				return
			}
			name := rapid.SampledFrom(r.headers).Draw(t, "header")
			i := rapid.IntRange(0, len(r.m.Header.Get(name))-1).Draw(t, "byte")
			tampered = r.with(name, i, flip)
			if i == 0 && r.vendor.Description.List == signing.KeyedSignatures {
				return
			}
			if strings.EqualFold(tampered.Header.Get(name), r.m.Header.Get(name)) {
				return // hex of either case
			}
		case "method":
			if !strings.Contains(r.vendor.Description.Signed, "{method}") {
				return
			}
			tampered.Method = rapid.SampledFrom([]string{"PUT", "GET", "post"}).Draw(t, "method")
		}
		if _, err := r.scheme.Verify(tampered, r.keys, now, tolerance); err == nil {
			t.Fatalf("%s takes %q %q", r.vendor.Name, tampered.Header, tampered.Body)
		}
	})
}

// with changes a byte of a header.
func (r *vendorRequest) with(name string, i int, flip byte) signing.Message {
	m := r.m
	m.Header = r.m.Header.Clone()
	value := []byte(m.Header.Get(name))
	value[i] ^= flip
	m.Header[name] = []string{string(value)}
	return m
}

func formKind(v vendors.Vendor) bool { return v.Kind == vendors.Twilio || v.Kind == vendors.Braintree }

// sameForm tells forms that are the same to who reads them, in which case Twilio's
// signature is the same too. It does not cover parameters without a name and a value, nor
// how often one is there. Braintree's public keys say nothing, nor do the pairs beside the
// right one.
func sameForm(v vendors.Vendor, changed, sent []byte) bool {
	x, errX := url.ParseQuery(string(changed))
	y, errY := url.ParseQuery(string(sent))
	if v.Kind == vendors.Twilio {
		for _, form := range []url.Values{x, y} {
			for name, values := range form {
				slices.Sort(values)
				if form[name] = slices.Compact(values); name+strings.Join(values, "") == "" {
					delete(form, name)
				}
			}
		}
	}
	if v.Kind == vendors.Braintree {
		_, right, _ := strings.Cut(y.Get("bt_signature"), "&public|")
		for _, form := range []url.Values{x, y} {
			for pair := range strings.SplitSeq(form.Get("bt_signature"), "&") {
				if _, signature, _ := strings.Cut(pair, "|"); signature == right {
					form.Set("bt_signature", right)
				}
			}
		}
	}
	return errX == nil && errY == nil && x.Encode() == y.Encode()
}

// A verifier makes of every vendor what its entry says that it needs.
func TestVerifiersOfVendors(t *testing.T) {
	for _, r := range vendorRequests(t) {
		v, err := signing.NewVerifier(r.keys, &signing.VerifierConfig{Schemes: []signing.Scheme{r.scheme}, Deduplicated: !r.vendor.SignsTime(), UnsignedBody: r.vendor.UnsignedBody(), Now: at(now)})
		require.NoError(t, err, r.vendor.Name)
		_, f, err := v.VerifyFacts(r.m)
		require.NoError(t, err, r.vendor.Name)
		require.NotEmpty(t, f.DedupKey(), r.vendor.Name)
		if !r.vendor.SignsTime() {
			_, err = signing.NewVerifier(r.keys, &signing.VerifierConfig{Schemes: []signing.Scheme{r.scheme}, UnsignedBody: true})
			require.ErrorContains(t, err, "Deduplicated", r.vendor.Name)
		}
	}
}

// With a vendor's window as the tolerance a request is taken until it is that old.
func TestWindowsOfVendors(t *testing.T) {
	tried := 0
	for _, r := range vendorRequests(t) {
		window := r.vendor.Window
		if window == 0 {
			continue
		}
		tried++
		for age, is := range map[time.Duration]error{window: nil, window + time.Second: signing.ErrTimestampOutsideWindow} {
			v, err := signing.NewVerifier(r.keys, &signing.VerifierConfig{Schemes: []signing.Scheme{r.scheme}, Tolerance: window, Now: at(now.Add(age))})
			require.NoError(t, err)
			_, err = v.Verify(r.m)
			require.ErrorIs(t, err, is, "%s %v", r.vendor.Name, age)
		}
	}
	require.Greater(t, tried, 15)
}
