package receiver

import "sync"

// Stats counts what became of requests and of events that were applied in other ways,
// since New. An event that is recorded and applied later counts twice.
type Stats struct {
	Applied      int64
	Duplicate    int64
	Stale        int64 // skipped: the function did not run
	DeadLettered int64
	Ignored      int64
	Reapplied    int64 // taken before, and applied again; see [Receiver.Reapply]
	Recorded     int64
	Challenged   int64
	Rejected     int64 // no verified event
	Failed       int64 // verified, and could not be applied then
}

// Stats returns the counts of one moment, which are this process's.
// [Receiver.ApplyDeadLetter] is not counted.
func (r *Receiver[Tx]) Stats() Stats {
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	return r.counts.Stats
}

// counts are the Stats as they grow.
type counts struct {
	mu sync.Mutex
	Stats
}

// add counts one more in a field of its Stats.
func (c *counts) add(field *int64) {
	c.mu.Lock()
	*field++
	c.mu.Unlock()
}

// of is the field of a result.
func (s *Stats) of(res Result) *int64 {
	switch res {
	case Duplicate:
		return &s.Duplicate
	case Stale:
		return &s.Stale
	case DeadLettered:
		return &s.DeadLettered
	case Ignored:
		return &s.Ignored
	case Reapplied:
		return &s.Reapplied
	case Recorded:
		return &s.Recorded
	default: // Applied
		return &s.Applied
	}
}
