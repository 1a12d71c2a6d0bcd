package receiver

// Result is the outcome of an event that was answered with 200.
type Result string

const (
	// Applied: the function ran, and its change is committed.
	Applied Result = "applied"
	// Duplicate: this event was taken before. The function did not run.
	Duplicate Result = "duplicate"
	// Stale: the event is a state (see [State]), and the object's stored version is at
	// least the event's. The event is marked as seen, and the function did not run.
	Stale Result = "stale"
	// DeadLettered: the event was not applied and was put beside the markers. The function
	// said that it can never succeed (see [Permanent]), and its change was rolled back. Or
	// the event is a fact that is too old (see [Fact]), or its type is unknown (see
	// [KeepUnknown]).
	DeadLettered Result = "dead_lettered"
	// Ignored: no route wants events of this type (see [Router]). Nothing was
	// stored.
	Ignored Result = "ignored"
	// Reapplied: this event was taken before, and the function ran again because of a
	// request (see [Receiver.Reapply]). It is no Applied, so that counting these counts
	// events.
	Reapplied Result = "reapplied"
	// Recorded: the event is kept, to be applied later (see [Receiver.RecordHandler]).
	Recorded Result = "recorded"
)
