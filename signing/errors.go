package signing

import (
	"errors"
	"fmt"
	"time"
)

// These say that a header is wrong: a receiver answers 400. The returned errors are of
// type *[HeaderError], which names the header.
var (
	// ErrMissingHeader: a header that the scheme needs is not there.
	ErrMissingHeader = errors.New("signing: header missing")

	// ErrNotSigned: the scheme's signature header is not there at all. It also
	// matches ErrMissingHeader. A [Verifier] with several schemes goes on to the
	// next one for this error and for no other.
	ErrNotSigned = fmt.Errorf("%w: the request carries no signature of this scheme", ErrMissingHeader)

	// ErrRepeatedHeader: a header is there more than once. The package never guesses which
	// value counts. For the spellings of its name see [OnlyHeader].
	ErrRepeatedHeader = errors.New("signing: header repeated")

	// ErrMalformedHeader: a header's value does not have its form.
	ErrMalformedHeader = errors.New("signing: header malformed")
)

// These say why a well-formed request is not accepted: a receiver answers 401, with the
// same body for all of them.
var (
	// ErrTimestampOutsideWindow is matched by *[TimestampError].
	ErrTimestampOutsideWindow = errors.New("signing: timestamp outside the window")

	// ErrNoTimestamp: the signature is right, and the body that it covers has no
	// well-formed time where the scheme has it. It also matches
	// ErrTimestampOutsideWindow, since nothing shows that the request is a new one.
	ErrNoTimestamp = fmt.Errorf("%w: the body has no time of signing", ErrTimestampOutsideWindow)

	// ErrSignatureMismatch: no signature was made by a valid key over these bytes.
	ErrSignatureMismatch = errors.New("signing: signature does not match")

	// ErrNoValidKey: the keyring has no key that is valid at that time and that the
	// scheme can use.
	ErrNoValidKey = errors.New("signing: no valid key")
)

var (
	// ErrSecretUnsuited: the scheme cannot be used with the keyring's secrets.
	ErrSecretUnsuited = errors.New("signing: secret does not suit the scheme")

	// ErrSecret: a text is not acceptable as a secret.
	ErrSecret = errors.New("signing: invalid secret")
)

var errNoSuitedKey = fmt.Errorf("%w: %w", ErrNoValidKey, ErrSecretUnsuited)

// HeaderError says which header is wrong, and how. It never holds the header's
// value. It matches ErrMissingHeader, ErrNotSigned, ErrRepeatedHeader or
// ErrMalformedHeader.
type HeaderError struct {
	Header  string // the name as the scheme spells it
	Problem string // what is wrong, and what would be right
	kind    error
}

func (e *HeaderError) Error() string {
	return "signing: header " + e.Header + " " + e.Problem
}

// Unwrap returns the sentinel that says what kind of problem it is.
func (e *HeaderError) Unwrap() error { return e.kind }

// NewHeaderError returns a *[HeaderError], for a [Scheme] of another package. kind is
// [ErrMissingHeader], [ErrNotSigned], [ErrRepeatedHeader] or [ErrMalformedHeader]. The problem
// follows the header's name in a sentence, and holds nothing of its value.
func NewHeaderError(kind error, header, problem string) error {
	return &HeaderError{Header: header, Problem: problem, kind: kind}
}

func malformed(header, problem string) error {
	return &HeaderError{Header: header, Problem: problem, kind: ErrMalformedHeader}
}

// TimestampError says how far a timestamp is from this side's clock. It matches
// ErrTimestampOutsideWindow.
type TimestampError struct {
	Timestamp time.Time // as the request states it; not authenticated at this point
	// Skew is now − timestamp in whole seconds: positive for a timestamp in the
	// past, negative for one in the future. It is limited to what a Duration holds.
	Skew      time.Duration
	Tolerance time.Duration
}

func (e *TimestampError) Error() string {
	side, skew := "behind", e.Skew
	if skew < 0 {
		side, skew = "ahead of", -skew
	}
	return fmt.Sprintf("signing: timestamp is %d s %s the clock here: at most %d s are accepted",
		int64(skew/time.Second), side, int64(e.Tolerance/time.Second))
}

// Is reports whether target is ErrTimestampOutsideWindow.
func (e *TimestampError) Is(target error) bool { return target == ErrTimestampOutsideWindow }
