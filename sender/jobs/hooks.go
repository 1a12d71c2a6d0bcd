package jobs

import (
	"context"
	"time"
)

// Hooks are optional functions that the workers call. They may be called from many
// goroutines at once, never inside a database transaction, and must not block: the
// job waits for them. A panic in one is logged and contained.
type Hooks struct {
	// Started is called before a try. The context that it returns, if it is not nil,
	// is the function's: it can carry a trace's span.
	Started func(ctx context.Context, j Job) context.Context

	// Ended is called after the try, once what it brought is stored.
	Ended func(ctx context.Context, t Try)

	// Finished is called once a job has ended, and that is committed. It is not
	// called for what CancelTx has ended: only the caller knows when it commits.
	Finished func(ctx context.Context, j Job)
}

// Try is what came of one call of a kind's function.
type Try struct {
	Job  Job           // as it is stored now; if Lost is set, as it was claimed
	Err  error         // what the function returned
	Lost bool          // the lease was lost: nothing was stored
	Took time.Duration // of the function
}
