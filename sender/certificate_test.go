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
	"github.com/surehook/surehook/sender/internal/bedtest"
)

func TestClientCertificate(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "https://endpoint/")
	a := bedtest.NewAuthority(t)
	rsaKey := func(bits int) crypto.Signer {
		t.Setenv("GODEBUG", "rsa1024min=0")
		key, err := rsa.GenerateKey(rand.Reader, bits)
		require.NoError(t, err)
		return key
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	good, other := a.Client("good"), a.Client("other")

	subscribe := func(url string, c *sender.ClientCertificate) (sender.Subscription, error) {
		return b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: url, ClientCertificate: c})
	}
	for name, c := range map[string]*sender.ClientCertificate{
		"ECDSA": good, "RSA": a.Issue("rsa", rsaKey(2048), time.Hour), "Ed25519": a.Issue("ed", edKey, time.Hour),
		"a chain": {CertificatePEM: append(bytes.Clone(good.CertificatePEM), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Cert.Raw})...), KeyPEM: good.KeyPEM},
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
		"expired":          {"https://endpoint/", a.Issue("old", bedtest.NewECDSAKey(t, elliptic.P256()), -time.Minute), "it expired at"},
		"a short RSA key":  {"https://endpoint/", a.Issue("rsa", rsaKey(1024), time.Hour), "1024 bits: it must have 2048 to 8192"},
		"a curve not used": {"https://endpoint/", a.Issue("p224", bedtest.NewECDSAKey(t, elliptic.P224()), time.Hour), "P-224"},
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
	_, err = b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://endpoint/", Settings: s.Settings})
	require.ErrorIs(t, err, sender.ErrInvalid)
	require.ErrorContains(t, err, "give ClientCertificate", "another subscription's sealed certificate would never open")
}
