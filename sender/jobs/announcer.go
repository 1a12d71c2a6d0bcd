package jobs

import "context"

// Announcer tells of completed jobs, in the transactions that complete them.
// NewCallbacks returns one that publishes events.
type Announcer[Tx any] interface {
	// AdmitTx checks a callback URL when a job is submitted, in the submission's
	// transaction, and returns it as it is to be kept; or says what is wrong with it.
	AdmitTx(ctx context.Context, tx Tx, owner, url string) (string, error)

	// CompletedTx tells of a job with a callback URL, in the transaction that writes
	// its completion, and exactly once in one that commits. An error keeps the job
	// from being completed: it is tried again while the worker has the job's lease,
	// and the job is run again after it.
	CompletedTx(ctx context.Context, tx Tx, j Job) error

	// InTx runs a transaction as Store.InTx does, on the same database, and wakes
	// whoever sends what CompletedTx has left in it.
	InTx(ctx context.Context, fn func(tx Tx) error) error
}
