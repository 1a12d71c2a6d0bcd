package signing

// ReplayDefence says what a scheme's signature does against a replay attack:
// somebody sends again what they have captured. The time window alone is never all
// of the defence: inside it, and against duplicates, deduplication is.
type ReplayDefence uint8

const (
	// DedupAlone: the signature covers no time. A captured request stays valid for as
	// long as the secret is used, and everything rests on deduplication by what is
	// covered, for as long. Whoever prunes what they have seen must have replaced the
	// secret since.
	DedupAlone ReplayDefence = iota
	// TimeWindow: the signature covers a time, and a captured request is refused once
	// that lies outside the tolerance. Until then deduplication stops it.
	TimeWindow
)

// replayDefender is a [Scheme] that says what its signature does against replay
// attacks.
type replayDefender interface{ ReplayDefence() ReplayDefence }

// ReplayDefence is [TimeWindow].
func (s TimestampBody) ReplayDefence() ReplayDefence { return TimeWindow }

// ReplayDefence is [TimeWindow].
func (s StandardWebhooks) ReplayDefence() ReplayDefence { return TimeWindow }
