package paypal_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/paypal"
)

const (
	webhookID = "4JH86294D6297924G"
	certURL   = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77"
	sentAt    = "2026-11-26T08:59:00Z"
	event     = `{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED"}`
	tolerance = 5 * time.Minute
	subject   = "messageverificationcerts.paypal.com"
)

var now = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// authority has a root, one below it, and PayPal's key.
type authority struct {
	rootKey, betweenKey, key crypto.Signer
	root, between            *x509.Certificate
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{rootKey: ecKey(tb), betweenKey: ecKey(tb)}
	a.key = rsaKey()
	a.root = issue(tb, &x509.Certificate{IsCA: true, Subject: pkix.Name{CommonName: "Root"}, NotAfter: now.Add(1000 * time.Hour)}, nil, a.rootKey, a.rootKey)
	a.between = issue(tb, &x509.Certificate{IsCA: true, Subject: pkix.Name{CommonName: "Between"}, NotAfter: now.Add(500 * time.Hour)}, a.root, a.betweenKey, a.rootKey)
	return a
}

// rsaKey is one for all tests, because it takes long to make.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func ecKey(tb testing.TB) crypto.Signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	return key
}

func issue(tb testing.TB, t, parent *x509.Certificate, key, by crypto.Signer) *x509.Certificate {
	tb.Helper()
	t.SerialNumber, t.BasicConstraintsValid = big.NewInt(1), true
	if t.NotBefore.IsZero() {
		t.NotBefore = now.Add(-time.Hour)
	}
	if t.IsCA {
		t.KeyUsage = x509.KeyUsageCertSign
	}
	if parent == nil {
		parent = t
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), by)
	require.NoError(tb, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	return cert
}

// leaf is PayPal's certificate, for this name.
func (a *authority) leaf(tb testing.TB, name string, key crypto.Signer) *x509.Certificate {
	tb.Helper()
	return issue(tb, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: now.Add(48 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, a.between, key, a.betweenKey)
}

func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	return pool
}

func inPEM(certs ...*x509.Certificate) []byte {
	var all []byte
	for _, c := range certs {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return all
}

// request is one that PayPal could send. The text is made as the documentation says, not by the
// package.
func (a *authority) request(tb testing.TB, body string) signing.Message {
	tb.Helper()
	sum := sha256.Sum256(fmt.Appendf(nil, "dfb3be50-fd74-11e4-8bf3-77339302725b|%s|%s|%d", sentAt, webhookID, crc32.ChecksumIEEE([]byte(body))))
	signature, err := a.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	require.NoError(tb, err)
	return signing.Message{Method: "POST", Body: []byte(body), Header: http.Header{
		"Paypal-Transmission-Id": {"dfb3be50-fd74-11e4-8bf3-77339302725b"}, "Paypal-Transmission-Time": {sentAt},
		"Paypal-Transmission-Sig": {base64.StdEncoding.EncodeToString(signature)}, "Paypal-Cert-Url": {certURL}, "Paypal-Auth-Algo": {"SHA256withRSA"},
	}}
}

// host answers in place of PayPal's, and counts.
type host struct {
	body  []byte
	err   error
	asked int
}

func (h *host) RoundTrip(req *http.Request) (*http.Response, error) {
	h.asked++
	if h.err != nil {
		return nil, h.err
	}
	if req.URL.String() != certURL {
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(h.body))}, nil
}

func scheme(tb testing.TB, cfg paypal.Config, h *host) *paypal.Scheme {
	tb.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return now }
	}
	s, err := paypal.New(webhookID, &cfg)
	require.NoError(tb, err)
	s.SetTransport(h)
	return s
}

func TestRequestsVerify(t *testing.T) {
	a := newAuthority(t)
	h := &host{body: inPEM(a.leaf(t, subject, a.key), a.between)}
	s := scheme(t, paypal.Config{Roots: a.roots()}, h)
	_, err := signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{s}})
	require.ErrorContains(t, err, "UnsignedBody")
	v, err := signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, UnsignedBody: true, Now: func() time.Time { return now }})
	require.NoError(t, err)
	m := a.request(t, event)
	for range 3 {
		require.NoError(t, v.Precheck(m.Header))
		verified, facts, err := v.VerifyFacts(m)
		require.NoError(t, err)
		require.Equal(t, signing.Verified{Scheme: "paypal", KeyID: "CERT-360caa42-fca2a594-a5cafa77", Timestamp: now.Add(-time.Minute), ID: "dfb3be50-fd74-11e4-8bf3-77339302725b"}, verified)
		require.Equal(t, verified.ID, facts.ID)
		require.Empty(t, facts.Type)
		require.Equal(t, signing.Unsigned("WH-1"), facts.UnsignedID)
		require.Equal(t, signing.Unsigned("PAYMENT.SALE.COMPLETED"), facts.UnsignedType)
	}
	require.Equal(t, 1, h.asked, "the certificate is kept")
	require.ErrorIs(t, s.Sign(http.Header{}, "", now, nil, nil), signing.ErrSecretUnsuited)
}

// The text of PayPal's own documentation and libraries, with the event of their samples:
// https://github.com/paypal/PayPal-Ruby-SDK/blob/master/spec/webhooks_examples_spec.rb
func TestPublishedText(t *testing.T) {
	const body = `{"id":"WH-0G2756385H040842W-5Y612302CV158622M","create_time":"2015-05-18T15:45:13Z","resource_type":"sale","event_type":"PAYMENT.SALE.COMPLETED","summary":"Payment completed for $ 20.0 USD","resource":{"id":"4EU7004268015634R","create_time":"2015-05-18T15:44:02Z","update_time":"2015-05-18T15:44:21Z","amount":{"total":"20.00","currency":"USD"},"payment_mode":"INSTANT_TRANSFER","state":"completed","protection_eligibility":"ELIGIBLE","protection_eligibility_type":"ITEM_NOT_RECEIVED_ELIGIBLE,UNAUTHORIZED_PAYMENT_ELIGIBLE","parent_payment":"PAY-86C81811X5228590KKVNARQQ","transaction_fee":{"value":"0.88","currency":"USD"},"links":[{"href":"https://api.sandbox.paypal.com/v1/payments/sale/4EU7004268015634R","rel":"self","method":"GET"},{"href":"https://api.sandbox.paypal.com/v1/payments/sale/4EU7004268015634R/refund","rel":"refund","method":"POST"},{"href":"https://api.sandbox.paypal.com/v1/payments/payment/PAY-86C81811X5228590KKVNARQQ","rel":"parent_payment","method":"GET"}]},"links":[{"href":"https://api.sandbox.paypal.com/v1/notifications/webhooks-events/WH-0G2756385H040842W-5Y612302CV158622M","rel":"self","method":"GET"},{"href":"https://api.sandbox.paypal.com/v1/notifications/webhooks-events/WH-0G2756385H040842W-5Y612302CV158622M/resend","rel":"resend","method":"POST"}]}`
	s := scheme(t, paypal.Config{Sandbox: true}, &host{})
	m := signing.Message{Body: []byte(body), Header: http.Header{"Paypal-Transmission-Id": {"dfb3be50-fd74-11e4-8bf3-77339302725b"}, "Paypal-Transmission-Time": {"2015-05-18T15:45:13Z"}}}
	require.Equal(t, "dfb3be50-fd74-11e4-8bf3-77339302725b|2015-05-18T15:45:13Z|4JH86294D6297924G|2771810304", s.Text(m))
}

// A CRC-32 is no digest: a body of the attacker's own with four more bytes has the right one, and
// the signature stays right. That is why nothing of the body is a fact.
func TestNothingOfTheBodyIsTrusted(t *testing.T) {
	a := newAuthority(t)
	s := scheme(t, paypal.Config{Roots: a.roots()}, &host{body: inPEM(a.leaf(t, subject, a.key), a.between)})
	m := a.request(t, event)
	m.Body = withCRC([]byte(`{"id":"WH-2","event_type":"PAYMENT.SALE.REFUNDED","x":"`), []byte(`"}`), crc32.ChecksumIEEE(m.Body))
	require.False(t, s.CoversBody())
	verified, err := s.Verify(m, nil, now, tolerance)
	require.NoError(t, err)
	f := s.Facts(m, verified)
	require.Equal(t, "id-dfb3be50-fd74-11e4-8bf3-77339302725b", f.DedupKey(), "it is the same request, so it is a duplicate")
	require.Empty(t, f.Type)
}

// withCRC puts in four bytes that give the whole that CRC-32, found from both ends.
func withCRC(head, tail []byte, want uint32) []byte {
	back := ^want // the state behind the tail, taken back over it
	table := crc32.IEEETable
	undo := func(state uint32, b byte) uint32 {
		for i, v := range table {
			if v>>24 == state>>24 {
				return (state^v)<<8 | uint32(byte(i)^b)
			}
		}
		panic("each byte stands at the top of one entry")
	}
	for i := len(tail) - 1; i >= 0; i-- {
		back = undo(back, tail[i])
	}
	for range 4 {
		back = undo(back, 0)
	}
	patch := back ^ ^crc32.ChecksumIEEE(head)
	whole := append(bytes.Clone(head), byte(patch), byte(patch>>8), byte(patch>>16), byte(patch>>24))
	return append(whole, tail...)
}

func TestRefusedRequests(t *testing.T) {
	a := newAuthority(t)
	s := scheme(t, paypal.Config{Roots: a.roots()}, &host{body: inPEM(a.leaf(t, subject, a.key), a.between)})
	set := func(name string, values ...string) func(*signing.Message) {
		return func(m *signing.Message) { m.Header["Paypal-"+name] = values }
	}
	for _, c := range []struct {
		what   string
		change func(*signing.Message)
		want   error
	}{
		{"no signature", set("Transmission-Sig"), signing.ErrNotSigned},
		{"no id", set("Transmission-Id"), signing.ErrMissingHeader},
		{"two ids", set("Transmission-Id", "a", "a"), signing.ErrRepeatedHeader},
		{"two spellings", func(m *signing.Message) {
			id := m.Header["Paypal-Transmission-Id"]
			delete(m.Header, "Paypal-Transmission-Id")
			m.Header["PAYPAL-TRANSMISSION-ID"], m.Header["paypal-transmission-id"] = id, id
		}, signing.ErrRepeatedHeader},
		{"a bar in the id", set("Transmission-Id", "a|b"), signing.ErrMalformedHeader},
		{"an offset", set("Transmission-Time", "2026-11-26T08:59:00+00:00"), signing.ErrMalformedHeader},
		{"no such day", set("Transmission-Time", "2026-02-31T08:59:00Z"), signing.ErrMalformedHeader},
		{"old", set("Transmission-Time", "2026-11-23T07:59:59Z"), signing.ErrTimestampOutsideWindow},
		{"ahead", set("Transmission-Time", "2026-11-26T09:05:01Z"), signing.ErrTimestampOutsideWindow},
		{"another time", set("Transmission-Time", "2026-11-26T08:59:01Z"), signing.ErrSignatureMismatch},
		{"another id", set("Transmission-Id", "dfb3be50-fd74-11e4-8bf3-77339302725c"), signing.ErrSignatureMismatch},
		{"SHA-1", set("Auth-Algo", "SHA1withRSA"), signing.ErrMalformedHeader},
		{"no algorithm", set("Auth-Algo"), signing.ErrMissingHeader},
		{"no base64", set("Transmission-Sig", "!"), signing.ErrMalformedHeader},
		{"an empty signature", set("Transmission-Sig", ""), signing.ErrMalformedHeader},
		{"another signature", set("Transmission-Sig", "AAAA"), signing.ErrSignatureMismatch},
		{"another's host", set("Cert-Url", "https://example.com/v1/notifications/certs/CERT-1"), signing.ErrMalformedHeader},
		{"a host that begins alike", set("Cert-Url", "https://api.paypal.com.example.com/v1/notifications/certs/CERT-1"), signing.ErrMalformedHeader},
		{"a user that is like the host", set("Cert-Url", "https://api.paypal.com@example.com/v1/notifications/certs/CERT-1"), signing.ErrMalformedHeader},
		{"the sandbox", set("Cert-Url", "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1"), signing.ErrMalformedHeader},
		{"http", set("Cert-Url", strings.Replace(certURL, "https", "http", 1)), signing.ErrMalformedHeader},
		{"a port", set("Cert-Url", strings.Replace(certURL, ".com/", ".com:444/", 1)), signing.ErrMalformedHeader},
		{"another path", set("Cert-Url", "https://api.paypal.com/v1/notifications/certs/../CERT-1"), signing.ErrMalformedHeader},
		{"a query", set("Cert-Url", certURL+"?x"), signing.ErrMalformedHeader},
		{"a certificate that is not there", set("Cert-Url", certURL+"0"), paypal.ErrCertificate},
		{"another body", func(m *signing.Message) { m.Body = []byte("{}") }, signing.ErrSignatureMismatch},
	} {
		m := a.request(t, event)
		c.change(&m)
		_, err := s.Verify(m, nil, now, tolerance)
		require.ErrorIs(t, err, c.want, c.what)
		require.NotContains(t, err.Error(), "example.com", "no value of a header is in an error")
	}
	for at, says := range map[string]string{"2026-11-23T07:59:59Z": "262801 s behind the clock here: at most 262800 s", "2026-11-26T09:05:01Z": "301 s ahead of the clock here: at most 300 s"} {
		m := a.request(t, event)
		m.Header["Paypal-Transmission-Time"] = []string{at}
		require.ErrorContains(t, s.Precheck(m.Header, now, tolerance), says)
	}
	other, err := paypal.New("OTHER", &paypal.Config{Certificate: a.leaf(t, subject, a.key), Now: func() time.Time { return now }})
	require.NoError(t, err)
	_, err = other.Verify(a.request(t, event), nil, now, tolerance)
	require.ErrorIs(t, err, signing.ErrSignatureMismatch, "another webhook's")
	var zero paypal.Scheme
	require.ErrorIs(t, zero.Precheck(nil, now, tolerance), signing.ErrNoValidKey)
}

// A certificate counts if it leads to a root, for PayPal's name, now, with an RSA key. Otherwise
// nobody knows whether the signature is right.
func TestCertificates(t *testing.T) {
	a, another := newAuthority(t), newAuthority(t)
	another.key = a.key // somebody who makes their own certificates can certify any key
	good := a.leaf(t, subject, a.key)
	later := func() time.Time { return now.Add(49 * time.Hour) }
	short, err := rsa.GenerateKey(rand.Reader, 1536)
	require.NoError(t, err)
	for _, c := range []struct {
		what string
		h    host
		cfg  paypal.Config
		ok   bool
	}{
		{"the chain", host{body: inPEM(good, a.between)}, paypal.Config{Roots: a.roots()}, true},
		{"what lies between is configured", host{body: inPEM(good)}, paypal.Config{Roots: a.roots(), Intermediates: []*x509.Certificate{a.between}}, true},
		{"what lies between is not there", host{body: inPEM(good)}, paypal.Config{Roots: a.roots()}, false},
		{"the system's roots", host{body: inPEM(good, a.between)}, paypal.Config{}, false},
		{"another root", host{body: inPEM(another.leaf(t, subject, a.key), another.between, another.root)}, paypal.Config{Roots: a.roots()}, false},
		{"another name", host{body: inPEM(a.leaf(t, "www.paypal.com", a.key), a.between)}, paypal.Config{Roots: a.roots()}, false},
		{"the sandbox's name", host{body: inPEM(a.leaf(t, "messageverificationcerts.sandbox.paypal.com", a.key), a.between)}, paypal.Config{Roots: a.roots()}, false},
		{"the one between comes first", host{body: inPEM(a.between, good)}, paypal.Config{Roots: a.roots()}, false},
		{"it has ended", host{body: inPEM(good, a.between)}, paypal.Config{Roots: a.roots(), Now: later}, false},
		{"no RSA key", host{body: inPEM(a.leaf(t, subject, ecKey(t)), a.between)}, paypal.Config{Roots: a.roots()}, false},
		{"a short key", host{body: inPEM(a.leaf(t, subject, short), a.between)}, paypal.Config{Roots: a.roots()}, false},
		{"no PEM", host{body: []byte("{}")}, paypal.Config{Roots: a.roots()}, false},
		{"no certificate", host{body: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})}, paypal.Config{Roots: a.roots()}, false},
		{"a key alone", host{body: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: good.RawSubjectPublicKeyInfo})}, paypal.Config{Roots: a.roots()}, false},
		{"too many", host{body: bytes.Repeat(inPEM(good), 9)}, paypal.Config{Roots: a.roots()}, false},
		{"too long", host{body: append(inPEM(good, a.between), make([]byte, 64<<10)...)}, paypal.Config{Roots: a.roots()}, false},
		{"the host is away", host{err: errors.New("away")}, paypal.Config{Roots: a.roots()}, false},
	} {
		s := scheme(t, c.cfg, &c.h)
		for range 3 {
			_, err := s.Verify(a.request(t, event), nil, now, tolerance)
			if c.ok {
				require.NoError(t, err, c.what)
			} else {
				require.ErrorIs(t, err, paypal.ErrCertificate, c.what)
			}
		}
		require.Equal(t, 1, c.h.asked, "%s: a failure is remembered", c.what)
	}
}

// A certificate is not used beyond its end, nor beyond that of those above it.
func TestCertificatesEnd(t *testing.T) {
	a := newAuthority(t)
	clock := now
	a.between = issue(t, &x509.Certificate{IsCA: true, Subject: pkix.Name{CommonName: "Between"}, NotAfter: now.Add(2 * time.Hour)}, a.root, a.betweenKey, a.rootKey)
	s := scheme(t, paypal.Config{Roots: a.roots(), Now: func() time.Time { return clock }}, &host{body: inPEM(a.leaf(t, subject, a.key), a.between)})
	for _, c := range []struct {
		after time.Duration
		want  error
	}{{0, nil}, {2*time.Hour - time.Second, nil}, {2*time.Hour + time.Second, paypal.ErrCertificate}} {
		clock = now.Add(c.after)
		_, err := s.Verify(a.request(t, event), nil, clock, tolerance)
		require.ErrorIs(t, err, c.want, "%v", c.after)
	}
}

// Strangers who have every fetch made do not end the use of a certificate that was there.
func TestCertificatesAreRenewedWhateverStrangersAskFor(t *testing.T) {
	a := newAuthority(t)
	clock := now
	h := &host{body: inPEM(a.leaf(t, subject, a.key), a.between)}
	s := scheme(t, paypal.Config{Roots: a.roots(), Now: func() time.Time { return clock }}, h)
	_, err := s.Verify(a.request(t, event), nil, now, tolerance)
	require.NoError(t, err)
	clock = now.Add(25 * time.Hour)
	for i := range 20 {
		m := a.request(t, event)
		m.Header.Set("Paypal-Cert-Url", fmt.Sprint(certURL, i))
		_, err := s.Verify(m, nil, clock, tolerance)
		require.ErrorIs(t, err, paypal.ErrCertificate)
	}
	require.Equal(t, 1+8, h.asked)
	_, err = s.Verify(a.request(t, event), nil, clock, tolerance)
	require.NoError(t, err)
}

func TestRefusedConfigurations(t *testing.T) {
	a := newAuthority(t)
	for _, c := range []struct {
		id   string
		cfg  paypal.Config
		says string
	}{
		{"", paypal.Config{}, "webhook's ID"},
		{"a|b", paypal.Config{}, "webhook's ID"},
		{webhookID, paypal.Config{MaxAge: 1}, "MaxAge"},
		{webhookID, paypal.Config{Timeout: -1}, "Timeout"},
		{webhookID, paypal.Config{Certificate: a.root}, "no RSA key"},
	} {
		_, err := paypal.New(c.id, &c.cfg)
		require.ErrorContains(t, err, c.says)
	}
}

// With any one byte changed of a signed header or of the body, the request is refused: a CRC-32
// finds that.
func TestPropertyTamperingIsRefused(t *testing.T) {
	a := newAuthority(t)
	s := scheme(t, paypal.Config{Certificate: a.leaf(t, subject, a.key)}, &host{})
	good := a.request(t, event)
	rapid.Check(t, func(t *rapid.T) {
		m := signing.Message{Header: good.Header.Clone(), Body: bytes.Clone(good.Body)}
		name := rapid.SampledFrom([]string{"", "Paypal-Transmission-Id", "Paypal-Transmission-Time", "Paypal-Transmission-Sig", "Paypal-Auth-Algo"}).Draw(t, "what")
		text := m.Body
		if name != "" {
			text = []byte(m.Header.Get(name))
		}
		i := rapid.IntRange(0, len(text)-1).Draw(t, "byte")
		text[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if name != "" {
			m.Header[name] = []string{string(text)}
		}
		if _, err := s.Verify(m, nil, now, tolerance); err == nil {
			t.Fatalf("%q %q is taken", m.Header, m.Body)
		}
	})
}

// FuzzHeaders never ends in a panic, and takes nothing.
func FuzzHeaders(f *testing.F) {
	a := newAuthority(f)
	s := scheme(f, paypal.Config{Roots: a.roots()}, &host{err: errors.New("away")})
	f.Add("id", sentAt, "AAAA", certURL, "SHA256withRSA", []byte(event))
	f.Fuzz(func(t *testing.T, id, at, signature, url, algorithm string, body []byte) {
		m := signing.Message{Body: body, Header: http.Header{
			"Paypal-Transmission-Id": {id}, "Paypal-Transmission-Time": {at}, "Paypal-Transmission-Sig": {signature}, "Paypal-Cert-Url": {url}, "Paypal-Auth-Algo": {algorithm},
		}}
		if _, err := s.Verify(m, nil, now, tolerance); err == nil {
			t.Fatalf("%q is taken", m.Header)
		}
		_ = s.Facts(m, signing.Verified{})
	})
}
