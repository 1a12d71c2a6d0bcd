package httpsig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/signing"
)

// Sign implements [signing.Scheme]. It signs a POST to Config.URL, which must have its
// path if a component needs one. It sets Content-Digest, Signature-Input, Signature and,
// if there is one, IDHeader, in place of those that h has. All other covered headers must
// be there.
func (s *Scheme) Sign(h http.Header, id string, at time.Time, body []byte, keys *signing.Keyring) error {
	return s.SignMessage(&signing.Message{Method: http.MethodPost, Header: h, Body: body}, id, at, keys)
}

// SignMessage is Sign for a request with another method, or whose path and query are in
// m.URL. It sets headers of m.Header.
func (s *Scheme) SignMessage(m *signing.Message, id string, at time.Time, keys *signing.Keyring) error {
	st := s.state()
	defer s.done(st)
	if st == nil || m.Header == nil {
		return errors.New("httpsig: a Scheme that New has not made, or a header that is nil, cannot be signed with")
	}
	if unix := at.Unix(); unix < 1 || unix > maxUnix {
		return fmt.Errorf("httpsig: %w: the time to sign at must be from 1 to %d seconds since 1970", signing.ErrMalformedHeader, int64(maxUnix))
	}
	set := map[string]string{}
	if s.cfg.IDHeader != "" {
		set[s.cfg.IDHeader] = id
	}
	if has(s.covered, digestID) {
		set[contentDigest] = digestOf(m.Body)
	}
	signed := m.Header.Clone()
	replace(signed, set)
	keyID, err := s.signingKeyID(keys, at)
	if err != nil {
		return err
	}
	st.in.params = s.parameters(at, keyID)
	if err := s.base(signed, m, &layout{list: s.list, components: s.covered}, st); err != nil {
		return err
	}
	signature, err := s.signature(st.content, keyID, at, keys)
	if err != nil {
		return err
	}
	label := s.cfg.Label
	if label == "" {
		label = "sig1"
	}
	set[inputHeader] = label + "=" + st.in.params
	set[signatureHeader] = label + "=:" + base64.StdEncoding.EncodeToString(signature) + ":"
	replace(m.Header, set)
	return nil
}

// replace sets headers in place of those in any spelling of their names.
func replace(h http.Header, set map[string]string) {
	for spelling := range h {
		if _, is := set[http.CanonicalHeaderKey(spelling)]; is {
			delete(h, spelling)
		}
	}
	for name, value := range set {
		h[name] = []string{value}
	}
}

// parameters writes those that are asked for, and created always.
func (s *Scheme) parameters(at time.Time, keyID string) string {
	var b strings.Builder
	b.WriteString(s.list)
	b.WriteString(";created=" + strconv.FormatInt(at.Unix(), 10))
	if s.cfg.NeedExpires {
		b.WriteString(";expires=" + strconv.FormatInt(at.Add(s.cfg.Lifetime).Unix(), 10))
	}
	if s.cfg.NeedNonce {
		b.WriteString(";nonce=" + quoted(rand.Text()))
	}
	if s.cfg.NeedKeyID {
		b.WriteString(";keyid=" + quoted(keyID))
	}
	if s.cfg.Tag != "" {
		b.WriteString(";tag=" + quoted(s.cfg.Tag))
	}
	return b.String()
}

// signingKeyID finds out which key will sign, since its name is a part of the text.
func (s *Scheme) signingKeyID(keys *signing.Keyring, at time.Time) (string, error) {
	id := s.cfg.SignerID
	if s.cfg.Signer == nil {
		var err error
		if _, id, err = keys.SignText(&signing.Text{Algorithm: s.algorithm, Key: s.cfg.Key}, at); err != nil {
			return "", err
		}
	}
	if s.cfg.NeedKeyID && (id == "" || !printable(id)) {
		return "", errors.New("httpsig: a keyid is asked for: give the key an ID, or set Config.SignerID, of printable ASCII characters")
	}
	return id, nil
}

func (s *Scheme) signature(text []byte, keyID string, at time.Time, keys *signing.Keyring) ([]byte, error) {
	signer := s.cfg.Signer
	if signer == nil {
		signature, _, err := keys.SignText(&signing.Text{Algorithm: s.algorithm, Key: s.cfg.Key, KeyID: keyID, Bytes: text}, at)
		return signature, err
	}
	sum := sha256.Sum256(text)
	switch key := signer.Public().(type) {
	case ed25519.PublicKey:
		if s.algorithm == signing.Ed25519 {
			return signer.Sign(rand.Reader, text, crypto.Hash(0))
		}
	case *ecdsa.PublicKey:
		if s.algorithm == signing.ECDSAP256 && key.Curve == elliptic.P256() {
			der, err := signer.Sign(rand.Reader, sum[:], crypto.SHA256)
			if err != nil {
				return nil, err
			}
			return fromASN1(der)
		}
	case *rsa.PublicKey:
		switch s.algorithm {
		case signing.RSASHA256:
			return signer.Sign(rand.Reader, sum[:], crypto.SHA256)
		case signing.RSAPSSSHA512:
			sum := sha512.Sum512(text)
			return signer.Sign(rand.Reader, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA512})
		}
	}
	return nil, fmt.Errorf("%w: Config.Signer has no key for %s", signing.ErrSecretUnsuited, algorithms[s.algorithm])
}
