package sender

import "time"

// Operator is the id of the built-in subscriber whose subscriptions get the
// events of all subscribers.
const Operator = "sub_operator"

// SubscriptionStatus is a subscription's.
type SubscriptionStatus string

// The statuses of subscriptions.
const (
	// SubscriptionActive: its deliveries are attempted.
	SubscriptionActive SubscriptionStatus = "active"
	// SubscriptionPaused: somebody has paused it. Its deliveries are held.
	SubscriptionPaused SubscriptionStatus = "paused"
	// SubscriptionDisabled: it failed for too long, or the operator has disabled
	// it. Its deliveries are held.
	SubscriptionDisabled SubscriptionStatus = "disabled"
	// SubscriptionClosing: it is being deleted. It gets what was committed before,
	// and nothing later.
	SubscriptionClosing SubscriptionStatus = "closing"
)

// Subscriber is who is told: the owner of subscriptions and of one signing
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
	// EventTypes are what it asks for: exact types, "prefix.*" for all types that
	// begin with "prefix.", or "*". There are none if what is stored cannot be read;
	// it then goes on to get what it got.
	EventTypes  []string
	Description string
	Settings    Settings
	CreatedAt   time.Time

	// Implicit: nobody registered it; it stands for the callback URLs of one origin,
	// which is its URL. It asks for no type, and gets what is addressed to it: see
	// Registry.Callback. Lists leave it out unless they are asked for it.
	Implicit bool

	// What follows is the store's to say.

	Status         SubscriptionStatus
	DisabledAt     time.Time // zero unless it is disabled
	DisabledReason string    // for people; "" unless it is disabled
	Health         Health
	Backlog        int64 // deliveries that have not ended; cancelled ones count until they are swept
	DeadLettered   int64
}

// Matches is the one rule of which subscription gets which event. The event is
// addressed to one subscription alone; or to a subscriber, whose subscriptions
// and the operator's get it if they ask for its type; or to everyone who asks
// for its type. The subscription that the event tells of, if it is a notice's, gets
// it only if it asks for exactly its type, and not by "prefix.*" or "*": else an
// endpoint that fails would be told that it fails, and fail with that, too.
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

// Patterns lists what a subscription can ask for to get an event type: the type
// itself, "a.b.*", "a.*" and "*" for "a.b.c". A store that keeps each asked-for
// pattern in an indexed row finds the subscriptions that match by looking these
// up, at a cost that does not depend on how many do not.
func Patterns(eventType string) []string {
	patterns := []string{eventType}
	for i := len(eventType) - 1; i > 0; i-- {
		if eventType[i] == '.' {
			patterns = append(patterns, eventType[:i+1]+"*")
		}
	}
	return append(patterns, "*")
}
