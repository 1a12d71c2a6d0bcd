package signing

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// UnsignedToken is a [Scheme] for senders that sign nothing. Their requests hold the secret
// itself: in a header, as Telegram's, Okta's and GitLab's older token, or in the body, as
// Microsoft Graph's clientState. It is much weaker than a signature:
//
//   - Anybody who sees one request, in a proxy or a log of headers, has the secret, and can
//     post whatever they like for as long as it is used.
//   - Nothing of a request is proved but that its sender knows the secret. So all that
//     [Facts] says is Unsigned, and there is no time.
//
// A verifier accepts it alone, with VerifierConfig.Deduplicated and
// VerifierConfig.UnsignedBody set, and with no scheme beside it: another one would have a
// key that its requests show to everybody on their way. Give it a secret of its own, and
// fetch what an event says wherever that matters.
//
// The comparison takes the same time for every wrong token of one length. Sign is refused: a
// request would show the secret. The zero value verifies nothing.
type UnsignedToken struct {
	d      Description
	header string
}

var (
	_ Scheme     = (*UnsignedToken)(nil)
	_ FactReader = (*UnsignedToken)(nil)
)

const maxToken = maxSecretText

// NewUnsignedToken returns the scheme of a Description of which nothing is set but these:
//
//   - Name;
//   - SignatureHeader, and SignaturePrefix if a text stands before the token, or
//     SignatureField, the path to the token in a JSON body. "value[].clientState" is the
//     clientState of every element of the list value: each must have it;
//   - IDField, IDHeader, TypeField and TypeHeader, whose facts are Unsigned.
//
// Its error names all problems.
func NewUnsignedToken(d Description) (*UnsignedToken, error) {
	var problems []error
	wrong := func(text string) {
		problems = append(problems, fmt.Errorf("signing: unsigned token %q: %s", d.Name, text))
	}
	only := Description{
		Name: d.Name, SignatureHeader: d.SignatureHeader, SignaturePrefix: d.SignaturePrefix, SignatureField: d.SignatureField,
		IDField: d.IDField, IDHeader: d.IDHeader, TypeField: d.TypeField, TypeHeader: d.TypeHeader,
	}
	if !reflect.DeepEqual(d, only) {
		wrong("it signs nothing: set only Name, SignatureHeader, SignaturePrefix, SignatureField, IDField, IDHeader, TypeField and TypeHeader")
	}
	if d.Name == "" {
		wrong("it needs a Name")
	}
	if (d.SignatureHeader == "") == (d.SignatureField == "") {
		wrong("it needs either a SignatureHeader or a SignatureField: where the token is")
	}
	if strings.ContainsFunc(d.SignatureHeader, func(r rune) bool { return !isTokenRune(r) }) {
		wrong("its SignatureHeader cannot be the name of a header")
	}
	if strings.HasPrefix(d.SignaturePrefix, " ") || strings.ContainsFunc(d.SignaturePrefix, func(r rune) bool { return r != ' ' && !visible(r) }) {
		wrong("its SignaturePrefix must begin with a visible ASCII character, and have such and spaces alone")
	}
	if list, field, _ := strings.Cut(d.SignatureField, "[]."); d.SignatureField != "" && (list == "" || strings.Contains(field, "[]")) {
		wrong(`its SignatureField must be names with full stops between them, of which one may be a list: "value[].clientState"`)
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	return &UnsignedToken{d: d, header: http.CanonicalHeaderKey(d.SignatureHeader)}, nil
}

// Name returns the Description's Name.
func (s *UnsignedToken) Name() string { return s.d.Name }

// ReplayDefence is [DedupAlone].
func (s *UnsignedToken) ReplayDefence() ReplayDefence { return DedupAlone }

// CoversBody is false.
func (s *UnsignedToken) CoversBody() bool { return false }

func (s *UnsignedToken) check(keys *Keyring) error {
	if s.d.Name == "" {
		return errors.New("signing: an UnsignedToken that was not made by NewUnsignedToken accepts nothing")
	}
	if keys != nil && !slices.ContainsFunc(keys.keys, func(k Key) bool { return isText(k.Secret.m) }) {
		return fmt.Errorf("%w: the keyring has no text that could be the token of %s", ErrSecretUnsuited, s.d.Name)
	}
	return nil
}

func isText(m *material) bool { return m.text != nil }

// Precheck implements [Scheme]. It compares nothing.
func (s *UnsignedToken) Precheck(h http.Header, _ time.Time, _ time.Duration) error {
	if s.d.Name == "" {
		return ErrNoValidKey
	}
	_, err := s.inHeader(h)
	return err
}

// inHeader returns the token, or "" if it is in the body.
func (s *UnsignedToken) inHeader(h http.Header) (string, error) {
	if s.header == "" {
		return "", nil
	}
	value := find(h, s.header)
	if err := value.signatureOnce(s.header); err != nil {
		return "", err
	}
	token, found := strings.CutPrefix(value.text, s.d.SignaturePrefix)
	if !found || token == "" || len(token) > maxToken {
		return "", malformed(s.header, fmt.Sprintf("is malformed: it must be the token, of at most %d bytes, behind its prefix if it has one", maxToken))
	}
	return token, nil
}

// Verify implements [Scheme].
func (s *UnsignedToken) Verify(m Message, keys *Keyring, now time.Time, _ time.Duration) (Verified, error) {
	if s.d.Name == "" {
		return Verified{}, ErrNoValidKey
	}
	token, err := s.inHeader(m.Header)
	if err != nil {
		return Verified{}, err
	}
	tokens := []string{token}
	if s.header == "" {
		if tokens = s.inBody(m.Body); tokens == nil {
			return Verified{}, ErrSignatureMismatch
		}
	}
	try := keys.verifying(now)
	failure := ErrNoValidKey
	if try.n > 0 {
		failure = errNoSuitedKey
	}
	for _, i := range try.index[:try.n] {
		secret := keys.keys[i].Secret.m
		if !isText(secret) {
			continue
		}
		failure = ErrSignatureMismatch
		if allAre(tokens, secret.reveal()) {
			keys.matched(i)
			return Verified{Scheme: s.d.Name, KeyID: keys.keys[i].ID}, nil
		}
	}
	return Verified{}, failure
}

// inBody returns the tokens of a body, or nil if there are none where they must be.
func (s *UnsignedToken) inBody(body []byte) []string {
	path, field, isList := strings.Cut(s.d.SignatureField, "[].")
	if !isList {
		if token, found := jsonText(body, path); found && len(token) <= maxToken {
			return []string{token}
		}
		return nil
	}
	var tokens []string
	for element := range jsonElements(jsonAt(body, path)) {
		token, found := jsonText(element, field)
		if !found || len(token) > maxToken {
			return nil
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// allAre compares hashes, which have one length, and all of them.
func allAre(tokens []string, secret string) bool {
	want, equal := sha256.Sum256([]byte(secret)), 1
	for _, token := range tokens {
		got := sha256.Sum256([]byte(token))
		equal &= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return equal == 1
}

// Sign returns an error: nothing is signed, and the request would show the secret.
func (s *UnsignedToken) Sign(http.Header, string, time.Time, []byte, *Keyring) error {
	return fmt.Errorf("signing: %s signs nothing, and would send the secret itself: sign with StandardWebhooks", s.d.Name)
}

// Facts implements [FactReader]. All that it finds is Unsigned.
func (s *UnsignedToken) Facts(m Message, _ Verified) Facts {
	id, _ := jsonText(m.Body, s.d.IDField)
	kind, _ := jsonText(m.Body, s.d.TypeField)
	return Facts{
		UnsignedID:   cmp.Or(Unsigned(id), unsigned(m.Header, s.d.IDHeader)),
		UnsignedType: cmp.Or(Unsigned(kind), unsigned(m.Header, s.d.TypeHeader)),
	}
}
