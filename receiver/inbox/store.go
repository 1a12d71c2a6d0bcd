package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/ident"
)

// Store keeps the recorded events in the application's database: packages sqlite and
// postgres beside this one have one each. Tx is the transaction of the application's
// driver; a store never begins, ends or savepoints it, and keeps no reference to it.
//
// The comments here are its rules. Package inboxtest beside this one checks them.
//
// Events stand in lines. One event of each line at a time is claimed. Times are those of
// the database's clock, to the millisecond or finer. The driver's errors come back
// wrapped. All methods are safe for concurrent use, by any number of processes.
type Store[Tx any] interface {
	// RecordTx puts an event into its line, due now if the line was empty, and reports
	// true. If the event (scope and id) is there already, it changes nothing and reports
	// false. Exactly one of several concurrent calls for one event gets true.
	RecordTx(ctx context.Context, tx Tx, r Record) (fresh bool, err error)

	// ClaimTx claims up to limit lines that are due, those that are due longest first,
	// and returns the event of each with the lowest version. If versions are equal, it is
	// the event that was recorded first. It leaves the lines of other scopes alone; an
	// empty scope means all lines but those into which the last event was recorded with
	// OneScope. A claim has a token that no claim had before, not even one that was rolled
	// back. It counts as an attempt, and the line is due again when the lease has ended. No
	// line is given to two transactions at a time: lines that others have locked are passed
	// over, or waited for where the database has a single writer. The cost grows with the
	// number of claims, not with the events that wait, in this scope or in others.
	ClaimTx(ctx context.Context, tx Tx, scope string, limit int, lease time.Duration) ([]Claim, error)

	// FinishTx removes the event, and makes the next one of its line due now. It
	// returns ErrLeaseLost, and changes nothing, if the line has been claimed again. If a
	// statement has ended tx since it was begun, it returns another error, and the event
	// stays: its effect and its marker may have been rolled back.
	FinishTx(ctx context.Context, tx Tx, c Claim) error

	// RetryTx makes the line due after a while, and keeps the reason. It returns
	// ErrLeaseLost, and changes nothing, if the line has been claimed again.
	RetryTx(ctx context.Context, tx Tx, c Claim, after time.Duration, reason string) error

	// StatusTx counts the events of the lines that ClaimTx can claim with this scope. Its
	// cost grows with their number.
	StatusTx(ctx context.Context, tx Tx, scope string) (Status, error)

	// OverdueTx counts the events of the lines that ClaimTx leaves alone with this scope,
	// and that have been due for longer than that. Its cost grows with the number of lines
	// that have been due for so long, of whatever scope.
	OverdueTx(ctx context.Context, tx Tx, scope string, longer time.Duration) (Overdue, error)
}

// Record is an event as it is kept.
type Record struct {
	Scope, ID string
	Line      string // of a scope; 1 to 400 bytes
	Type      string
	Version   int64 // 0: it has none
	Body      []byte

	// OneScope: the receiver has this scope alone, so inboxes with several scopes leave the
	// event to the one with this scope. In a claim it is that of the line.
	OneScope bool
}

// Claim is an event that is to be applied.
type Claim struct {
	Record
	Token   int64
	Attempt int           // from 1, those that were lost included
	Age     time.Duration // since the first attempt was claimed
}

// Status has counts of the inbox.
type Status struct {
	Events  int       // recorded and not taken yet
	Failing int       // those among them whose last attempt failed
	Ahead   int       // those among them that were recorded at a time that is still to come: the database's clock was ahead, and they wait
	Oldest  time.Time // when the oldest was recorded; zero if there is none
}

// Overdue has counts of events that an inbox leaves alone.
type Overdue struct {
	Events int
	Scope  string // one of theirs; "" if there is none
}

var (
	// ErrInvalid: an argument does not have its form.
	ErrInvalid = errors.New("inbox: invalid")

	// ErrLeaseLost: the lease has ended and the event was claimed again, or is gone. The
	// caller must roll back.
	ErrLeaseLost = errors.New("inbox: the lease has ended, and somebody else has the event")

	// ErrRunning: Run is under way on this Inbox.
	ErrRunning = errors.New("inbox: it is running already")
)

const (
	maxLine   = 400
	maxReason = 4096
)

// CheckRecord refuses a record that cannot be kept. Stores call it.
func CheckRecord(r Record) error {
	var line error
	if r.Line == "" || len(r.Line) > maxLine {
		line = fmt.Errorf("the line has %d bytes: it must have 1 to %d", len(r.Line), maxLine)
	}
	var version error
	if r.Version != 0 {
		version = ident.Version(r.Version)
	}
	if err := errors.Join(ident.Scope(r.Scope), ident.EventID(r.ID), ident.Type(r.Type), version, line); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// CheckClaim refuses a limit below 1 and a lease that is not positive. Stores call it.
func CheckClaim(limit int, lease time.Duration) error {
	if limit < 1 || lease <= 0 {
		return fmt.Errorf("%w: limit %d and lease %v: both must be positive", ErrInvalid, limit, lease)
	}
	return nil
}
