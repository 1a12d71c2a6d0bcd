package receiver

import (
	"context"
	"net/http"

	"github.com/surehook/surehook/signing"
)

// Verifier decides whether a request was signed by whom it must be. A
// [signing.Verifier] is one whose keys are always the same, and [Secrets] one whose
// keys depend on the request. It must be safe for concurrent use.
//
// An error that matches none of package signing's is answered with 503: a verifier
// that cannot find out says neither yes nor no.
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

// checkSignature also says the scope, if it comes with the keys.
func (r *Receiver[Tx]) checkSignature(ctx context.Context, in incoming, body []byte) (v signing.Verified, scope string, err error) {
	m := signing.Message{Method: in.method, URL: in.url, Header: in.header, Body: body}
	s, ok := r.verifier.(*Secrets)
	if !ok {
		v, err = r.verifier.Verify(m)
		return v, "", err
	}
	ctx, cancel := context.WithDeadline(ctx, in.deadline)
	defer cancel()
	return s.verify(ctx, m)
}
