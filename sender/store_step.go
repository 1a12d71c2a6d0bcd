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

// LargeSteps is an optional interface of a DispatchStore on which larger steps cost less:
// each has its round trips and its commit, however much is in it. Small ones are for a
// database with a single writer at a time, where others wait for their end.
type LargeSteps interface {
	// StepSize is how many deliveries the next call should record, of how many it may
	// claim twice as many; 0: as few as elsewhere. It is asked before each call.
	StepSize() int
}
