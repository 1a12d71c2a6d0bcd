package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
)

// MaxReason is how many bytes of [DeadLetter.Reason] are kept.
const MaxReason = 4096

// DeadLetter is an event that arrived from its sender and was verified, but that cannot
// be applied as things are.
type DeadLetter struct {
	Scope string
	ID    string // the event's
	Type  string // the event's
	// Object and Version are the event's, or both zero if it has none.
	Object  Object
	Version int64
	// Body is the event's body as it was received. It may have any size and any bytes: it
	// may have been refused for either.
	Body []byte
	// Reason says why it could not be applied. It may be any text, since no error's wording
	// may stop an event from being set aside. Characters that a database cannot keep are
	// replaced, and bytes beyond MaxReason are cut off.
	Reason string
	// At is when it was set aside, to the microsecond; never zero.
	At time.Time
}

// DeadLetters keeps dead letters beside the markers, in the same transaction. It
// is an optional interface of a [Store]; all stores of this module have it.
//
// A caller that sets an event aside marks it in the same transaction and does not advance
// its object's version. A caller that applies it by hand advances the version and
// discards the dead letter in the transaction of the effect; the marker is there already.
// The rules of [Store] about transactions, values and errors hold here too.
type DeadLetters[Tx any] interface {
	// SetAside keeps the dead letter. It replaces an earlier one of the same event (scope
	// and id).
	SetAside(ctx context.Context, tx Tx, letter DeadLetter) error
	// DeadLetter returns one, or an error that must match ErrNotFound.
	DeadLetter(ctx context.Context, tx Tx, scope, id string) (DeadLetter, error)
	// ListDeadLetters returns at most limit dead letters of the scope, ordered by
	// the bytes of their ids, beginning after the id after; "" is the beginning.
	// A limit below 1 is refused with ErrInvalid.
	ListDeadLetters(ctx context.Context, tx Tx, scope string, after string, limit int) ([]DeadLetter, error)
	// Discard removes one, or returns an error that must match ErrNotFound.
	Discard(ctx context.Context, tx Tx, scope, id string) error
}

// Prepare is for implementations. It returns the dead letter in the form in which it is to
// be stored, with a body of its own. Otherwise it returns an error that matches
// [ErrInvalid] and names everything that is wrong.
func (l DeadLetter) Prepare() (DeadLetter, error) {
	errs := []error{ident.Scope(l.Scope), ident.EventID(l.ID), ident.Type(l.Type)}
	if l.Object != (Object{}) || l.Version != 0 {
		errs = append(errs, ident.ObjectType(l.Object.Type), ident.ObjectID(l.Object.ID), ident.Version(l.Version))
	}
	if l.At.IsZero() {
		errs = append(errs, errors.New("the time is zero: it must be when the event was set aside"))
	}
	if err := invalid(errs...); err != nil {
		return DeadLetter{}, err
	}
	l.Body = append([]byte{}, l.Body...)
	l.Reason = ident.MadeStorable(l.Reason, MaxReason)
	l.At = time.UnixMicro(l.At.UnixMicro()).UTC()
	return l, nil
}

// CheckList is for implementations: it reports what is wrong with the arguments
// of ListDeadLetters in an error that matches [ErrInvalid], or nil.
func CheckList(scope, after string, limit int) error {
	errs := []error{ident.Scope(scope)}
	if after != "" {
		if err := ident.EventID(after); err != nil {
			errs = append(errs, fmt.Errorf("cursor: %w", err))
		}
	}
	return invalid(append(errs, checkLimit(limit))...)
}
