package sender

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/surehook/surehook/sender/filter"
)

// Operator is the id of the built-in subscriber whose subscriptions get the
// events of all subscribers.
const Operator = "sub_operator"

// SubscriptionStatus is the status of a subscription.
type SubscriptionStatus string

// The statuses of subscriptions.
const (
	// SubscriptionActive: its deliveries are attempted.
	SubscriptionActive SubscriptionStatus = "active"
	// SubscriptionPaused: somebody has paused it. Its deliveries are held.
	SubscriptionPaused SubscriptionStatus = "paused"
	// SubscriptionDisabled: it failed for too long, or its endpoint has stopped it (see
	// GoneStops), or the operator has disabled it. Its deliveries are held.
	SubscriptionDisabled SubscriptionStatus = "disabled"
	// SubscriptionClosing: it is being deleted. It gets what was committed before,
	// and nothing later.
	SubscriptionClosing SubscriptionStatus = "closing"
)

// Subscriber is an addressee of events: the owner of subscriptions and of one signing
// secret.
type Subscriber struct {
	ID        string
	CreatedAt time.Time
}

// Subscription is a subscriber's registered callback URL with its filter.
type Subscription struct {
	ID         string
	Subscriber string
	URL        string
	// EventTypes are what it asks for: exact types, "prefix.*" for all types that begin with
	// "prefix.", or "*". There are none if the stored types cannot be read: the subscription
	// then goes on as before.
	EventTypes []string
	// Filter says which events of these types it gets, by their content; nil: all of them.
	// It gets events that are addressed to it alone, whatever their content.
	Filter      *filter.Filter
	Description string
	Settings    Settings
	CreatedAt   time.Time

	// Implicit: nobody registered it; it stands for the callback URLs of one origin,
	// which is its URL. It asks for no type, and gets what is addressed to it: see
	// Registry.Callback. Lists leave it out unless they are asked for it.
	Implicit bool

	// The store fills in the fields below.

	Status         SubscriptionStatus
	DisabledAt     time.Time // zero unless it is disabled
	DisabledReason string    // for people; "" unless it is disabled
	Health         Health
	Backlog        int64 // deliveries that have not ended; cancelled ones count until they are swept
	DeadLettered   int64
}

// Matches is the one rule of which subscription gets which event. An event is addressed to
// one subscription alone; or to a subscriber, whose subscriptions and the operator's get
// it if they ask for its type; or to everyone who asks for its type. The event of a notice
// goes to the subscription that it tells of only if that one asks for exactly its type,
// and not by "prefix.*" or "*". Otherwise an endpoint that fails would get the news that
// it fails, and fail at that, too. A subscription with a Filter gets only the events that
// match that as well.
func Matches(s Subscription, eventType, toSubscriber, toSubscription, about string) bool {
	if toSubscription != "" {
		return s.ID == toSubscription
	}
	if toSubscriber != "" && s.Subscriber != toSubscriber && s.Subscriber != Operator {
		return false
	}
	byName := about != "" && s.ID == about
	for _, asked := range s.EventTypes {
		if asked == eventType || !byName && TypeMatches(asked, eventType) {
			return true
		}
	}
	return false
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
	Recent       Recent    // its last outcomes; the store keeps it, whatever is decided
}

// Lane divides the subscriptions by what is known of their endpoints. Each lane
// has slots of its own.
type Lane uint8

const (
	// LaneNew has the subscriptions that have not answered yet. It is a lane
	// of its own so that the first delivery of a new subscriber does not wait for
	// the timeouts of those that fail.
	LaneNew Lane = iota
	// LaneProven has the subscriptions whose endpoints answer fast.
	LaneProven
	// LaneProbation has the slow and failing subscriptions.
	LaneProbation
	// Lanes is their number.
	Lanes = 3
)

// Resume says which held deliveries a resumed subscription takes: all, none, or those of
// events published at Since or later. An event that was published before Since can be
// taken too if it stands behind one of these in the feed: its transaction committed late,
// or it waited for a large event about its object.
type Resume struct {
	None  bool
	Since time.Time

	// NotBefore makes a resume fail if it would send an event that was published before that
	// time. Zero: no event is too old.
	NotBefore time.Time
	// Force has a Registry set no NotBefore of its own. Stores do not look at it.
	Force bool
}

// SubscriptionQuery selects subscriptions that are not deleted. Empty fields
// select all. The deliveries of a deleted one are kept for a time, and are found by its id.
type SubscriptionQuery struct {
	Subscriber string // id
	Status     SubscriptionStatus
	Implicit   bool   // implicit ones too
	ID         string // the one with it
	URL        string // those with this text in their URLs, in whatever case
	// Failing selects those that are active, and have failed since their last success, and
	// lists those that have failed for longest first.
	Failing bool
	Cursor  string // of the page before
	Limit   int    // 1 to 200; 0 means 50
}

// TypeMatches tells whether a pattern (an exact type, "prefix.*" or "*") asks for an event
// type.
func TypeMatches(asked, eventType string) bool {
	if asked == "*" || asked == eventType {
		return true
	}
	prefix, ok := strings.CutSuffix(asked, "*")
	return ok && strings.HasPrefix(eventType, prefix)
}

// Settings and ClientCertificate redact themselves where they are printed or logged. A
// handler that writes JSON does not ask what lies deeper within a value, so the types that
// hold them say what they look like. Their text is that of %+v, which does ask.

// LogValue shows the settings as Settings.LogValue does.
func (s Subscription) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprint(s))
}

// Format writes all fields with their names, whatever the verb: with one that does not
// suit a field, fmt would write that without asking it.
func (s Subscription) Format(f fmt.State, _ rune) {
	type plain Subscription
	_, _ = fmt.Fprintf(f, "%+v", plain(s))
}
