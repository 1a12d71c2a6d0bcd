package sender

import (
	"time"
)

// NoticeKind is what a notice is about. It is also the type of the event that it
// is published as.
type NoticeKind string

// The kinds of notices.
const (
	// NoticeDeadLettered: the attempts of a delivery are exhausted, or a dead letter has held it
	// back for too long, and perhaps later versions of its object too.
	NoticeDeadLettered NoticeKind = "delivery.dead_lettered"
	// NoticeFailing: a subscription has been failing for 50, 75 or 90 % of the time
	// after which it is disabled.
	NoticeFailing NoticeKind = "subscription.failing"
	// NoticeDisabled: a subscription was disabled, because it failed for too long, or because
	// its endpoint has stopped it: see GoneStops.
	NoticeDisabled NoticeKind = "subscription.disabled"
	// NoticeNetwork: our own network seems to be down, or our own machine fails attempts,
	// because it has no descriptors or local ports left, or no certificates of authorities.
	NoticeNetwork NoticeKind = "network.unreachable"
	// NoticeProxy: one of the operator's proxies is failing.
	NoticeProxy NoticeKind = "proxy.failing"
	// NoticeReplayFinished: a replay has come to its end.
	NoticeReplayFinished NoticeKind = "replay.finished"
)

// Notice is something that an operator or an owner must learn. It is stored in the
// transaction of what caused it, and kept until somebody has acknowledged it. It is also
// published as an event, to the owner's and the operator's subscriptions that ask for its
// type: about an object of type "surehook.delivery", "surehook.subscription",
// "surehook.replay" or "surehook.network". The subscription that it tells of does not get
// it, unless that subscription asks for exactly this type.
type Notice struct {
	ID           string
	Kind         NoticeKind
	Subscriber   string // the addressee: the owner's id, or Operator, who is told of all
	Subscription string // the ids of what it is about; "" if it is about none
	Delivery     string
	Replay       string
	Detail       string // for people
	Percent      int    // of NoticeFailing: 50, 75 or 90
	CreatedAt    time.Time

	AcknowledgedAt time.Time // zero: nobody has
	NotifiedAt     time.Time // when a Notifier accepted it; zero: none has
}
