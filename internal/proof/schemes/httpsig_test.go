package schemes_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/httpsig"
)

// rfc9421Key is a key as both sides have it.
type rfc9421Key struct {
	name            string
	algorithm       signing.Algorithm
	signer          crypto.Signer // nil: HMAC
	secret          signing.Secret
	private, public string // PEM, or the HMAC's text
}

func rfc9421Keys(t *testing.T) []rfc9421Key {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	all := []rfc9421Key{
		{name: "hmac-sha256", algorithm: signing.HMACSHA256, secret: textSecret(t, text), private: text, public: text},
		{name: "ed25519", algorithm: signing.Ed25519, signer: ed},
		{name: "ecdsa-p256-sha256", algorithm: signing.ECDSAP256, signer: ec},
		{name: "rsa-pss-sha512", algorithm: signing.RSAPSSSHA512, signer: rs},
		{name: "rsa-v1_5-sha256", algorithm: signing.RSASHA256, signer: rs},
	}
	for i := range all {
		k := &all[i]
		if k.signer == nil {
			continue
		}
		private, err := x509.MarshalPKCS8PrivateKey(k.signer)
		require.NoError(t, err)
		public, err := x509.MarshalPKIXPublicKey(k.signer.Public())
		require.NoError(t, err)
		k.private = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
		k.public = string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
		switch key := k.signer.Public().(type) {
		case ed25519.PublicKey:
			k.secret, err = signing.ParseHexPublicKey(hex.EncodeToString(key))
		case *ecdsa.PublicKey:
			k.secret, err = signing.ParseECDSAPublicKey(k.public)
		default:
			k.secret, err = signing.ParseRSAPublicKey(k.public)
		}
		require.NoError(t, err)
	}
	return all
}

// http-message-signatures verifies what package httpsig signs, and the other way round, with each
// algorithm and each kind of component, and both refuse it with another header. The library does
// not look at the body.
func TestHTTPMessageSignatures(t *testing.T) {
	n := newNPM(t)
	const (
		url  = "https://Example.com:443/hooks/a%2Fb?tenant=7&x=%20y+z"
		body = `{"name":"Zoë 🚀"}`
	)
	fields := []string{
		"@method", "@target-uri", "@authority", "@scheme", "@path", "@query", `@query-param;name="tenant"`, "content-digest", "content-type", `x-list;key="a"`, "x-bytes;bs",
	}
	sum := sha256.Sum256([]byte(body))
	headers := map[string]string{
		"content-type": "application/json", "x-list": "a=1;b, c=(x y)", "x-bytes": "a, b",
		"content-digest": "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":",
	}
	at := time.Now()
	for _, k := range rfc9421Keys(t) {
		n.t = t
		s, err := httpsig.New(k.algorithm, fields, &httpsig.Config{URL: url, NeedKeyID: true, Signer: k.signer, SignerID: "key"})
		require.NoError(t, err)
		keys, err := signing.NewKeyring(signing.Key{ID: "key", Secret: k.secret})
		require.NoError(t, err)
		h := http.Header{}
		for name, value := range headers {
			h.Set(name, value)
		}
		require.NoError(t, s.Sign(h, "", at, []byte(body), keys))
		q := npmQuestion{Do: "verify", Vendor: "rfc9421", Secret: k.public, Headers: lower(h), Algorithm: k.name, URL: url, Fields: fields}
		a := n.do(q)
		require.True(t, a.Good, "%s: %s", k.name, a.Why)
		q.Headers["content-type"] = "text/plain"
		require.False(t, n.do(q).Good, k.name)

		a = n.do(npmQuestion{Do: "sign", Vendor: "rfc9421", Secret: k.private, Headers: headers, Body: body, At: at.Unix(), Algorithm: k.name, URL: url, Fields: fields})
		theirs := http.Header{}
		for name, value := range a.Headers {
			theirs.Set(name, value)
		}
		m := signing.Message{Method: http.MethodPost, Header: theirs, Body: []byte(body)}
		_, err = s.Verify(m, keys, at, time.Minute)
		require.NoError(t, err, "%s: %q", k.name, theirs)
		theirs.Set("Content-Type", "text/plain")
		_, err = s.Verify(m, keys, at, time.Minute)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, k.name)
		theirs.Set("Content-Type", "application/json")
		m.Body = []byte(strings.Replace(body, "Zoë", "Zoe", 1))
		_, err = s.Verify(m, keys, at, time.Minute)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch, k.name)
	}
}
