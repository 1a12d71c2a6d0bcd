package sender_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  crypto.Signer
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: ecdsaKey(t, elliptic.P256()), pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.pool.AddCert(a.cert)
	return a
}

func ecdsaKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

// issue returns a certificate for a name, which ends after a time.
func (a *authority) issue(name string, key crypto.Signer, valid time.Duration) *sender.ClientCertificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.cert, key.Public(), a.key)
	require.NoError(a.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	return &sender.ClientCertificate{
		CertificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

func (a *authority) client(name string) *sender.ClientCertificate {
	return a.issue(name, ecdsaKey(a.t, elliptic.P256()), time.Hour)
}

func (a *authority) server(name string) tls.Certificate {
	a.t.Helper()
	c := a.client(name)
	pair, err := tls.X509KeyPair(c.CertificatePEM, c.KeyPEM)
	require.NoError(a.t, err)
	return pair
}

func TestClientCertificate(t *testing.T) {
	b := newBed(t)
	b.subscribe("sub_a", "https://endpoint/")
	a := newAuthority(t)
	rsaKey := func(bits int) crypto.Signer {
		t.Setenv("GODEBUG", "rsa1024min=0")
		key, err := rsa.GenerateKey(rand.Reader, bits)
		require.NoError(t, err)
		return key
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	good, other := a.client("good"), a.client("other")

	subscribe := func(url string, c *sender.ClientCertificate) (sender.Subscription, error) {
		return b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: url, ClientCertificate: c})
	}
	for name, c := range map[string]*sender.ClientCertificate{
		"ECDSA": good, "RSA": a.issue("rsa", rsaKey(2048), time.Hour), "Ed25519": a.issue("ed", edKey, time.Hour),
		"a chain": {CertificatePEM: append(bytes.Clone(good.CertificatePEM), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...), KeyPEM: good.KeyPEM},
	} {
		s, err := subscribe("https://endpoint/", c)
		require.NoError(t, err, name)
		require.NotEmpty(t, s.Settings.SealedCertificate, name)
		require.NotContains(t, string(s.Settings.SealedCertificate), "PRIVATE KEY", "it is sealed")
	}
	for name, c := range map[string]struct {
		url  string
		c    *sender.ClientCertificate
		says string
	}{
		"not a pair":       {"https://endpoint/", &sender.ClientCertificate{CertificatePEM: good.CertificatePEM, KeyPEM: other.KeyPEM}, "not a pair"},
		"no key":           {"https://endpoint/", &sender.ClientCertificate{CertificatePEM: good.CertificatePEM}, "KeyPEM has no PEM block"},
		"no certificate":   {"https://endpoint/", &sender.ClientCertificate{KeyPEM: good.KeyPEM}, "CertificatePEM has no PEM block"},
		"the wrong way":    {"https://endpoint/", &sender.ClientCertificate{CertificatePEM: good.KeyPEM, KeyPEM: good.CertificatePEM}, "cannot be read"},
		"expired":          {"https://endpoint/", a.issue("old", ecdsaKey(t, elliptic.P256()), -time.Minute), "it expired at"},
		"a short RSA key":  {"https://endpoint/", a.issue("rsa", rsaKey(1024), time.Hour), "1024 bits: it must have 2048 to 8192"},
		"a curve not used": {"https://endpoint/", a.issue("p224", ecdsaKey(t, elliptic.P224()), time.Hour), "P-224"},
		"too large":        {"https://endpoint/", &sender.ClientCertificate{CertificatePEM: bytes.Repeat(good.CertificatePEM, 50), KeyPEM: good.KeyPEM}, "at most 16384"},
		"without TLS":      {"http://endpoint/", good, "the URL must be https"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := subscribe(c.url, c.c)
			require.ErrorIs(t, err, sender.ErrInvalid)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "BEGIN")
		})
	}
	s, err := subscribe("https://endpoint/", good)
	require.NoError(t, err)
	_, err = b.reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://endpoint/", Settings: s.Settings})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.ErrorContains(t, err, "give ClientCertificate", "another subscription's sealed certificate would never open")
}
