package signing

// ReplayDefence says how a scheme's signature defends against a replay attack, in which
// an attacker sends a captured request again. A time window is never the whole defence:
// inside it, and against duplicates, deduplication is needed.
type ReplayDefence uint8

const (
	// DedupAlone: the signature covers no time. A captured request stays valid for as
	// long as the secret is used. For that long, everything rests on deduplication by
	// signed bytes: a receiver must replace the secret before it prunes the markers of
	// requests that the secret has signed.
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
