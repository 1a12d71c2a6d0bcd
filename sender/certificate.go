package sender

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// ClientCertificate is what a subscription's endpoint asks its clients for.
// Printing or logging it shows nothing of it.
type ClientCertificate struct {
	// CertificatePEM is the certificate, and the intermediate ones behind it.
	CertificatePEM []byte
	// KeyPEM is its private key, not encrypted: RSA of 2048 to 8192 bits, ECDSA on
	// P-256, P-384 or P-521, or Ed25519.
	KeyPEM []byte
}

// maxCertificate bounds what is sealed: it comes along with every claim.
const maxCertificate = 16 << 10

// String shows nothing of the certificate.
func (c ClientCertificate) String() string { return "[client certificate]" }

// Format writes String, whatever the verb.
func (c ClientCertificate) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalJSON shows nothing of the certificate: it is given, and never given back.
func (c ClientCertificate) MarshalJSON() ([]byte, error) { return []byte(`"` + c.String() + `"`), nil }

// LogValue shows nothing of the certificate.
func (c ClientCertificate) LogValue() slog.Value { return slog.StringValue(c.String()) }

// text checks the certificate and returns it as one PEM text, the key at its end.
// The errors of crypto/tls are not passed on: they may quote what they could not
// read.
func (c ClientCertificate) text(now time.Time) ([]byte, error) {
	refuse := func(format string, args ...any) error {
		return refuseField("client_certificate", "client certificate: ", format, args...)
	}
	if size := len(c.CertificatePEM) + len(c.KeyPEM); size > maxCertificate {
		return nil, refuse("certificate and key have %d bytes: at most %d are allowed", size, maxCertificate)
	}
	if block, _ := pem.Decode(c.CertificatePEM); block == nil {
		return nil, refuse("CertificatePEM has no PEM block: give one of the type CERTIFICATE")
	}
	if block, _ := pem.Decode(c.KeyPEM); block == nil {
		return nil, refuse("KeyPEM has no PEM block: give one of the type PRIVATE KEY, not encrypted")
	}
	pair, err := tls.X509KeyPair(c.CertificatePEM, c.KeyPEM)
	if err != nil {
		return nil, refuse("certificate and key cannot be read, or are not a pair")
	}
	if err := suitableKey(pair.PrivateKey); err != nil {
		return nil, refuse("%v", err)
	}
	if end := pair.Leaf.NotAfter; !now.Before(end) {
		return nil, refuse("it expired at %s", end.UTC().Format(time.RFC3339))
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, refuse("the key cannot be written as PKCS #8")
	}
	var text bytes.Buffer
	for _, der := range pair.Certificate {
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // to a buffer, without headers: it cannot fail
	}
	_ = pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return text.Bytes(), nil
}

func suitableKey(key any) error {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if bits := key.N.BitLen(); bits < 2048 || bits > 8192 {
			return fmt.Errorf("its RSA key has %d bits: it must have 2048 to 8192", bits)
		}
		return nil
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P224() {
			return errors.New("its key is on the curve P-224, which TLS does not use: take P-256")
		}
		return nil
	case ed25519.PrivateKey:
		return nil
	}
	return errors.New("its key must be RSA, ECDSA or Ed25519")
}

// certificateOf is what a sealed certificate is bound to, so that it cannot be
// moved to another subscription.
func certificateOf(subscription string) string { return "surehook certificate|" + subscription }

func (k *Keys) sealCertificate(subscription string, text []byte) []byte {
	return k.sealFor(certificateOf(subscription), text)
}

// Certificate opens a subscription's client certificate, which Settings.SealedCertificate
// has. Its errors match ErrSealed.
func (k *Keys) Certificate(subscription string, sealed []byte) (*tls.Certificate, error) {
	text, err := k.openFor(certificateOf(subscription), sealed)
	if err != nil {
		return nil, fmt.Errorf("%w (client certificate of subscription %q)", err, subscription)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("%w: what was sealed is no certificate with its key (client certificate of subscription %q)", ErrSealed, subscription)
	}
	return &pair, nil
}
