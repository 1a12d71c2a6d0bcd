package signing

import (
	"errors"
	"hash"
	"unicode/utf8"
)

// NewPlainHash returns the scheme of a sender that makes no HMAC but SHA-256(secret + text),
// such as HubSpot's signatures of before v3, and Recharge's. Its Description has the
// Algorithm [PlainSHA256], a text that ends with {body}, and no time.
//
// Such a hash is not made for that: from the hash of one text anybody can compute the hash of
// a longer text that begins with it, without the secret. The longer text goes on with the
// padding of SHA-256, whose first byte is 0x80 (FIPS 180-4 section 5.1.1), and 0x80 cannot
// follow a whole character in UTF-8. So this scheme refuses every body that is not UTF-8, and
// with it every extension of one that is. Take HubSpot's v3 where it is sent.
//
// The scheme covers no time: a verifier asks for VerifierConfig.Deduplicated. Sign is refused.
// Its error names all problems of the description.
func NewPlainHash(d Description) (*Described, error) {
	var problems []error
	if d.Algorithm != PlainSHA256 {
		problems = append(problems, errors.New("signing: a plain hash needs the Algorithm PlainSHA256: NewDescribed takes the others"))
	}
	if text, err := parseSigned(d.Signed); err == nil && (!text.body || len(text.tail) > 0) {
		problems = append(problems, errors.New("signing: the text of a plain hash must end with {body}: otherwise it could be made longer"))
	}
	if d.TimestampHeader != "" || d.TimestampLabel != "" || d.TimestampField != "" {
		problems = append(problems, errors.New("signing: a plain hash covers no time: leave TimestampHeader, TimestampLabel and TimestampField out"))
	}
	s, err := newDescribed(d)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	return s, nil
}

// unextended reports whether the hash of a body cannot be that of a shorter one, made longer.
func unextended(body []byte) bool { return utf8.Valid(body) }

// prefixed is a hash of a key and of what follows.
type prefixed struct {
	hash.Hash
	key []byte
}

func (p *prefixed) Reset() {
	p.Hash.Reset()
	p.Write(p.key)
}
