package dedup

import (
	"fmt"
	"time"
)

const (
	// DefaultReach is how far back a sender of this module lets one redeliver, replay or
	// resume by default.
	DefaultReach = 28 * 24 * time.Hour

	// DefaultHorizon is for how long a sender of this module tries by default what it sends,
	// or sends again.
	DefaultHorizon = 72 * time.Hour

	// RetentionMargin is by how much a retention must exceed a reach and a horizon. The last
	// attempt can come later than both say. A sender that was down at that time, or whose
	// network was, makes it when that is over. The attempt then has its own deadline and five
	// minutes of signature window. Besides, the clock that marks and the clock that prunes
	// need not agree. All of this takes minutes, except the downtime, for which the margin
	// allows a day.
	RetentionMargin = 24 * time.Hour

	// DefaultRetention is how long a marker is kept by default: 32 days. An event that is
	// sent again at the end of the reach is tried until the end of the horizon.
	DefaultRetention = DefaultReach + DefaultHorizon + RetentionMargin
)

// CheckRetention returns nil if markers that are kept for retention outlast the sender's
// attempts. The sender may send an event again until reach after it was published, and
// then tries it until horizon after the first of these attempts. Otherwise its error says
// which retention would. The retention must be at least the sum of both and
// [RetentionMargin].
//
// reach is the longest time after which the sender begins to send the same event again
// without the receiver's owner knowing. A sender of this module lets one redeliver, replay
// and resume as far back as Retention.Reach of package sender says. horizon is that of its
// retries, and zero if it is not known, or if reach includes it.
func CheckRetention(retention, reach, horizon time.Duration) error {
	const longest = 1<<63 - 1 - RetentionMargin
	of, parts := fmt.Sprintf("a reach of %s", reach), "the reach"
	if horizon != 0 {
		of += fmt.Sprintf(" and a horizon of %s", horizon)
		parts += ", the horizon"
	}
	switch {
	case reach < 0:
		return fmt.Errorf("%w: the reach is %s: it must not be negative", ErrInvalid, reach)
	case horizon < 0:
		return fmt.Errorf("%w: the horizon is %s: it must not be negative", ErrInvalid, horizon)
	case reach > longest:
		return fmt.Errorf("%w: the reach is %s: no retention outlasts it; it must be at most %s",
			ErrInvalid, reach, longest)
	case horizon > longest-reach:
		return fmt.Errorf("%w: the horizon is %s: no retention outlasts it beside a reach of %s; it must be at most %s",
			ErrInvalid, horizon, reach, longest-reach)
	case retention < reach+horizon+RetentionMargin:
		return fmt.Errorf("%w: a retention of %s is too short for %s: "+
			"it must be at least %s (%s and a margin of %s), or a late duplicate is applied again",
			ErrInvalid, retention, of, reach+horizon+RetentionMargin, parts, RetentionMargin)
	}
	return nil
}
