package signing

import (
	"errors"
	"net/http"
	"time"
)

// Message has the parts of a request that a signature may cover. Body must be the raw
// bytes as they came, before any decoding.
type Message struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// Verified has the facts that a valid signature has proved.
type Verified struct {
	Scheme    string    // the scheme's Name
	KeyID     string    // the ID of the key that matched
	Timestamp time.Time // when the attempt was signed, whole seconds, UTC
	ID        string    // the event's id if the signature covers it, else empty
}

// Scheme is a way of signing: a value that signs and verifies, safe for concurrent
// use. Callers pin their schemes; nothing in a request chooses one.
type Scheme interface {
	// Name identifies the scheme in [Verified] and in logs.
	Name() string

	// Precheck makes all checks that need no body. It refuses headers that are not there
	// exactly once or not well-formed and, where the timestamp is in a header, one that
	// is outside the window. An absent signature header is [ErrNotSigned], even if more
	// is wrong.
	Precheck(h http.Header, now time.Time, tolerance time.Duration) error

	// Verify assumes nothing of Precheck: it makes the same checks before it
	// computes anything over the body, and answers the same errors. Beyond those it
	// returns [ErrSignatureMismatch] or [ErrNoValidKey].
	Verify(m Message, keys *Keyring, now time.Time, tolerance time.Duration) (Verified, error)

	// Sign sets the scheme's headers on h for an event's id and body and the time of
	// the attempt, at which the keys must be valid (else [ErrNoValidKey]). It returns
	// [ErrSecretUnsuited] if the scheme can use none of them. If it fails, it leaves
	// h as it was.
	Sign(h http.Header, id string, at time.Time, body []byte, keys *Keyring) error
}

// OwnKeys is a [Scheme] that has its keys itself, such as the certificates of its sender. A
// verifier of such schemes alone needs no keyring: NewVerifier(nil, …).
type OwnKeys interface {
	Scheme
	OwnKeys()
}

// DefaultSchemes returns the schemes with which every delivery is signed: [StandardWebhooks]
// and [TimestampBody].
func DefaultSchemes() []Scheme {
	return []Scheme{StandardWebhooks{}, TimestampBody{}}
}

// Sign sets the headers of all schemes on h. A scheme that the keyring's secrets do
// not suit is left out, unless none would be left: then the error matches
// [ErrSecretUnsuited]. Any other error ends it, and h must not be used.
func Sign(h http.Header, schemes []Scheme, id string, at time.Time, body []byte, keys *Keyring) error {
	if len(schemes) == 0 {
		return errors.New("signing: no scheme to sign with: use DefaultSchemes")
	}
	var unsuited []error
	for _, s := range schemes {
		switch err := s.Sign(h, id, at, body, keys); {
		case err == nil:
		case errors.Is(err, ErrSecretUnsuited):
			unsuited = append(unsuited, err)
		default:
			return err
		}
	}
	if len(unsuited) == len(schemes) {
		return errors.Join(unsuited...)
	}
	return nil
}
