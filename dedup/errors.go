package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/internal/ident"
)

var (
	// ErrRetryTx says that the transaction lost against another one: its owner must roll
	// it back and run it again from its beginning. errors.As finds the driver's own
	// error.
	ErrRetryTx = errors.New("dedup: the transaction lost against another one and must be run again")

	// ErrInvalid says that an argument does not have its form. Nothing was changed, and
	// another try with the same argument never helps.
	ErrInvalid = errors.New("dedup: invalid argument")

	// ErrNotFound says that there is no such dead letter, or no such request to apply
	// events again.
	ErrNotFound = errors.New("dedup: no such dead letter or request")
)

// WrapError is for implementations: it wraps the driver's error, with the store's action
// as doing, so that it matches the errors that [Store] promises. These are ErrRetryTx for
// a serialization failure, a deadlock, a lock that could not be had and SQLite's BUSY and
// LOCKED, and ctx.Err() when ctx has ended, which drivers report in words of their own.
// It knows the errors of pgx, lib/pq, bun's pgdriver, the SQLite drivers and
// go-sql-driver/mysql. nil stays nil.
func WrapError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		err = fmt.Errorf("%w: %w", ctxErr, err)
	}
	if errors.Is(err, ErrRetryTx) || errors.Is(err, ErrInvalid) {
		return fmt.Errorf("%w (%s)", err, doing)
	}
	if dberr.Classify(err) == dberr.Retry {
		return fmt.Errorf("%w: %s: %w", ErrRetryTx, doing, err)
	}
	return fmt.Errorf("dedup: %s: %w", doing, dberr.Unmigrated("surehook_dedup_", err))
}

// CheckMark is for implementations: it reports what is wrong with the arguments
// of Mark in an error that matches [ErrInvalid], or nil.
func CheckMark(scope, id string, at time.Time) error {
	var zero error
	if at.IsZero() {
		zero = errors.New("the time is zero: it must be when the event was seen")
	}
	return invalid(ident.Scope(scope), ident.EventID(id), zero)
}

// CheckID is for implementations: it reports what is wrong with an event's scope
// and id in an error that matches [ErrInvalid], or nil.
func CheckID(scope, id string) error {
	return invalid(ident.Scope(scope), ident.EventID(id))
}

// CheckObject is for implementations: it reports what is wrong with a scope and
// an object in an error that matches [ErrInvalid], or nil.
func CheckObject(scope string, obj Object) error {
	return invalid(ident.Scope(scope), ident.ObjectType(obj.Type), ident.ObjectID(obj.ID))
}

// CheckVersion is for implementations: it reports what is wrong with the
// arguments of Advance in an error that matches [ErrInvalid], or nil.
func CheckVersion(scope string, obj Object, version int64) error {
	return invalid(ident.Scope(scope), ident.ObjectType(obj.Type), ident.ObjectID(obj.ID), ident.Version(version))
}

// CheckLimit is for implementations: it reports a limit below 1 in an error that
// matches [ErrInvalid], or nil.
func CheckLimit(limit int) error {
	return invalid(checkLimit(limit))
}

func checkLimit(limit int) error {
	if limit < 1 {
		return fmt.Errorf("limit is %d: it must be at least 1", limit)
	}
	return nil
}

// invalid joins the problems, nils left out, in one line.
func invalid(problems ...error) error {
	var found error
	for _, p := range problems {
		switch {
		case p == nil:
		case found == nil:
			found = p
		default:
			found = fmt.Errorf("%w; %w", found, p)
		}
	}
	if found == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, found)
}
