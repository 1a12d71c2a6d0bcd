package sender

import "context"

// Stepper is an optional interface of a DispatchStore, which a Dispatcher uses
// instead of Expand and RecordAndClaim: one commit costs less than two, and what is
// expanded can be claimed at once.
type Stepper interface {
	// Step is Expand, then RecordAndClaim, in one transaction. It expands nothing if p
	// is zero.
	Step(ctx context.Context, p ExpandParams, b Batch) (Expanded, Claims, error)
}

// LargeSteps is an optional interface of a DispatchStore whose database has several
// writers at a time. Nobody waits for the end of a transaction there, and each costs
// round trips, however much is in it: so the steps of a Dispatcher are larger.
type LargeSteps interface {
	// StepSize is how many deliveries one call should record, and claim.
	StepSize() int
}
