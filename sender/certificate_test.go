package sender_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

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
