package history

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// MaxCountedNotices is how many notices are counted that nobody has acknowledged.
const MaxCountedNotices = 1000

// Counts are the totals at one time.
type Counts struct {
	At time.Time // the database's

	// Live is how many deliveries of active and closing subscriptions have not
	// ended; Held, of paused and disabled ones. Deliveries that a resume has skipped
	// count until they are swept.
	Live int64
	Held int64
	// DeadLettered is how many deliveries are, those of deleted subscriptions too.
	DeadLettered int64

	// Subscriptions that are not deleted, by status. A status of none is left out.
	Subscriptions map[sender.SubscriptionStatus]int64

	// Unexpanded is how many committed events are not expanded whole.
	Unexpanded int64

	// Notices is how many nobody has acknowledged. A store that has to count them stops at
	// MaxCountedNotices: if there are as many, there may be more.
	Notices int64

	// OldestDue is since when the oldest delivery is due that may be attempted now,
	// and is not in flight; zero if there is none. If more than a few hundred
	// subscriptions have some, it is the oldest of those that have waited longest
	// for a turn.
	OldestDue time.Time

	// Lanes have Live and OldestDue of the subscriptions in each lane, by its number.
	// Deliveries on probation wait for slow and failing endpoints; those in the other
	// lanes wait for the dispatchers.
	Lanes [sender.Lanes]LaneCounts
}

// LaneCounts are the Counts of the subscriptions in one lane.
type LaneCounts struct {
	Live      int64
	OldestDue time.Time
}

// Due notes that a delivery of a lane has been due since a time. Stores call it.
func (c *Counts) Due(lane sender.Lane, since time.Time) {
	l := &c.Lanes[lane]
	l.OldestDue, c.OldestDue = earlier(l.OldestDue, since), earlier(c.OldestDue, since)
}
