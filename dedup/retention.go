package dedup

import (
	"fmt"
	"time"
)

const (
	// DefaultRetention is how long a marker is kept by default.
	DefaultRetention = 30 * 24 * time.Hour

	// DefaultReach is how far back a sender of this module lets one redeliver, replay or
	// resume by default.
	DefaultReach = 28 * 24 * time.Hour

	// RetentionMargin is by how much a retention must exceed a reach. The last attempt can
	// come after the reach's end: a sender that was down at that time makes it when it
	// is up again, and it then has its own deadline and five minutes of signature window.
	// Besides, the clock that marks and the clock that prunes need not agree. All of this
	// takes minutes, except the sender's downtime, for which the margin allows a day.
	//
	// The margin is not for retries. An event that is sent again at the reach's end is tried
	// for the sender's horizon more, which is three days by default. Package receiver refuses
	// what tells of something that happened once it is older than the retention, and versions
	// hold back states. So such a duplicate has no effect. A receiver without these rules
	// must remember for longer by the horizon.
	RetentionMargin = 24 * time.Hour
)

// CheckRetention returns nil if markers that are kept for retention outlast a sender that
// may send an event again until reach after its first attempt. Otherwise its error says
// which retention would. The retention must be at least the reach plus
// [RetentionMargin].
//
// reach is the longest time after which the sender may send the same event
// again without the receiver's owner knowing: for a sender of this module not
// its retry horizon alone but how far back it lets one redeliver, replay or
// resume (Retention.Reach of package sender).
func CheckRetention(retention, reach time.Duration) error {
	const longest = 1<<63 - 1 - RetentionMargin
	switch {
	case reach < 0:
		return fmt.Errorf("%w: the reach is %s: it must not be negative", ErrInvalid, reach)
	case reach > longest:
		return fmt.Errorf("%w: the reach is %s: no retention outlasts it; it must be at most %s",
			ErrInvalid, reach, longest)
	case retention < reach+RetentionMargin:
		return fmt.Errorf("%w: a retention of %s is too short for a reach of %s: "+
			"it must be at least %s (the reach and a margin of %s), or a late duplicate is applied again",
			ErrInvalid, retention, reach, reach+RetentionMargin, RetentionMargin)
	}
	return nil
}
