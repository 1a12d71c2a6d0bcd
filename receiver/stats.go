package receiver

import "sync/atomic"

// Stats counts what became of requests and of events that were applied in other ways,
// since New. An event that is recorded and applied later counts twice. Each number is
// exact; they are read one after the other.
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

// Stats returns the counts, which are this process's. [Receiver.ApplyDeadLetter] is not
// counted.
func (r *Receiver[Tx]) Stats() Stats {
	c := &r.counts
	return Stats{
		Applied: c.applied.Load(), Duplicate: c.duplicate.Load(), Stale: c.stale.Load(), DeadLettered: c.deadLettered.Load(),
		Ignored: c.ignored.Load(), Reapplied: c.reapplied.Load(), Recorded: c.recorded.Load(), Challenged: c.challenged.Load(),
		Rejected: c.rejected.Load(), Failed: c.failed.Load(),
	}
}

type counts struct {
	applied, duplicate, stale, deadLettered, ignored, reapplied, recorded, challenged, rejected, failed atomic.Int64
}

func (c *counts) add(res Result) {
	switch res {
	case Applied:
		c.applied.Add(1)
	case Duplicate:
		c.duplicate.Add(1)
	case Stale:
		c.stale.Add(1)
	case DeadLettered:
		c.deadLettered.Add(1)
	case Ignored:
		c.ignored.Add(1)
	case Reapplied:
		c.reapplied.Add(1)
	case Recorded:
		c.recorded.Add(1)
	}
}
