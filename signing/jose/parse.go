package jose

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/surehook/surehook/signing"
)

const (
	maxToken = 8 << 10
	maxKeyID = 128
)

// parsed is what a token states, before anything of it is verified.
type parsed struct {
	text      string // what is signed
	signature []byte
	id        string // kid
	claims    claims
}

var (
	form   = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	idForm = regexp.MustCompile(`^[!-~]{1,128}$`)
	parser = jwt.NewParser(jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())
)

// find returns the token of the headers. The library's own reading is too liberal in
// places: it lets line breaks stand in base64, and passes over crit.
func (s *scheme) find(h http.Header) (*parsed, error) {
	value, err := signing.OnlyHeader(h, s.t.Header, signing.ErrNotSigned)
	if err != nil {
		return nil, err
	}
	text, found := strings.CutPrefix(value, s.t.Prefix)
	if !found || len(text) > maxToken || !form.MatchString(text) {
		return nil, s.malformed(fmt.Sprintf("it must be %q and a token of at most %d bytes", s.t.Prefix, maxToken))
	}
	var c claims
	token, parts, err := parser.ParseUnverified(text, &c)
	if err != nil || c == nil {
		return nil, s.malformed("its token is not well-formed")
	}
	if alg, _ := token.Header["alg"].(string); alg != string(s.t.Algorithm) {
		return nil, s.malformed("its token must be signed with " + string(s.t.Algorithm))
	}
	if _, there := token.Header["crit"]; there {
		return nil, s.malformed("its token has a crit, which is not understood")
	}
	p := &parsed{text: parts[0] + "." + parts[1], signature: token.Signature, claims: c}
	if p.id, _ = token.Header["kid"].(string); s.t.Keys != nil && !idForm.MatchString(p.id) {
		return nil, s.malformed(fmt.Sprintf("its token must have a kid of 1 to %d visible characters", maxKeyID))
	}
	return p, nil
}

func (s *scheme) malformed(problem string) error {
	return signing.NewHeaderError(signing.ErrMalformedHeader, s.t.Header, "is malformed: "+problem)
}

// claims are not checked by the library, whose clock is not the verifier's.
type claims map[string]json.RawMessage

var _ jwt.Claims = claims{}

func (claims) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil } //nolint:nilnil // see claims
func (claims) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil } //nolint:nilnil // see claims
func (claims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil } //nolint:nilnil // see claims
func (claims) GetIssuer() (string, error)                   { return "", nil }
func (claims) GetSubject() (string, error)                  { return "", nil }
func (claims) GetAudience() (jwt.ClaimStrings, error)       { return nil, nil }

// text returns "" for a claim that is no text.
func (c claims) text(name string) string {
	var s string
	if raw := c[name]; len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func (c claims) audience(want string) bool {
	var several []string
	if raw := c["aud"]; len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &several) == nil {
		return slices.Contains(several, want)
	}
	return c.text("aud") == want
}

var numericDate = regexp.MustCompile(`^([0-9]{1,11})(?:\.[0-9]+)?$`)

// at returns the time of a claim, in whole seconds.
func (c claims) at(name string) (at time.Time, there, ok bool) {
	raw, there := c[name]
	if !there {
		return at, false, true
	}
	m := numericDate.FindSubmatch(raw)
	if m == nil {
		return at, true, false
	}
	var seconds int64
	if json.Unmarshal(m[1], &seconds) != nil { // a zero in front
		return at, true, false
	}
	return time.Unix(seconds, 0).UTC(), true, true
}
