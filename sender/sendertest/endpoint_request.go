package sendertest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/surehook/surehook/signing"
)

// Request is one request as it was received.
type Request struct {
	Method string
	URL    *url.URL // absolute, as the client named it
	Header http.Header
	Body   []byte
	// ReceivedAt is when the request had been read. In a synctest bubble it is
	// the bubble's time.
	ReceivedAt time.Time
}

func newRequest(r *http.Request, body []byte) Request {
	target := *r.URL
	if target.Host == "" { // an incoming request has the path alone
		target.Scheme, target.Host = "http", r.Host
		if r.TLS != nil {
			target.Scheme = "https"
		}
	}
	return Request{Method: r.Method, URL: &target, Header: r.Header.Clone(), Body: body, ReceivedAt: time.Now()}
}

func (r Request) clone() Request {
	target := *r.URL
	r.URL, r.Header, r.Body = &target, r.Header.Clone(), bytes.Clone(r.Body)
	return r
}

// Verify checks that the request has, for each of the schemes, a valid signature by the
// secret, with a timestamp that was fresh when the request came. The schemes default to
// [signing.DefaultSchemes], as a dispatcher's do. Verify leaves out a scheme that
// cannot use the secret, as signing does; if no scheme can, that is an error. Of a scheme
// that covers no time, such as [signing.GitHub], the signature alone is checked. One that
// does not cover the body is refused: it would not show that the body is what was signed.
// The error names every scheme that failed, and never contains the secret.
func (r Request) Verify(secret signing.Secret, schemes ...signing.Scheme) error {
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		return err
	}
	if len(schemes) == 0 {
		schemes = signing.DefaultSchemes()
	}
	message := signing.Message{Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: r.Body}
	var unsuited, failed []error
	for _, scheme := range schemes {
		verifier, err := signing.NewVerifier(keys, &signing.VerifierConfig{
			Schemes: []signing.Scheme{scheme},
			// Nothing comes of what is verified here, so a repetition does no harm.
			Deduplicated: true,
			Now:          func() time.Time { return r.ReceivedAt },
		})
		if err == nil {
			_, err = verifier.Verify(message)
		}
		if errors.Is(err, signing.ErrNotSigned) { // a secret can suit verifying alone
			if cannot := scheme.Sign(http.Header{}, "evt_1", r.ReceivedAt, r.Body, keys); errors.Is(cannot, signing.ErrSecretUnsuited) {
				err = cannot
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, signing.ErrSecretUnsuited):
			unsuited = append(unsuited, err)
		case scheme == nil:
			failed = append(failed, err)
		default:
			failed = append(failed, fmt.Errorf("%s: %w", scheme.Name(), err))
		}
	}
	if len(unsuited) == len(schemes) {
		return errors.Join(unsuited...)
	}
	return errors.Join(failed...)
}
