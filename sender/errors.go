package sender

import (
	"errors"
	"fmt"
	"time"
)

// Errors of publishing.
var (
	// ErrInvalidEvent: the event is not of the form that Event describes.
	// Nothing was written.
	ErrInvalidEvent = errors.New("sender: the event is invalid")

	// ErrVersion: the given version does not exceed the stored one. The error is
	// a *VersionError. Nothing was written.
	ErrVersion = errors.New("sender: the version is not newer than the stored one")

	// ErrIdempotencyKey: the idempotency key was used before with another
	// content. Nothing was written.
	ErrIdempotencyKey = errors.New("sender: the idempotency key was used with another content")

	// ErrRetryTx: the database could not serialise the transaction. Its owner must roll
	// it back and run it again.
	ErrRetryTx = errors.New("sender: the transaction must be run again")
)

// Errors of the registry, the history and the stores.
var (
	// ErrNotFound: there is no such subscriber, subscription, event or delivery.
	ErrNotFound = errors.New("sender: not found")

	// ErrExists: the id is in use, or was.
	ErrExists = errors.New("sender: exists already")

	// ErrInvalid: an argument is not of the form that is asked for. Nothing was
	// changed.
	ErrInvalid = errors.New("sender: invalid")

	// ErrStatus: it is not possible in the present status of the subscription, or
	// of what else it is about; the message says which, and what would be.
	ErrStatus = errors.New("sender: not possible in the present status")

	// ErrRetention: an event would be sent again that is so old that receivers may have
	// forgotten it, and would apply it twice. The error is a *RetentionError. Nothing was
	// changed.
	ErrRetention = errors.New("sender: beyond the retention")

	// ErrConflict: somebody else changed it in between. Nothing was changed; read
	// it again.
	ErrConflict = errors.New("sender: changed by somebody else in between")

	// ErrNotNewest: the secret that a caller took for the newest one is not the newest,
	// because the secrets were changed since they were read. Nothing was changed; read them
	// again.
	ErrNotNewest = errors.New("sender: another secret is the newest one")

	// ErrChallenge: a callback URL did not answer its challenge. The error is a
	// *challenge.Error. Nothing was changed.
	ErrChallenge = errors.New("sender: the challenge was not answered")

	// ErrProxy: a callback URL was to be challenged through the operator's proxy, and the
	// proxy failed. This says nothing of the URL. Nothing was changed.
	ErrProxy = errors.New("sender: the proxy failed")

	// ErrCancelled: the delivery was cancelled, or its subscription was deleted after it
	// had ended. It cannot be redelivered.
	ErrCancelled = errors.New("sender: the delivery is not sent again")

	// ErrRedacted: the event's body was removed, so it cannot be sent again.
	ErrRedacted = errors.New("sender: the event was redacted")

	// ErrUnfit: the database does not keep what it has committed, or has not
	// been migrated; the message says what to change.
	ErrUnfit = errors.New("sender: the database is not fit")
)

// ErrSealed: a secret cannot be opened, because its sealing key is missing or because it
// was sealed for another row.
var ErrSealed = errors.New("sender: the secret cannot be opened")

// VersionError tells that a given version does not exceed the stored one. It
// matches ErrVersion.
type VersionError struct {
	Object Object
	Given  int64
	Stored int64
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("sender: version %d of %s %q is not newer than the stored one: give more than %d, or none", e.Given, e.Object.Type, e.Object.ID, e.Stored)
}

// Is makes errors.Is(err, ErrVersion) true.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// RetentionError tells that an event is too old to be sent again, or that this cannot be
// ruled out. It matches ErrRetention.
type RetentionError struct {
	Published time.Time // when the oldest of them was; zero: too many are that old to look at all, and none of those looked at was to be sent
	NotBefore time.Time // the oldest that may be sent
}

func (e *RetentionError) Error() string {
	if e.Published.IsZero() {
		return fmt.Sprintf("sender: too many events were published before %s, up to which receivers are known to remember what they have applied, to see whether one of them would be sent: take later ones only, by Since, or force it",
			e.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("sender: an event was published at %s, before %s, up to which receivers are known to remember what they have applied: take later ones only, or force it",
		e.Published.UTC().Format(time.RFC3339), e.NotBefore.UTC().Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrRetention) true.
func (e *RetentionError) Is(target error) bool { return target == ErrRetention }
