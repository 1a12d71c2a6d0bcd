package signing

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Sign implements [Scheme]. It also sets IDHeader to the id, whether the signature
// covers it or not. Where the time is in the body, the body must have it.
func (s *Described) Sign(h http.Header, id string, at time.Time, body []byte, keys *Keyring) error {
	r, err := s.toSign(h, id, at, body)
	if err != nil {
		return err
	}
	try := keys.signing(at)
	if s.d.SignWith == EveryKey {
		try = keys.listed(at)
	}
	if try.n == 0 {
		return ErrNoValidKey
	}
	var signatures []string
	for _, i := range try.index[:try.n] {
		if text := s.signatureOf(keys.keys[i].Secret.m, r, s.covered(body)); text != "" {
			signatures = append(signatures, text)
		}
	}
	if len(signatures) == 0 {
		return fmt.Errorf("%w: %s needs %s", ErrSecretUnsuited, s.d.Name, s.neededSecret())
	}
	switch s.d.SignWith {
	case NewestKey:
		signatures = signatures[:1]
	case OldestKey:
		signatures = signatures[len(signatures)-1:]
	}
	s.setSignatures(h, r, signatures)
	setHeader(h, s.timestamp, r.timestamp)
	setHeader(h, s.id, id)
	return nil
}

// toSign checks what Sign was given and returns what the headers will state.
func (s *Described) toSign(h http.Header, id string, at time.Time, body []byte) (*stated, error) {
	if s.d.Name == "" {
		return nil, errors.New("signing: a Described that was not made by NewDescribed describes nothing")
	}
	if s.d.Algorithm == PlainSHA256 {
		return nil, fmt.Errorf("signing: %s has no signatures but plain hashes, which are not made here: sign with StandardWebhooks", s.d.Name)
	}
	if s.d.SignatureField != "" {
		return nil, fmt.Errorf("signing: the signature of %s is in the body, which Sign does not change", s.d.Name)
	}
	names := headerNames{id: s.id, timestamp: s.signature}
	if s.id == "" {
		id = "unused"
	}
	if err := names.beforeSigning(h, s.ids, id, at); err != nil {
		return nil, err
	}
	r := &stated{header: h, id: id}
	if s.inHeaders {
		signed := h.Clone()
		setHeader(signed, s.id, id)
		r.header = signed
		if err := s.readHeaders(signed); err != nil {
			return nil, err
		}
	}
	if s.d.TimestampHeader != "" || s.d.TimestampLabel != "" {
		r.timestamp = s.d.TimestampFormat.format(at)
	}
	if s.d.TimestampField != "" {
		if _, err := s.bodyTimestamp(body); err != nil {
			return nil, err
		}
	}
	if s.looks && !s.readMessage(&Message{Body: body}, r) {
		return nil, fmt.Errorf("signing: the body has not what %s signs: %s", s.d.Name, s.d.Signed)
	}
	if s.d.HeadersLabel != "" {
		r.covered = strings.ToLower(s.id)
		r.header = http.Header{s.id: {id}}
	}
	return r, nil
}

// signatureOf returns "" for a secret that does not suit.
func (s *Described) signatureOf(secret *material, r *stated, body []byte) string {
	if s.d.Algorithm == Ed25519 {
		if secret.sign == nil {
			return ""
		}
		return string(s.d.Encoding.appendTo(nil, secret.sign(s.appendTail(append(s.appendHead(nil, r), body...), r))))
	}
	if s.d.Algorithm == ECDSAP256 { // those whose scheme it is sign, and hold the private key
		return ""
	}
	key := s.hmacKey(secret)
	if key == nil {
		return ""
	}
	state := key.begin(s.d.Algorithm)
	state.head, state.tail = s.appendHead(state.head, r), s.appendTail(state.tail, r)
	var mac digest
	key.end(s.d.Algorithm, state, body, &mac)
	return string(s.d.Encoding.appendTo(nil, mac[:s.d.Algorithm.size()]))
}

func (s *Described) neededSecret() string {
	switch {
	case s.d.Algorithm == Ed25519:
		return "an Ed25519 private key, whsk_ and base64"
	case s.d.Algorithm == ECDSAP256:
		return "an ECDSA private key, which this package does not take"
	case s.d.Key == DecodedKey:
		return "an HMAC secret that is base64"
	case s.d.Key == HexKey:
		return "an HMAC secret that is hex"
	case s.d.Key == Base64URLKey:
		return "an HMAC secret that is base64url"
	}
	return "an HMAC secret"
}

// setSignatures puts one into each header, if there are several headers.
func (s *Described) setSignatures(h http.Header, r *stated, signatures []string) {
	if s.d.SignatureLabel != "" || s.more == nil && !s.d.SignatureRepeats {
		setHeader(h, s.signature, s.signatureValue(r, signatures))
		return
	}
	for i, text := range signatures {
		name := s.signature
		if s.more != nil {
			if i > len(s.more) {
				return
			}
			name = s.signatureName(i - 1)
		}
		value := s.signatureValue(r, []string{text})
		if i > 0 && s.more == nil {
			h[name] = append(h[name], value)
			continue
		}
		setHeader(h, name, value)
	}
}

func (s *Described) signatureValue(r *stated, signatures []string) string {
	if s.d.SignatureLabel == "" {
		return s.d.SignaturePrefix + signatures[0]
	}
	if s.d.List != LabelledList {
		return s.listOf(r.timestamp, signatures)
	}
	var pairs []string
	add := func(label, value string) {
		if label != "" {
			pairs = append(pairs, label+"="+value)
		}
	}
	add(s.d.TimestampLabel, r.timestamp)
	add(s.d.HeadersLabel, r.covered)
	for _, text := range signatures {
		add(s.d.SignatureLabel, text)
	}
	separator := string(s.separator)
	if s.d.SpacedList {
		separator += " "
	}
	return strings.Join(pairs, separator)
}

func (s *Described) listOf(timestamp string, signatures []string) string {
	if s.d.List == TimeThenSignatures {
		return strings.Join(append([]string{timestamp}, signatures...), ",")
	}
	var parts []string
	for i, text := range signatures {
		switch {
		case s.d.List == KeyedSignatures:
			parts = append(parts, fmt.Sprintf("%d/%s/%s", i+1, s.d.SignatureLabel, text))
		case s.d.TimestampLabel != "":
			parts = append(parts, fmt.Sprintf("%s=%s,%s=%s", s.d.TimestampLabel, timestamp, s.d.SignatureLabel, text))
		default:
			parts = append(parts, s.d.SignatureLabel+"="+text)
		}
	}
	if s.d.List == GroupedList {
		return strings.Join(parts, " ")
	}
	return strings.Join(parts, ",")
}

// setHeader replaces a header in any spelling of its name. Without a name it does
// nothing.
func setHeader(h http.Header, name, value string) {
	if name == "" {
		return
	}
	for spelling := range h {
		if strings.EqualFold(spelling, name) {
			delete(h, spelling)
		}
	}
	h[name] = []string{value}
}
