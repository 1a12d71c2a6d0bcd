package jobs

import (
	"errors"
	"fmt"
)

// Errors of submitting, reading and cancelling.
var (
	// ErrInvalid: an argument is not valid. Nothing was changed.
	ErrInvalid = errors.New("jobs: invalid")

	// ErrKind: no such kind was given to New. Nothing was written.
	ErrKind = errors.New("jobs: unknown kind")

	// ErrIdempotencyKey: the idempotency key was used before with another content.
	// Nothing was written.
	ErrIdempotencyKey = errors.New("jobs: the idempotency key was used with another content")

	// ErrNotFound: there is no such job, or it is somebody else's.
	ErrNotFound = errors.New("jobs: not found")

	// ErrFinished: the job has ended and cannot be cancelled any more.
	ErrFinished = errors.New("jobs: the job has ended")

	// ErrNoAnnouncer: the job has a callback URL, and nobody would be told of its end,
	// because this process has no Config.Announcer. Nothing was changed.
	ErrNoAnnouncer = errors.New("jobs: no announcer")
)

// Errors of running. The first four are also causes: see context.Cause.
var (
	// ErrLost: the run's lease was lost, and another run may have begun. This run's
	// writes change nothing any more.
	ErrLost = errors.New("jobs: the lease was lost")

	// ErrCancelled: the job was cancelled.
	ErrCancelled = errors.New("jobs: the job was cancelled")

	// ErrTimeout: the try took longer than Kind.Timeout. It counts as failed.
	ErrTimeout = errors.New("jobs: the try took too long")

	// ErrDraining: the workers are stopping. The job is queued again, and the try is
	// not counted.
	ErrDraining = errors.New("jobs: the workers are stopping")

	// ErrPermanent matches errors that were made by Permanent.
	ErrPermanent = errors.New("jobs: permanent")

	// ErrRunning: Run is under way already.
	ErrRunning = errors.New("jobs: running already")

	// ErrDrainTimeout: Run gave up waiting for functions that ignore the end of
	// their contexts. Their jobs become due again when their leases end.
	ErrDrainTimeout = errors.New("jobs: functions were still running when the drain timeout was over")
)

// Permanent marks an error of a kind's function: trying again would not help, so the
// job fails at once. The error's text is that of err. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

type permanent struct{ error }

func (p permanent) Unwrap() error        { return p.error }
func (p permanent) Is(target error) bool { return target == ErrPermanent }

// panicked is the error of a function that panicked. It names the type of the panic's
// value alone: the value may well contain an input.
type panicked struct{ value any }

func (p panicked) Error() string {
	if p.value == nil {
		return "the kind's function ended its goroutine"
	}
	return fmt.Sprintf("the kind's function panicked with a %T", p.value)
}
