package jose

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Algorithm is one of those of RFC 7518.
type Algorithm string

// The algorithms. RSA keys have 2048 to 8192 bits, and ECDSA keys are on P-256.
const (
	RS256 Algorithm = "RS256" // RSASSA-PKCS1-v1_5 with SHA-256
	ES256 Algorithm = "ES256" // ECDSA on P-256 with SHA-256
	HS256 Algorithm = "HS256" // HMAC with SHA-256, by a secret of the verifier's keyring
)

// Token says where a sender's token is, and what it must hold.
type Token struct {
	Name string // in signing.Verified

	Header string // where the token is, such as Authorization
	Prefix string // what stands before it, such as "Bearer "; it is compared letter by letter

	Algorithm Algorithm
	Keys      Keys // of RS256 and ES256. HS256 has none: its secrets are the keyring's

	Issuers  []string // iss must be one of them. None: it is not looked at
	Audience string   // aud must be it, or have it. "": it is not looked at

	// Claims have texts that must be there as they stand here, and True are claims that must
	// be true.
	Claims map[string]string
	True   []string

	// MaxAge is how long after its iat a token is taken; then it must have one. 0: it must
	// have an exp instead. An exp, an nbf and an iat that are there always count. A clock may
	// be wrong by the verifier's tolerance, except under MaxAge.
	MaxAge time.Duration

	// BodyHash is the claim with the body's SHA-256 in hex. "": the token does not cover the
	// body, see the package. With NoBodyNoHash it is left out where the body is empty.
	BodyHash     string
	NoBodyNoHash bool

	// URLHash is the claim with the SHA-256 of URL in hex: where the sender sends, letter by
	// letter as it is registered there. Both or neither are set.
	URLHash, URL string

	// QueryHash is the claim with Atlassian's hash of the method, the path and the query of
	// the request. BasePath is what stands before the path that is hashed: the path of the
	// app's base URL, such as "/jira", or "".
	QueryHash, BasePath string

	// ByToken tells events apart by their tokens, not by their bodies. It is for senders whose
	// bodies are equal for different events, with no id or time. If they sign anew when they
	// send an event again, that is another event, too.
	ByToken bool

	// IDField, TypeField and TimeField are paths in the body, as in [signing.Description].
	IDField, TypeField, TimeField string
}

func (t *Token) check() error {
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("jose: token %q: "+format, append([]any{t.Name}, args...)...))
	}
	if t.Name == "" || t.Header == "" {
		wrong("it needs a Name, and the Header where it is")
	}
	switch t.Algorithm {
	case RS256, ES256:
		if t.Keys == nil {
			wrong("%s needs Keys, such as those of JWKS or FixedKeys", t.Algorithm)
		}
	case HS256:
		if t.Keys != nil {
			wrong("HS256 goes by the secrets of the keyring: leave Keys out")
		}
	default:
		wrong("its Algorithm must be RS256, ES256 or HS256")
	}
	if t.MaxAge != 0 && t.MaxAge < time.Second {
		wrong("its MaxAge is %v: it must be at least 1s, or 0", t.MaxAge)
	}
	if (t.URLHash == "") != (t.URL == "") {
		wrong("it has one of URLHash and URL: give both, or none")
	}
	if t.URL != "" {
		if u, err := url.Parse(t.URL); err != nil || u.Host == "" || u.Fragment != "" {
			wrong("its URL must be whole: https://example.com/webhooks")
		}
	}
	if t.NoBodyNoHash && t.BodyHash == "" {
		wrong("NoBodyNoHash is about a BodyHash, and there is none")
	}
	if t.ByToken && t.BodyHash == "" {
		wrong("ByToken needs a BodyHash: one token may come with many bodies")
	}
	if t.BasePath != "" && (!strings.HasPrefix(t.BasePath, "/") || strings.HasSuffix(t.BasePath, "/")) {
		wrong(`its BasePath must be "" or like "/jira"`)
	}
	return errors.Join(problems...)
}
