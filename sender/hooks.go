package sender

import "context"

// Hooks are optional functions that the dispatcher calls. They may be called
// from many goroutines at once, never inside a database transaction, and must
// not block: the attempt, or the dispatcher, waits for them. A panic in one is
// logged and contained.
type Hooks struct {
	// AttemptStart is called before an attempt. The context that it returns, if it
	// is not nil, is the attempt's: it can carry a trace's span.
	AttemptStart func(ctx context.Context, c *Claimed) context.Context

	// AttemptEnd is called after the attempt, before its result is recorded.
	AttemptEnd func(ctx context.Context, c *Claimed, r *Result)

	// Recorded is called once a result was recorded, with what was decided. If
	// Lost is set, the lease was lost before and nothing was changed. Attempts
	// that a claim found interrupted come here too.
	Recorded func(ctx context.Context, r *Recorded)

	// Noticed is called once a notice was stored.
	Noticed func(ctx context.Context, n Notice)

	// Pruned is called at the end of each pass of pruning, with what it has removed
	// in all.
	Pruned func(ctx context.Context, p Pruned)
}
