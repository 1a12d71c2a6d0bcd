package bedtest

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
type Authority struct {
	T    *testing.T
	Cert *x509.Certificate
	Key  crypto.Signer
	Pool *x509.CertPool
}

// issue returns a certificate for a name, which ends after a time.
func (a *Authority) Issue(name string, key crypto.Signer, valid time.Duration) *sender.ClientCertificate {
	a.T.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.Cert, key.Public(), a.Key)
	require.NoError(a.T, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.T, err)
	return &sender.ClientCertificate{
		CertificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

func (a *Authority) Client(name string) *sender.ClientCertificate {
	return a.Issue(name, EcdsaKey(a.T, elliptic.P256()), time.Hour)
}

func (a *Authority) Server(name string) tls.Certificate {
	a.T.Helper()
	c := a.Client(name)
	pair, err := tls.X509KeyPair(c.CertificatePEM, c.KeyPEM)
	require.NoError(a.T, err)
	return pair
}

func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{T: t, Key: EcdsaKey(t, elliptic.P256()), Pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.Key.Public(), a.Key)
	require.NoError(t, err)
	a.Cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.Pool.AddCert(a.Cert)
	return a
}

func EcdsaKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}
