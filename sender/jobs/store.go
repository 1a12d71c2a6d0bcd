package jobs

import (
	"context"
	"crypto/sha256"
	"time"
)

// Store is what jobs need from a database. Tx is the transaction of the
// application's database driver. The comments are the contract, and jobstest checks
// it.
//
// A store has no rules of its own: what becomes of a job is decided by this package,
// on records that the store has locked. All methods are safe for concurrent use, by
// any number of processes. Times are those of the database's clock, in microseconds
// or finer. A method that works in a caller's transaction never begins, ends or
// savepoints it, and keeps no reference to it. A conflict that the database resolves
// by aborting comes back matching sender.ErrRetryTx; after any error the transaction
// must be rolled back.
type Store[Tx any] interface {
	// Check returns an error that matches sender.ErrUnfit unless the database is
	// migrated and keeps what it commits.
	Check(ctx context.Context) error

	// InTx runs fn in a transaction that commits if fn returns nil and rolls back if
	// it returns an error or panics. What matches sender.ErrRetryTx is retried a few
	// times, so fn may run more than once.
	InTx(ctx context.Context, fn func(tx Tx) error) error

	// InsertTx stores a new job that is queued and due now, with r's ID, Kind, Owner,
	// Input, CallbackURL, IdempotencyKey, KeyScope and Hash, and returns it as it is
	// stored, CreatedAt included. If the key, unless it is empty, is stored already in
	// its scope, nothing is changed and the job that has it is returned, whatever its
	// hash, with existed set. Of concurrent calls with one key one stores its job. Once
	// it has committed it is durable; a transaction that would not be is refused with
	// sender.ErrUnfit.
	InsertTx(ctx context.Context, tx Tx, r Record) (stored Record, existed bool, err error)

	// DueTx returns up to limit jobs of a kind that are due (queued or running, with
	// Due not after now), those that are due longest first, and locks them: until tx
	// ends nobody else changes them, or is given them by DueTx. Those that others have
	// locked it passes over, or it waits where the database has a single writer. now is
	// the database's time. The cost does not grow with the jobs that are not due.
	DueTx(ctx context.Context, tx Tx, kind string, limit int) (due []Record, now time.Time, err error)

	// LockTx returns a job, without its input, and keeps others from changing it until
	// tx ends, or returns ErrNotFound. What it returns is the newest that is committed.
	LockTx(ctx context.Context, tx Tx, k Key) (r Record, now time.Time, err error)

	// UpdateTx stores what can change of a job that tx has locked: the fields of
	// Record but No, ID, Kind, Owner, Input, CallbackURL, CreatedAt, IdempotencyKey,
	// KeyScope and Hash.
	UpdateTx(ctx context.Context, tx Tx, r Record) error

	// GetTx returns a job, with its input, or ErrNotFound.
	GetTx(ctx context.Context, tx Tx, k Key) (Record, error)

	// ListTx lists jobs without inputs and states, the newest first: up to limit of
	// them whose No is smaller than before (0: from the newest on), of an owner, a kind
	// and a status ("": of all). It looks at up to about q.Examine jobs of the owner,
	// and costs no more, however many there are of others, or how few have the kind and
	// the status. next is the Before to go on with; 0: nothing follows. A page can be
	// short, or empty, before that.
	ListTx(ctx context.Context, tx Tx, q ListQuery) (page []Record, next int64, err error)

	// PruneTx removes up to limit jobs that were finished longer ago than age, those
	// that were finished first before others, and returns how many. The cost does not
	// grow with the jobs that stay.
	PruneTx(ctx context.Context, tx Tx, age time.Duration, limit int) (int, error)
}

// Record is a job as a store keeps it.
type Record struct {
	Job
	No int64 // it rises with each job

	// Token is of the last claim: any number of 63 bits, drawn at random.
	Token int64

	// Due is, of a queued job, when it may be claimed; of one that is running, when
	// its lease ends.
	Due time.Time

	// State is what the function goes on from.
	State []byte

	IdempotencyKey string
	KeyScope       string
	Hash           [sha256.Size]byte // of what a repeated submission must agree on
}

// ListQuery selects jobs for ListTx.
type ListQuery struct {
	Owner  string
	Kind   string
	Status Status
	Before int64
	Limit  int // at least 1

	// Examine is about how many jobs are looked at; less than Limit means Limit.
	Examine int
}
