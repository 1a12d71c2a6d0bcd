package dispatch

import (
	"time"

	"github.com/surehook/surehook/sender"
)

// Result is the result of an attempt.
type Result struct {
	Key        DeliveryKey
	Token      int64
	Number     int
	StartedAt  time.Time // on the database's clock
	Published  time.Time // when the event was published, for the rollups; zero: its latency is not counted
	Duration   time.Duration
	Class      sender.Class
	StatusCode int
	Error      string
	Snippet    []byte
	Headers    sender.Headers
	RetryAfter time.Duration // the pause that the answer asked for; 0: none
	Chance     float64       // in [0,1), for the jitter of the next delay
	// OwnNetwork tells that the attempt failed because our own network fails, or our own
	// machine: it had no resources left for a connection, such as file descriptors or local
	// ports, it has no certificates of authorities, or the attempt panicked.
	OwnNetwork bool
	// ProxyFailed tells that the attempt failed because the operator's proxy fails: it
	// hangs, refuses, or wants other credentials.
	ProxyFailed bool
	// ClosedIdle tells that the attempt was made on a connection that had been used before,
	// and that the server closed it before the first byte of an answer. Most likely the
	// server was closing it as idle when the request was sent. Or the server has said over
	// HTTP/2 that it has not processed the request (RFC 9113, section 8.7).
	ClosedIdle bool
}

// Live is the part of a live delivery's row that decisions need.
type Live struct {
	Key    DeliveryKey
	Number int       // of the attempt that was claimed last
	Tries  int       // attempts of the present schedule, the one in hand included
	First  time.Time // when the first attempt of the present schedule was claimed
	Single bool      // a delivered delivery is redelivered: one attempt, made again only if the endpoint is not to blame
	// Stood is for how long the schedule has stood still: because our own network, or the
	// operator's proxy, failed, because a server closed an idle connection, or because the
	// delivery was put off before an attempt.
	Stood  time.Duration
	Notice bool // its event was made of a notice
	Spared bool // Decision.Spared of the attempt before this one
	// HoldTries and HoldFor are those of its subscription's Settings, under
	// sender.OrderObject; 0: the schedule alone says when it ends.
	HoldTries int
	HoldFor   time.Duration
	// Own are its subscription's Settings, if they have a policy of their own; nil: they have
	// none. Nobody may change them.
	Own *sender.Settings
	// GoneStops tells that its subscription chose sender.GoneStops, and is not closing.
	GoneStops bool
}

// Decision is the next state of a delivery and of its subscription.
type Decision struct {
	Status sender.Status // StatusDelivered, StatusAwaitingRetry or StatusDeadLettered
	Due    time.Time     // of the next attempt, if StatusAwaitingRetry
	Health sender.Health // to store if it differs from the one given

	// Uncounted takes the attempt out of the schedule: the next one has the same
	// Live.Tries. Stands is added to Live.Stood.
	Uncounted bool
	Stands    time.Duration

	// Spared, when StatusAwaitingRetry, tells that this attempt was forgiven because its
	// server closed an idle connection. No two attempts in a row are forgiven. The value
	// becomes the next attempt's Claimed.Spared and Live.Spared.
	Spared bool

	// Disable, if not empty, makes the subscription disabled, and says why.
	Disable string
	// Notices are stored with the decision. The store fills in their subjects: subscriber,
	// subscription and delivery.
	Notices []sender.Notice
}
