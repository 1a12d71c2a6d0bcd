package sender

import "time"

// Status is a delivery's.
type Status string

const (
	// StatusPending: no attempt has ended yet.
	StatusPending Status = "pending"
	// StatusAwaitingRetry: the last attempt failed, and another will be made.
	StatusAwaitingRetry Status = "awaiting_retry"
	// StatusDelivered: an attempt was answered with 2xx in time.
	StatusDelivered Status = "delivered"
	// StatusDeadLettered: the attempts are exhausted. Body and history are kept.
	StatusDeadLettered Status = "dead_lettered"
	// StatusHeld: it is not attempted while its subscription is paused or disabled.
	StatusHeld Status = "held"
	// StatusCancelled: it was not delivered, and never will be: its subscription
	// was deleted, was resumed without it, or its event's body was redacted.
	StatusCancelled Status = "cancelled"
)

// Class says how an attempt failed. The empty class is success.
type Class string

// The classes of attempts.
const (
	ClassNone        Class = ""            // answered with 2xx in time
	ClassDNS         Class = "dns"         // the host's name was not resolved
	ClassConnect     Class = "connect"     // no connection
	ClassTLS         Class = "tls"         // the TLS handshake or the certificate
	ClassTimeout     Class = "timeout"     // not answered whole within the attempt's deadline
	ClassReset       Class = "reset"       // the connection broke before the answer was whole
	ClassStatus      Class = "status"      // answered with a status other than 2xx and 3xx
	ClassRedirect    Class = "redirect"    // answered with 3xx, which is never followed
	ClassBlocked     Class = "blocked"     // the address is not one that may be called
	ClassInterrupted Class = "interrupted" // our own process was lost; whether the request arrived is not known
	ClassProtocol    Class = "protocol"    // the answer is not HTTP
)

// Attempt is one POST of a delivery, as recorded.
type Attempt struct {
	Number     int
	StartedAt  time.Time
	Duration   time.Duration
	StatusCode int    // 0: no answer
	Class      Class  // "" for success
	Error      string // what went wrong, for people; "" for success
	Snippet    []byte // the beginning of the answer's body
	// NextAttemptAt is when another attempt was to follow; zero if none was.
	NextAttemptAt time.Time
}

// Delivery is one event on its way to one subscription.
type Delivery struct {
	ID             string
	Event          EventInfo
	Version        int64
	Subscriber     string // the id of the subscription's owner
	Subscription   string // its id
	URL            string // where it is posted: the subscription's, or the event's own
	Status         Status
	CreatedAt      time.Time // the event's
	AttemptCount   int
	NextAttemptAt  time.Time // zero: none is planned
	InFlight       bool      // an attempt is under way
	Body           []byte    // as posted; in the answer of Delivery only
	Attempts       []Attempt // oldest first; in the answer of Delivery only
	Redacted       bool      // its event's body was removed: it is nil, and so are the attempts' snippets
	LastErrorClass Class     // of the last attempt; "" if there is none or it succeeded
}

// Result is what came of an attempt.
type Result struct {
	Key        DeliveryKey
	Token      int64
	Number     int
	StartedAt  time.Time // on the database's clock
	Published  time.Time // when the event was, for the rollups; zero: its latency is not counted
	Duration   time.Duration
	Class      Class
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

// Health is what a subscription's row remembers of how its endpoint does.
type Health struct {
	Lane         Lane
	Streak       int       // failures since the last success
	FailingSince time.Time // the first of them; zero: none
	LastSuccess  time.Time // to the minute
	LastFailure  time.Time
	Warned       int       // percent of the way to being disabled that its owner was warned of; 0: none
	WarnedAt     time.Time // when; zero: none
}

// Decision is what becomes of a delivery and of its subscription.
type Decision struct {
	Status Status    // StatusDelivered, StatusAwaitingRetry or StatusDeadLettered
	Due    time.Time // when StatusAwaitingRetry: of the next attempt
	Health Health    // to store if it differs from the one given

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
	Notices []Notice
}
