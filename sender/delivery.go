package sender

import "time"

// Status is the status of a delivery.
type Status string

const (
	// StatusPending: no attempt has ended yet.
	StatusPending Status = "pending"
	// StatusAwaitingRetry: the last attempt failed, and another will be made.
	StatusAwaitingRetry Status = "awaiting_retry"
	// StatusDelivered: an attempt was answered with 2xx in time.
	StatusDelivered Status = "delivered"
	// StatusDeadLettered: the attempts are exhausted, or a dead letter has held it back for too
	// long: see Settings.HoldDead. Body and history are kept.
	StatusDeadLettered Status = "dead_lettered"
	// StatusHeld: it is not attempted while its subscription is paused or disabled.
	StatusHeld Status = "held"
	// StatusCancelled: it was not delivered, and never will be: its subscription
	// was deleted, was resumed without it, or its event's body was redacted.
	StatusCancelled Status = "cancelled"
	// StatusSuperseded: it was not delivered, because a newer version of its object
	// came, and its subscription wants the latest alone: see OrderLatest. It can be
	// redelivered and replayed.
	StatusSuperseded Status = "superseded"
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
	ClassBlocked     Class = "blocked"     // the address, or an event's own URL, is not one that may be called
	ClassInterrupted Class = "interrupted" // our own process was lost; whether the request arrived is not known
	ClassProtocol    Class = "protocol"    // the answer is not HTTP
)

// Attempt is one POST of a delivery, as recorded.
type Attempt struct {
	Number     int
	StartedAt  time.Time // by the database's clock; early by as long as the step took that claimed it
	Duration   time.Duration
	StatusCode int    // 0: no answer
	Class      Class  // "" for success
	Error      string // what went wrong, for people; "" for success
	Snippet    []byte // the beginning of the answer's body
	Headers    Headers
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
	Body           []byte    // as posted, or before the first attempt as published; in the answer of Delivery only
	Attempts       []Attempt // oldest first, all or some; in the answer of Delivery only
	Redacted       bool      // its event's body was removed: it is nil, and so are the attempts' snippets and headers
	LastErrorClass Class     // of the last attempt; "" if there is none or it succeeded
	LastStatusCode int       // that the last attempt was answered with; 0: none, or no attempt
}
