package sender

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What was not sealed here does not open, and what was opens where it belongs and
// nowhere else.
func FuzzSealed(f *testing.F) {
	keys, err := NewKeys(SealingKey{ID: "new", Key: bytes.Repeat([]byte{1}, 32)}, SealingKey{ID: "old", Key: bytes.Repeat([]byte{2}, 32)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, []byte{}, "", uint16(0), byte(0))
	f.Add([]byte{}, []byte("x"), "", uint16(0), byte(3))
	f.Add([]byte{sealedFormat, 3, 'n', 'e', 'w'}, []byte("whsec_x"), "surehook secret|sub_a|key_1", uint16(1), byte(1))
	f.Add([]byte{sealedFormat, 255}, bytes.Repeat([]byte{0}, 200), "surehook certificate|wsub_a", uint16(5), byte(0x80))
	f.Add([]byte{2, 3, 'o', 'l', 'd'}, []byte("x"), "|", uint16(200), byte(3))
	f.Fuzz(func(t *testing.T, stranger, plain []byte, bound string, where uint16, flip byte) {
		if _, err := keys.openFor(bound, stranger); err == nil || !errors.Is(err, ErrSealed) {
			t.Fatalf("opening what nobody sealed: %v", err)
		}
		sealed := keys.sealFor(bound, plain)
		if got, err := keys.openFor(bound, sealed); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%q came back as %q: %v", plain, got, err)
		}
		if len(plain) > 8 && bytes.Contains(sealed, plain) {
			t.Fatal("what is sealed can be read")
		}
		if _, err := keys.openFor(bound+"x", sealed); !errors.Is(err, ErrSealed) {
			t.Fatalf("moved to another row it opens: %v", err)
		}
		if flip != 0 {
			changed := bytes.Clone(sealed)
			changed[int(where)%len(changed)] ^= flip
			if _, err := keys.openFor(bound, changed); !errors.Is(err, ErrSealed) {
				t.Fatalf("changed it opens: %v", err)
			}
		}
		if cut := sealed[:int(where)%len(sealed)]; len(cut) < len(sealed) {
			if _, err := keys.openFor(bound, cut); !errors.Is(err, ErrSealed) {
				t.Fatalf("cut off it opens: %v", err)
			}
		}
	})
}

// A certificate is taken as a whole and opens again, or is refused without a trace of
// what was given.
func FuzzClientCertificate(f *testing.F) {
	certificate, key := testPair(f)
	f.Add(certificate, key)
	f.Add(append([]byte("subject=/CN=x\n"), certificate...), append([]byte("Bag Attributes\n"), key...))
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
		if again, err := (ClientCertificate{CertificatePEM: text, KeyPEM: text}).text(testPairTime); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("what is kept is not taken as it is: %v", err)
		}
	})
}

// Headers that are taken arrive as they were given, each once and beside no other;
// what net/http would not send is refused.
func FuzzHeaders(f *testing.F) {
	f.Add("Authorization", "Bearer x")
	f.Add("X-A", "b\r\nWebhook-Id: c")
	f.Add("webhook_ID", "x")
	f.Add("Transfer-Encoding", "chunked")
	f.Add("user-agent", "x")
	f.Add("HOST", "x")
	f.Add("x-\u00e9", "k")
	f.Add("X-\u212a", "k")
	f.Add("x-tab", "a\tb\u0085")
	f.Add("Content-Length:", "0")
	f.Add("X-Sealed", "\x01AQ")
	keys, err := NewKeys(SealingKey{ID: "1", Key: bytes.Repeat([]byte("1"), 32)})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, name, value string) {
		s := Settings{Headers: map[string]string{name: value}}
		if s.check(settingsLimits{timeout: time.Second}) != nil || isSealed(value) {
			return
		}
		keys.sealHeaders("wsub_a", s.Headers)
		r := httptest.NewRequest(http.MethodPost, "http://endpoint/", nil)
		if r.Header, err = keys.Headers("wsub_a", s.Headers); err != nil {
			t.Fatal(err)
		}
		r.Header["User-Agent"] = []string{"surehook"}
		var wire bytes.Buffer
		if err := r.Write(&wire); err != nil {
			t.Fatalf("%q: %q is taken and cannot be sent: %v", name, value, err)
		}
		lines := strings.Split(strings.TrimSuffix(wire.String(), "\r\n\r\n"), "\r\n")
		want := http.CanonicalHeaderKey(name) + ": " + trimmed(value)
		if len(lines) != 5 || !slices.Contains(lines, want) && !slices.Contains(lines, strings.TrimSuffix(want, " ")) {
			t.Fatalf("%q: %q is sent as %q", name, value, lines)
		}
	})
}

// Under one idempotency key two publishes agree if and only if all that they must
// agree on is the same.
func FuzzIdempotencyBinding(f *testing.F) {
	f.Add("a.b", "t", "1", "sub_a", "", "", int64(1), []byte(`{}`), uint8(0))
	f.Add("a", "1:b", "11:", "sub", "wsub", "https://x/", int64(0), []byte(nil), uint8(3))
	f.Add("", "", "", "", "", "", int64(-1), []byte{}, uint8(6))
	f.Fuzz(func(t *testing.T, eventType, objectType, object, subscriber, subscription, url string, version int64, data []byte, which uint8) {
		e := Event{Type: eventType, Object: Object{objectType, object}, Subscriber: subscriber, Subscription: subscription, URL: url, Version: version, Data: data}
		same := e
		same.OccurredAt, same.IdempotencyKey = time.Unix(version, 0), "other"
		if e.hash() != same.hash() {
			t.Fatal("when it happened is a part of it")
		}
		for name, change := range map[string]func(e *Event){
			"type": func(e *Event) { e.Type += "x" }, "object's type": func(e *Event) { e.Object.Type += "x" }, "object": func(e *Event) { e.Object.ID += "x" },
			"subscriber": func(e *Event) { e.Subscriber += "x" }, "subscription": func(e *Event) { e.Subscription += "x" }, "URL": func(e *Event) { e.URL += "x" },
			"version": func(e *Event) { e.Version++ }, "data": func(e *Event) { e.Data = append(bytes.Clone(e.Data), 'x') },
		} {
			other := e
			if change(&other); e.hash() == other.hash() {
				t.Fatalf("the %s is no part of it", name)
			}
		}
		// A byte moved from one field to the next makes another event.
		fields := []*string{&same.Type, &same.Object.Type, &same.Object.ID, &same.Subscriber, &same.Subscription, &same.URL}
		i := int(which) % (len(fields) - 1)
		if from, to := fields[i], fields[i+1]; *from != "" {
			last := len(*from) - 1
			*from, *to = (*from)[:last], (*from)[last:]+*to
			if e.hash() == same.hash() {
				t.Fatalf("%+v and %+v are the same", e, same)
			}
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
