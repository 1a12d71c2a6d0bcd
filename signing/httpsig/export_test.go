package httpsig

import (
	"time"

	"github.com/surehook/surehook/signing"
)

// NewBodiless is New for published values that do not cover the body.
var NewBodiless = newScheme

// Member is the reader of dictionaries.
var Member = member

// FromASN1 and ToASN1 are the two ways between the forms of an ECDSA signature.
var (
	FromASN1 = fromASN1
	ToASN1   = toASN1
)

// Base returns what the signature of a request covers.
func (s *Scheme) Base(m signing.Message, now time.Time) (string, error) {
	st := s.state()
	l, err := s.read(m.Header, now, time.Minute, st)
	if err != nil {
		return "", err
	}
	err = s.base(m.Header, &m, l, st)
	return string(st.content), err
}
