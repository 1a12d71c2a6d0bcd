package receiver

import (
	"context"
	"net/http"

	"github.com/surehook/surehook/signing"
)

// Verifier decides whether a request has the signature of its sender. A
// [signing.Verifier] always has the same keys; with [Secrets] the keys depend on the
// request. It must be safe for concurrent use.
//
// An error that matches none of package signing's is answered with 503: a verifier
// that cannot find out says neither yes nor no. A panic is logged and answered with 500,
// except http.ErrAbortHandler, which is passed on.
type Verifier interface {
	// Precheck refuses what can be refused before the body is read.
	Precheck(h http.Header) error
	// Verify makes Precheck's checks, too.
	Verify(m signing.Message) (signing.Verified, error)
}

var _ Verifier = (*signing.Verifier)(nil)

func isNil(v Verifier) bool {
	switch v := v.(type) {
	case nil:
		return true
	case *signing.Verifier:
		return v == nil
	case *Secrets:
		return v == nil
	default:
		return false
	}
}

// checkSignature also says the scope, if it comes with the keys, and the facts, if an
// envelope needs them.
func (r *Receiver[Tx]) checkSignature(ctx context.Context, in incoming, body []byte) (v signing.Verified, f signing.Facts, scope string, err error) {
	m := signing.Message{Method: in.method, URL: in.url, Header: in.header, Body: body}
	err = contain(func() (err error) {
		if s, ok := r.verifier.(*Secrets); ok {
			ctx, cancel := context.WithDeadline(ctx, in.deadline)
			defer cancel()
			v, f, scope, err = s.verify(ctx, m, r.cfg.Envelope != nil)
			return err
		}
		v, f, err = verifyFacts(r.verifier, m, r.cfg.Envelope != nil)
		return err
	})
	return v, f, scope, err
}

// verifyFacts reads the facts only if they are wanted, since that goes through the body.
// It ties the facts of a foreign verifier to this message: otherwise all events without
// an id would be one.
func verifyFacts(verifier Verifier, m signing.Message, wanted bool) (v signing.Verified, f signing.Facts, err error) {
	if facts, ok := verifier.(FactVerifier); ok && wanted {
		v, f, err = facts.VerifyFacts(m)
		return v, f.Of(m), err
	}
	v, err = verifier.Verify(m)
	return v, f, err
}
