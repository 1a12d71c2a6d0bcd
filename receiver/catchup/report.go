package catchup

import "github.com/surehook/surehook/receiver"

// MaxMissed is how many ids Report.Missed has at most.
const MaxMissed = 1000

// Report is the result of a reconciliation. Seen is the sum of the counts after it.
type Report struct {
	Seen         int // events read
	Applied      int // missed, and applied now
	DeadLettered int // missed, and set aside now: it can never be applied
	Stale        int // missed, and overtaken: a newer version is stored
	Duplicates   int // taken before
	Reapplied    int // taken before, and applied again because of a request; see receiver.Receiver.Reapply
	Ignored      int // of types that the application does not want
	Redacted     int // their data are gone at the sender, so they were left alone
	Refused      int // can neither be applied nor kept, and were passed over; see Refusal

	// Missed has the ids of the first MaxMissed events that were applied or set aside
	// now: no post had brought them.
	Missed []string
	// Gaps are the parts of the feed that are not kept any more.
	Gaps []Gap
	// Next is the cursor behind the last page that was read.
	Next string
}

func (r *Report) add(id string, res receiver.Result) {
	r.Seen++
	switch res {
	case receiver.Applied:
		r.Applied++
	case receiver.DeadLettered:
		r.DeadLettered++
	case receiver.Stale:
		r.Stale++
	case receiver.Duplicate:
		r.Duplicates++
	case receiver.Reapplied:
		r.Reapplied++
	case receiver.Ignored:
		r.Ignored++
	}
	if (res == receiver.Applied || res == receiver.DeadLettered) && len(r.Missed) < MaxMissed {
		r.Missed = append(r.Missed, id)
	}
}
