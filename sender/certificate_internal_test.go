package sender

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
)

// A certificate is taken as a whole and opens again, or is refused without a trace of its
// content.
func FuzzClientCertificate(f *testing.F) {
	certificate, key := testPair(f)
	f.Add(certificate, key)
	f.Add(append([]byte("subject=/CN=x\n"), certificate...), append([]byte("Bag Attributes\n"), key...))
	f.Add(bytes.Repeat(certificate, 30), key) // a chain of more than half of the bytes that are allowed
	f.Add(key, certificate)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte(nil), []byte("hunter2 hunter2 hunter2 hunter2"))
	f.Add(certificate, []byte("hunter2 hunter2 hunter2 hunter2"))
	keys, err := NewKeys(SealingKey{ID: "1", Key: make([]byte, 32)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		text, err := ClientCertificate{CertificatePEM: certificate, KeyPEM: key}.text(testPairTime)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || len(key) > 24 && strings.Contains(err.Error(), string(key[4:20])) {
				t.Fatal(err)
			}
			return
		}
		if _, err := keys.Certificate("wsub_a", keys.sealCertificate("wsub_a", text)); err != nil {
			t.Fatalf("it does not open again: %v", err)
		}
		at := bytes.Index(text, []byte("-----BEGIN PRIVATE KEY-----"))
		if again, err := (ClientCertificate{CertificatePEM: text[:at], KeyPEM: text[at:]}).text(testPairTime); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("what is kept is not taken as it is: %v", err)
		}
	})
}

var testPairTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// testPair is a certificate and its key, always the same.
func testPair(tb testing.TB) (certificate, key []byte) {
	tb.Helper()
	signer := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: testPairTime.Add(-time.Hour), NotAfter: testPairTime.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(nil, template, template, signer.Public(), signer)
	if err != nil {
		tb.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}
