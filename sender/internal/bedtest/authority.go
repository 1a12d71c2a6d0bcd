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

// Authority issues certificates. Its own is the only one in Pool.
type Authority struct {
	Cert *x509.Certificate
	Pool *x509.CertPool

	t   *testing.T
	key crypto.Signer
}

// NewAuthority returns an authority whose own certificate is valid for an hour.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{t: t, key: NewECDSAKey(t, elliptic.P256()), Pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	require.NoError(t, err)
	a.Cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.Pool.AddCert(a.Cert)
	return a
}

// Issue returns the certificate of a name, for clients and servers. It ends after valid,
// which may be negative.
func (a *Authority) Issue(name string, key crypto.Signer, valid time.Duration) *sender.ClientCertificate {
	a.t.Helper()
	return a.IssueFrom(name, key, time.Now().Add(-2*time.Hour), time.Now().Add(valid))
}

// IssueFrom is Issue for a certificate that is valid between two times.
func (a *Authority) IssueFrom(name string, key crypto.Signer, from, until time.Time) *sender.ClientCertificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: from, NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.Cert, key.Public(), a.key)
	require.NoError(a.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	return &sender.ClientCertificate{
		CertificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

// Client returns the certificate of a client, valid for an hour.
func (a *Authority) Client(name string) *sender.ClientCertificate {
	a.t.Helper()
	return a.Issue(name, NewECDSAKey(a.t, elliptic.P256()), time.Hour)
}

// Server returns the certificate of a host, valid for an hour.
func (a *Authority) Server(host string) tls.Certificate {
	a.t.Helper()
	c := a.Client(host)
	pair, err := tls.X509KeyPair(c.CertificatePEM, c.KeyPEM)
	require.NoError(a.t, err)
	return pair
}

// NewECDSAKey returns a new key on a curve.
func NewECDSAKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}
