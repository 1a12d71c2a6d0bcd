package jobs

import "context"

// Announcer announces completed jobs, in the transactions that complete them.
// NewCallbacks returns one that publishes events.
type Announcer[Tx any] interface {
	// AdmitTx checks a callback URL in the transaction that submits the job. It
	// returns the URL in the form to store, or an error that says what is wrong
	// with it.
	AdmitTx(ctx context.Context, tx Tx, owner, url string) (string, error)

	// CompletedTx announces a job with a callback URL, in the transaction that
	// writes its completion. Exactly one such transaction commits for each job. j is
	// without its input. An error keeps the job from being completed, and so does a panic in
	// a worker: the worker tries again while it has the job's lease, and after that the job
	// is run again.
	CompletedTx(ctx context.Context, tx Tx, j Job) error

	// InTx runs a transaction as Store.InTx does, on the same database. After the
	// commit it wakes the senders of CompletedTx's announcements.
	InTx(ctx context.Context, fn func(tx Tx) error) error
}
