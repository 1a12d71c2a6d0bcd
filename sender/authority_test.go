package sender_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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
