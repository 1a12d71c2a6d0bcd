package dispatch

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// Result is what came of an attempt.
type Result struct {
	Key        DeliveryKey
	Token      int64
	Number     int
	StartedAt  time.Time // on the database's clock
	Published  time.Time // when the event was, for the rollups; zero: its latency is not counted
	Duration   time.Duration
	Class      sender.Class
	StatusCode int
	Error      string
	Snippet    []byte
	RetryAfter time.Duration // what the answer asked for; 0: nothing
	Chance     float64       // in [0,1), for the jitter of the next delay
	// OwnNetwork tells that the attempt failed because our own network does.
	OwnNetwork bool
	// ProxyFailed tells that the attempt failed because the operator's proxy does: it
	// hangs, refuses, or wants other credentials.
	ProxyFailed bool
	// ClosedIdle tells that the attempt was made on a connection that had been used
	// before, and that the server closed it before the first byte of an answer: most
	// likely it was closing it as idle when the request was sent.
	ClosedIdle bool
}

// Live is what the row of a delivery that is not at its end remembers for
// decisions.
type Live struct {
	Key    DeliveryKey
	Number int       // of the attempt that was claimed last
	Tries  int       // attempts of the present schedule, the one in hand included
	First  time.Time // when the first attempt of the present schedule was claimed
	Single bool      // one attempt that ends by itself only: a delivered one that is redelivered
	// Stood is for how long the schedule has stood still: because our own network, or the
	// operator's proxy, failed, or because a server closed an idle connection.
	Stood  time.Duration
	Notice bool // its event is that of a notice
	Spared bool // what the decision about the attempt before this one set
}

// Decision is what becomes of a delivery and of its subscription.
type Decision struct {
	Status sender.Status // StatusDelivered, StatusAwaitingRetry or StatusDeadLettered
	Due    time.Time     // when StatusAwaitingRetry: of the next attempt
	Health sender.Health // to store if it differs from the one given

	// Uncounted takes the attempt out of the schedule: the next one has the same
	// Live.Tries. Stands is added to Live.Stood.
	Uncounted bool
	Stands    time.Duration

	// Spared, when StatusAwaitingRetry, tells that this attempt was forgiven because
	// its server closed an idle connection: no two in a row are. It is the next
	// attempt's Claimed.Spared and Live.Spared.
	Spared bool

	// Disable, if not empty, makes the subscription disabled, and says why.
	Disable string
	// Notices are stored with the decision. The store fills in what they are
	// about: subscriber, subscription and delivery.
	Notices []sender.Notice
}
