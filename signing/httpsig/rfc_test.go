package httpsig_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

// The keys of RFC 9421, appendix B.1.
const (
	rfcPSS = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2
+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+
oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq
gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W
Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4
aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI
2wIDAQAB
-----END PUBLIC KEY-----`
	rfcECC = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf
w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
-----END PUBLIC KEY-----`
	rfcEd25519 = "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs="
	rfcHMAC    = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="

	rfcBody   = `{"hello": "world"}`
	rfcSHA512 = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"
	rfcSHA256 = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
	rfcCert   = ":MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVkaWF0ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaUgmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAWgBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEUCIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBVoU4hBVZ1yhk=:"
)

var rfcTime = time.Unix(1618884473, 0)

func rfcKeys(tb testing.TB) *signing.Keyring {
	tb.Helper()
	pss, err := signing.ParseRSAPublicKey(rfcPSS)
	require.NoError(tb, err)
	ecc, err := signing.ParseECDSAPublicKey(rfcECC)
	require.NoError(tb, err)
	raw, err := base64.StdEncoding.DecodeString(rfcEd25519)
	require.NoError(tb, err)
	ed, err := signing.ParseHexPublicKey(hex.EncodeToString(raw))
	require.NoError(tb, err)
	mac, err := signing.ParseSecret(rfcHMAC)
	require.NoError(tb, err)
	return ring(tb, signing.Key{ID: "test-key-rsa-pss", Secret: pss}, signing.Key{ID: "test-key-ecc-p256", Secret: ecc},
		signing.Key{ID: "test-key-ed25519", Secret: ed}, signing.Key{ID: "test-shared-secret", Secret: mac})
}

// rfcRequest is the test-request of appendix B.2.
func rfcRequest(input, signature string) signing.Message {
	return signing.Message{
		Method: http.MethodPost, URL: "/foo?param=Value&Pet=dog", Body: []byte(rfcBody),
		Header: http.Header{
			"Date": {"Tue, 20 Apr 2021 02:07:55 GMT"}, "Content-Type": {"application/json"}, "Content-Digest": {rfcSHA512}, "Content-Length": {"18"},
			"Signature-Input": {input}, "Signature": {signature},
		},
	}
}

// The signatures of requests in RFC 9421, appendices B.2 and B.3.
func TestPublishedSignatures(t *testing.T) {
	for _, c := range []struct {
		label, input, signature string
		algorithm               signing.Algorithm
		key, host, tag          string
		covered                 []string
	}{
		{"sig-b21", `sig-b21=();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"`, `sig-b21=:d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q==:`, signing.RSAPSSSHA512, "test-key-rsa-pss", "example.com", "", []string{}},
		{"sig-b22", `sig-b22=("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"`, `sig-b22=:LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTugEjHSw==:`, signing.RSAPSSSHA512, "test-key-rsa-pss", "example.com", "header-example", []string{`@authority`, `content-digest`, `@query-param;name="Pet"`}},
		{"sig-b23", `sig-b23=("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"`, `sig-b23=:bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA==:`, signing.RSAPSSSHA512, "test-key-rsa-pss", "example.com", "", []string{`date`, `@method`, `@path`, `@query`, `@authority`, `content-type`, `content-digest`, `content-length`}},
		{"sig-b25", `sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`, `sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:`, signing.HMACSHA256, "test-shared-secret", "example.com", "", []string{`date`, `@authority`, `content-type`}},
		{"sig-b26", `sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`, `sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:`, signing.Ed25519, "test-key-ed25519", "example.com", "", []string{`date`, `@method`, `@path`, `@authority`, `content-type`, `content-length`}},
		{"ttrp", `ttrp=("@path" "@query" "@method" "@authority" "client-cert");created=1618884473;keyid="test-key-ecc-p256"`, `ttrp=:xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw==:`, signing.ECDSAP256, "test-key-ecc-p256", "service.internal.example", "", []string{`@path`, `@query`, `@method`, `@authority`, `client-cert`}},
	} {
		s, err := httpsig.NewBodiless(c.algorithm, c.covered, &httpsig.Config{URL: "https://" + c.host, Key: signing.DecodedKey, Label: c.label, Tag: c.tag, NeedKeyID: true})
		require.NoError(t, err, c.label)
		m := rfcRequest(c.input, c.signature)
		m.Header["Client-Cert"] = []string{rfcCert}
		v, err := s.Verify(m, rfcKeys(t), rfcTime, time.Minute)
		require.NoError(t, err, c.label)
		require.Equal(t, signing.Verified{Scheme: "httpsig", KeyID: c.key, Timestamp: rfcTime.UTC()}, v)
		require.NoError(t, s.Precheck(m.Header, rfcTime, time.Minute))
		m.Header["Signature-Input"] = []string{strings.Replace(c.input, "created=1618884473", "created=1618884474", 1)}
		_, err = s.Verify(m, rfcKeys(t), rfcTime, time.Minute)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, c.label)
	}
}

// RFC 9421, appendix B.4, where a request is changed on its way, with one difference: a covered
// header in two lines is refused.
func TestPublishedTransformations(t *testing.T) {
	s, err := httpsig.NewBodiless(signing.Ed25519, []string{"@method", "@path", "@authority", "accept"}, &httpsig.Config{URL: "https://example.org"})
	require.NoError(t, err)
	elsewhere, err := httpsig.NewBodiless(signing.Ed25519, []string{"@method", "@path", "@authority", "accept"}, &httpsig.Config{URL: "https://example.com"})
	require.NoError(t, err)
	header := func(accept ...string) http.Header {
		return http.Header{"Accept": accept, "Signature-Input": {`transform=("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519"`}, "Signature": {`transform=:ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==:`}}
	}
	for _, c := range []struct {
		what   string
		scheme *httpsig.Scheme
		m      signing.Message
		want   error
	}{
		{"one line", s, signing.Message{Method: "GET", URL: "/demo?name1=Value1&Name2=value2", Header: header("application/json, */*")}, nil},
		{"another query", s, signing.Message{Method: "GET", URL: "/demo?name1=Value1&Name2=value2&param=added", Header: header("application/json, */*")}, nil},
		{"two lines", s, signing.Message{Method: "GET", URL: "/demo", Header: header("application/json", "*/*")}, signing.ErrRepeatedHeader},
		{"another method", s, signing.Message{Method: "POST", URL: "/demo", Header: header("application/json, */*")}, signing.ErrSignatureMismatch},
		{"another host", elsewhere, signing.Message{Method: "GET", URL: "/demo", Header: header("application/json, */*")}, signing.ErrSignatureMismatch},
		{"another order", s, signing.Message{Method: "GET", URL: "/demo", Header: header("*/*, application/json")}, signing.ErrSignatureMismatch},
	} {
		_, err := c.scheme.Verify(c.m, rfcKeys(t), rfcTime, time.Minute)
		require.ErrorIs(t, err, c.want, c.what)
	}
}

// RFC 9421, appendix B.2.4: a signature of ECDSA over an answer, whose base has a component that
// requests do not have. Its r and s become ASN.1.
func TestPublishedECDSA(t *testing.T) {
	const base = "\"@status\": 200\n\"content-type\": application/json\n\"content-digest\": sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:\n\"content-length\": 23\n\"@signature-params\": (\"@status\" \"content-type\" \"content-digest\" \"content-length\");created=1618884473;keyid=\"test-key-ecc-p256\""
	raw, err := base64.StdEncoding.DecodeString("wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw==")
	require.NoError(t, err)
	_, err = rfcKeys(t).VerifyText(&signing.Text{Algorithm: signing.ECDSAP256, KeyID: "test-key-ecc-p256", Bytes: []byte(base)}, httpsig.ToASN1(raw), rfcTime)
	require.NoError(t, err)
	back, err := httpsig.FromASN1(httpsig.ToASN1(raw))
	require.NoError(t, err)
	require.Equal(t, raw, back)
}

// The examples of RFC 9421, section 2, as lines of the text that is signed.
func TestPublishedComponents(t *testing.T) {
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	const dictionary = "a=1, b=2;x=1;y=2, c=(a b c), d" // section 2.1.2, as it is serialised
	for _, c := range []struct {
		component, url, target string
		header                 http.Header
		want                   string
	}{
		{`"host"`, "https://www.example.com", "/", nil, "www.example.com"},
		{`"x-empty-header"`, "", "", header("X-Empty-Header", ""), ""},
		{`"cache-control"`, "", "", header("Cache-Control", "max-age=60, must-revalidate"), "max-age=60, must-revalidate"},
		{`"example-dict";key="a"`, "", "", header("Example-Dict", dictionary), "1"},
		{`"example-dict";key="b"`, "", "", header("Example-Dict", dictionary), "2;x=1;y=2"},
		{`"example-dict";key="c"`, "", "", header("Example-Dict", dictionary), "(a b c)"},
		{`"example-dict";key="d"`, "", "", header("Example-Dict", dictionary), "?1"},
		{`"example-header";bs`, "", "", header("Example-Header", "value, with, lots, of, commas"), ":dmFsdWUsIHdpdGgsIGxvdHMsIG9mLCBjb21tYXM=:"},
		{`"@method"`, "", "", nil, "POST"},
		{`"@target-uri"`, "https://www.example.com", "/path?param=value", nil, "https://www.example.com/path?param=value"},
		{`"@target-uri"`, "https://www.example.com/path?param=value", "/elsewhere", nil, "https://www.example.com/path?param=value"},
		{`"@authority"`, "https://www.EXAMPLE.com:443", "/", nil, "www.example.com"},
		{`"@authority"`, "http://www.example.com:443", "/", nil, "www.example.com:443"},
		{`"@scheme"`, "http://www.example.com", "/path", nil, "http"},
		{`"@request-target"`, "https://www.example.com", "/path?param=value", nil, "/path?param=value"},
		{`"@request-target"`, "https://www.example.com", "https://www.example.com/path?param=value", nil, "/path?param=value"},
		{`"@path"`, "https://www.example.com", "/path?param=value", nil, "/path"},
		{`"@path"`, "https://www.example.com?x", "", nil, "/"},
		{`"@query"`, "https://www.example.com", "/path?param=value&foo=bar&baz=bat%2Dman", nil, "?param=value&foo=bar&baz=bat%2Dman"},
		{`"@query"`, "https://www.example.com", "/path?queryString", nil, "?queryString"},
		{`"@query"`, "https://www.example.com", "/path", nil, "?"},
		{`"@query-param";name="baz"`, "https://www.example.com", "/path?param=value&foo=bar&baz=batman&qux=", nil, "batman"},
		{`"@query-param";name="qux"`, "https://www.example.com", "/path?param=value&foo=bar&baz=batman&qux=", nil, ""},
		{`"@query-param";name="var"`, "https://www.example.com", "/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something", nil, "this%20is%20a%20big%0Amultiline%20value"},
		{`"@query-param";name="bar"`, "https://www.example.com", "/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something", nil, "with%20plus%20whitespace"},
		{`"@query-param";name="fa%C3%A7ade%22%3A%20"`, "https://www.example.com", "/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace&fa%C3%A7ade%22%3A%20=something", nil, "something"},
	} {
		s, err := httpsig.NewBodiless(signing.HMACSHA256, nil, &httpsig.Config{URL: c.url, NoCreated: true})
		require.NoError(t, err)
		h := http.Header{"Signature-Input": {"sig=(" + c.component + ");x"}, "Signature": {"sig=:" + strings.Repeat("A", 43) + "=:"}}
		for name, values := range c.header {
			h[name] = values
		}
		base, err := s.Base(signing.Message{Method: "POST", URL: c.target, Header: h}, now)
		require.NoError(t, err, c.component)
		require.Equal(t, c.component+": "+c.want+"\n\"@signature-params\": ("+c.component+");x", base)
	}
}

// A component that the request does not have once, or not in its form, refuses it.
func TestComponentsThatAreNotThere(t *testing.T) {
	for component, m := range map[string]signing.Message{
		`"@query-param";name="a"`:  {Method: "POST", URL: "/?a=1&a=2"},
		`"@query-param";name="b"`:  {Method: "POST", URL: "/?a=1"},
		`"@query-param";name="%b"`: {Method: "POST", URL: "/?%b=1"}, // its name is %25b
		`"@query-param";name="c"`:  {Method: "POST", URL: "/?c=1" + strings.Repeat("&", 300)},
		`"@path"`:                  {Method: "POST", URL: ""},
		`"@target-uri"`:            {Method: "POST", URL: "*"},
		`"@query"`:                 {Method: "POST", URL: "/?\n"},
		`"@request-target"`:        {Method: "POST", URL: "https://example.com"},
		`"x-list";key="z"`:         {Header: http.Header{"X-List": {"a=1"}}},
		`"x-list";key="a"`:         {Header: http.Header{"X-List": {"a=1,a=2"}}},
		`"x-bytes";bs`:             {Header: http.Header{"X-Bytes": {"a", "b"}}},
	} {
		s, err := httpsig.NewBodiless(signing.HMACSHA256, nil, &httpsig.Config{URL: "https://example.com", NoCreated: true})
		require.NoError(t, err)
		h := http.Header{"Signature-Input": {"sig=(" + component + ")"}, "Signature": {"sig=:" + strings.Repeat("A", 43) + "=:"}}
		for name, values := range m.Header {
			h[name] = values
		}
		m.Header = h
		_, err = s.Base(m, now)
		require.Error(t, err, component)
	}
}

// The digests of RFC 9530, appendix B, and of RFC 9421, appendix B.2, alone and together.
func TestPublishedDigests(t *testing.T) {
	const (
		body   = "{\"hello\": \"world\"}\n" // which ends with a line feed there
		sha256 = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
	)
	keys := ring(t, hmacKey(t, secretA))
	for _, c := range []struct {
		digest, body string
		want         error
	}{
		{sha256, body, nil},
		{rfcSHA256, rfcBody, nil},
		{rfcSHA512, rfcBody, nil},
		{rfcSHA256 + ", " + rfcSHA512, rfcBody, nil},
		{"unixsum=:AAAA:,\t" + rfcSHA512, rfcBody, nil},
		{rfcSHA256, body, signing.ErrSignatureMismatch},
		{sha256 + ", " + rfcSHA512, rfcBody, signing.ErrSignatureMismatch},
		{rfcSHA256 + ", " + rfcSHA512, body, signing.ErrSignatureMismatch},
	} {
		s := scheme(t, signing.HMACSHA256, []string{"content-digest"}, httpsig.Config{})
		m := signed(t, s, keys, c.body)
		m.Header["Content-Digest"] = []string{c.digest}
		st, err := s.Base(m, now)
		require.NoError(t, err, c.digest)
		mac, _, err := keys.SignText(&signing.Text{Bytes: []byte(st)}, now)
		require.NoError(t, err)
		m.Header["Signature"] = []string{"sig1=:" + base64.StdEncoding.EncodeToString(mac) + ":"}
		_, err = s.Verify(m, keys, now, tolerance)
		require.ErrorIs(t, err, c.want, c.digest)
	}
}
