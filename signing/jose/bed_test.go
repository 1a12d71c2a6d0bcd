package jose_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/jose"
)

const (
	audience = "https://shop.example/pubsub"
	email    = "push@project.iam.gserviceaccount.com"
	secret   = "a secret of thirty-two letters!!"
	kid      = "key-1"
)

var (
	now    = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	rsaKey = must(rsa.GenerateKey(rand.Reader, 2048))
	ecKey  = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	hmacOf = must(signing.ParseTextSecret(secret))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type fields map[string]any

// with returns a copy with one field changed, or without it.
func (f fields) with(name string, value any) fields {
	out := maps.Clone(f)
	if out[name] = value; value == nil {
		delete(out, name)
	}
	return out
}

func segment(v any) string {
	return base64.RawURLEncoding.EncodeToString(must(json.Marshal(v)))
}

// token is made by hand, so that nothing of the package or of its library makes it.
func token(alg string, key any, header, claims fields) string {
	text := segment(header.with("alg", alg)) + "." + segment(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(alg, key, text))
}

func sign(alg string, key any, text string) []byte {
	sum := sha256.Sum256([]byte(text))
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return must(rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:]))
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			panic(err)
		}
		size := (key.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
	case []byte:
		newHash := sha256.New
		if alg == "HS512" {
			newHash = sha512.New
		}
		mac := hmac.New(newHash, key)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	return nil
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sender is one of those that the package knows, and a request of its.
type sender struct {
	scheme signing.FactReader
	name   string // of the header
	prefix string
	alg    string
	key    any
	header fields
	claims fields
	body   string
	url    string
	// counts are the claims that must be as they are, and times those that are times.
	counts, times []string
	id            string
}

func public() jose.Keys {
	return jose.FixedKeys(map[string]crypto.PublicKey{kid: &rsaKey.PublicKey, "ec": &ecKey.PublicKey})
}

const pushed = `{"message":{"data":"e30=","messageId":"2070443601311540","publishTime":"2026-11-26T08:59:59.9Z"},"subscription":"projects/p/subscriptions/s","deliveryAttempt":1}`

func senders() map[string]sender {
	unix := now.Unix()
	const vonage = `{"message_uuid":"aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab","timestamp":"2026-11-26T09:00:00Z"}`
	const atlassian = "/jira/hooks?user_key=a+b&jwt=x&a=2&a=1"
	return map[string]sender{
		"google-pubsub": {
			scheme: must(jose.PubSub(audience, email, public())), name: "Authorization", prefix: "Bearer ", alg: "RS256", key: rsaKey, header: fields{"kid": kid, "typ": "JWT"},
			claims: fields{"aud": audience, "azp": "1", "email": email, "email_verified": true, "exp": unix + 3000, "iat": unix - 600, "iss": "https://accounts.google.com", "sub": "1"},
			body:   pushed, counts: []string{"aud", "email", "email_verified", "iss"}, times: []string{"exp", "iat"},
		},
		"plaid": {
			scheme: must(jose.Plaid(public())), name: "Plaid-Verification", alg: "ES256", key: ecKey, header: fields{"kid": "ec", "typ": "JWT"},
			claims: fields{"iat": unix - 1, "request_body_sha256": hashOf(`{"webhook_code":"X"}`)},
			body:   `{"webhook_code":"X"}`, counts: []string{"request_body_sha256"}, times: []string{"iat"}, id: "token-",
		},
		"vonage": {
			scheme: must(jose.Vonage()), name: "Authorization", prefix: "Bearer ", alg: "HS256", key: []byte(secret), header: fields{"typ": "JWT"},
			claims: fields{"iat": unix - 1, "jti": "c5ba8f24-1a14-4c10-bfdf-3fbe8ce511b5", "iss": "Vonage", "payload_hash": hashOf(vonage), "api_key": "a1b2c3d"},
			body:   vonage, counts: []string{"iss", "payload_hash"}, times: []string{"iat"},
		},
		"messagebird": {
			scheme: must(jose.MessageBird("https://shop.example/bird?a=1")), name: "MessageBird-Signature-JWT", alg: "HS256", key: []byte(secret), header: fields{"typ": "JWT"},
			claims: fields{"iss": "MessageBird", "nbf": unix - 1, "exp": unix + 60, "jti": "59a244dc", "url_hash": hashOf("https://shop.example/bird?a=1"), "payload_hash": hashOf(`{"id":"1"}`)},
			body:   `{"id":"1"}`, counts: []string{"iss", "url_hash", "payload_hash"}, times: []string{"exp", "nbf"},
		},
		"atlassian-connect": {
			scheme: must(jose.AtlassianConnect("client-key", "/jira")), name: "Authorization", prefix: "JWT ", alg: "HS256", key: []byte(secret), header: fields{"typ": "JWT"},
			claims: fields{"iss": "client-key", "iat": unix - 1, "exp": unix + 179, "qsh": hashOf("POST&/hooks&a=1,2&user_key=a%20b")},
			body:   `{"webhookEvent":"jira:issue_updated"}`, url: atlassian, counts: []string{"iss", "qsh"}, times: []string{"exp", "iat"},
		},
		"monday": {
			scheme: must(jose.Monday("https://shop.example/monday")), name: "Authorization", alg: "HS256", key: []byte(secret), header: fields{"typ": "JWT"},
			claims: fields{"accountId": 1, "userId": 2, "aud": "https://shop.example/monday", "iat": unix - 1, "exp": unix + 299},
			body:   `{"payload":{}}`, counts: []string{"aud"}, times: []string{"exp", "iat"},
		},
	}
}

func (s sender) message() signing.Message { return s.carrying(token(s.alg, s.key, s.header, s.claims)) }

func (s sender) carrying(token string) signing.Message {
	return signing.Message{
		Method: http.MethodPost, URL: s.url, Body: []byte(s.body),
		Header: http.Header{s.name: {s.prefix + token}, "Content-Type": {"application/json"}},
	}
}

func (s sender) verifier(tb testing.TB) *signing.Verifier {
	tb.Helper()
	var keys *signing.Keyring
	if _, own := s.scheme.(signing.OwnKeys); !own {
		keys = must(signing.NewKeyring(signing.Key{ID: "secret", Secret: hmacOf}))
	}
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{
		Schemes: []signing.Scheme{s.scheme}, Deduplicated: true, UnsignedBody: true, Now: func() time.Time { return now },
	})
	require.NoError(tb, err)
	return v
}
