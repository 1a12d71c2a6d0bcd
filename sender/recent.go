package sender

// Outcome is how an attempt ended, as Recent remembers it.
type Outcome uint8

// The outcomes.
const (
	OutcomeNone         Outcome = iota // there was no attempt
	OutcomeSucceeded                   // answered with 2xx in time
	OutcomeFailed                      // it failed, and the delivery was not dead-lettered by it
	OutcomeDeadLettered                // the delivery was dead-lettered by it
)

// RecentOutcomes is how many outcomes Recent remembers.
const RecentOutcomes = 32

// Recent has the last 32 outcomes of a subscription's attempts, two bits each, the newest
// in the lowest bits. Attempts that tell nothing of the endpoint are left out: interrupted
// ones, and those that failed because of our own network or proxy. The zero value has
// none.
type Recent uint64

// Add returns the outcomes with another one.
func (r Recent) Add(o Outcome) Recent { return r<<2 | Recent(o&3) }

// Outcomes lists them, the oldest first.
func (r Recent) Outcomes() (all []Outcome) {
	for shift := 2 * (RecentOutcomes - 1); shift >= 0; shift -= 2 {
		if o := Outcome(r >> shift & 3); o != OutcomeNone {
			all = append(all, o)
		}
	}
	return all
}
