package jobs

import (
	"context"
	"time"
)

// Hooks are optional functions that the workers call. They may be called from many
// goroutines at once, never inside a database transaction, and must not block: the
// job waits for them. A panic in one is logged and contained.
type Hooks struct {
	// Started is called before a try. The function gets the context that it
	// returns, which can carry a trace's span; nil: the context stays.
	Started func(ctx context.Context, j Job) context.Context

	// Ended is called after the try, once its outcome is stored or its lease is
	// lost.
	Ended func(ctx context.Context, t Try)

	// Finished is called once the end of a job is committed. It is not called for a
	// job that CancelTx has ended: only the caller knows when that commits.
	Finished func(ctx context.Context, j Job)
}

// Try is the outcome of one call of a kind's function.
type Try struct {
	Job  Job           // as it is stored now, or, if Lost is set, as it was claimed
	Err  error         // what the function returned
	Lost bool          // the lease was lost: as far as is known, nothing was stored
	Took time.Duration // of the function
}
