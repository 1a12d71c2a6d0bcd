package jobs

import (
	"context"
	"crypto/sha256"
	"time"
)

// Store keeps jobs in a database. Tx is the transaction type of the application's
// database driver. The comments are the contract, and package jobstest checks it.
//
// A store has no rules of its own: package jobs makes all decisions, on records that
// the store has locked. All methods are safe for concurrent use, by any number of
// processes. Times are those of the database's clock, in microseconds or finer. A
// method that works in a caller's transaction never begins, ends or savepoints it, and
// keeps no reference to it. If the database aborts a transaction because of a conflict,
// the error matches sender.ErrRetryTx. After any error the transaction must be rolled
// back. A store on a database where writers wait for each other should be a sender.Reader and a
// Looker, too.
type Store[Tx any] interface {
	// Check returns an error that matches sender.ErrUnfit unless the database is
	// migrated and its commits are durable.
	Check(ctx context.Context) error

	// InTx runs fn in a transaction that commits if fn returns nil and rolls back
	// if it returns an error or panics. After an error that matches
	// sender.ErrRetryTx it runs fn again, a few times.
	InTx(ctx context.Context, fn func(tx Tx) error) error

	// InsertTx stores a new job that is queued and due now, with r's ID, Kind,
	// Owner, Input, CallbackURL, IdempotencyKey, KeyScope and Hash, and returns it
	// as it is stored, CreatedAt included. If the key is not empty and its scope
	// has it already, nothing is changed, and InsertTx returns the job that has it,
	// whatever its hash, with existed set. If several calls with one key run at
	// once, one of them stores its job. A committed job is durable: InsertTx
	// returns sender.ErrUnfit in a transaction whose commit would not be.
	InsertTx(ctx context.Context, tx Tx, r Record) (stored Record, existed bool, err error)

	// KeyTx returns the job that has an idempotency key, which is not empty, in a scope,
	// with its input. found is false if there is none, and tx can go on.
	KeyTx(ctx context.Context, tx Tx, scope, key string) (r Record, found bool, err error)

	// DueTx returns up to q.Limit jobs of a kind that are due (queued or running,
	// with Due not after now), the longest due first, and locks them: until tx ends
	// nobody else can change them or get them from DueTx. It skips jobs that others
	// have locked; where the database has a single writer it waits instead. now is
	// the database's time. The cost does not grow with the jobs that are not due; it may
	// grow with the due ones that q leaves out.
	DueTx(ctx context.Context, tx Tx, q DueQuery) (due []Record, now time.Time, err error)

	// LockTx returns the newest committed state of a job, without its input, and
	// keeps others from changing the job until tx ends. It returns ErrNotFound if
	// there is no such job.
	LockTx(ctx context.Context, tx Tx, k Key) (r Record, now time.Time, err error)

	// UpdateTx stores the fields of a job that tx has locked, except those that
	// never change: No, ID, Kind, Owner, Input, CallbackURL, CreatedAt,
	// IdempotencyKey, KeyScope and Hash. If a statement has ended tx since then, it
	// returns an error and stores nothing: a function's state is not kept without its
	// effects.
	UpdateTx(ctx context.Context, tx Tx, r Record) error

	// GetTx returns a job, with its input, or ErrNotFound.
	GetTx(ctx context.Context, tx Tx, k Key) (Record, error)

	// ListTx lists jobs without inputs and states, the newest first: up to limit of
	// them whose No is smaller than before (0: from the newest on), of an owner, a
	// kind and a status ("": of all). It looks at no more than about q.Examine jobs
	// of the owner; where there is an owner and the status is Queued or Running, at no
	// others than unfinished ones. The cost depends neither on others' jobs, nor on how
	// few have the kind and the status. q.Bytes bounds the results together, and those of
	// jobs that the page leaves out for it are not read. next is the Before of the next page;
	// 0: no jobs follow. A page can be short, or empty, though others follow.
	ListTx(ctx context.Context, tx Tx, q ListQuery) (page []Record, next int64, err error)

	// PruneTx removes up to q.Limit jobs that were finished longer ago than q.Age, the
	// oldest first, and returns how many. q.Bytes bounds the inputs and results that go with
	// them. The cost does not grow with the jobs that stay.
	PruneTx(ctx context.Context, tx Tx, q PruneQuery) (int, error)
}

// Looker is an optional part of a Store whose InTx waits for other writers, on a database where
// reading does not. Workers look at each poll, and begin a transaction only if something is due.
type Looker interface {
	// AnyDue tells whether DueTx would find a job for one of the queries, by what is committed.
	// It only reads, and waits for no transaction that writes.
	AnyDue(ctx context.Context, queries []DueQuery) (bool, error)
}

// Record is a job as a store keeps it.
type Record struct {
	Job
	No int64 // it rises with each job

	// Token is the last claim's: 63 random bits.
	Token int64

	// Due is when a queued job may be claimed, or when a running one's lease ends.
	Due time.Time

	// State is the state from which the function goes on.
	State []byte

	IdempotencyKey string
	KeyScope       string
	Hash           [sha256.Size]byte // over the fields that a repeated submission must have in common
}

// DueQuery selects jobs for DueTx.
type DueQuery struct {
	Kind  string
	Limit int // at least 1

	// NoCallbacks leaves out the jobs that have a callback URL, so that they take no
	// place of the others. The caller could not tell of their end.
	NoCallbacks bool

	// Except leaves out the jobs of these owners, so that they take no place of the
	// others. They are at most 1,100.
	Except []string
}

// ListQuery selects jobs for ListTx.
type ListQuery struct {
	Owner  string
	Kind   string
	Status Status
	Before int64
	Limit  int // at least 1

	// Examine bounds, roughly, how many jobs are looked at. Less than Limit means
	// Limit.
	Examine int

	// Bytes ends a page before the job whose result would make the results longer than
	// this together. The first result comes whatever its size. 0: no bound.
	Bytes int
}

// PruneQuery selects jobs for PruneTx.
type PruneQuery struct {
	Age   time.Duration
	Limit int // at least 1

	// Bytes ends the jobs before the one whose input and result would make theirs longer
	// than this together. The first job goes whatever its size. 0: no bound.
	Bytes int
}
