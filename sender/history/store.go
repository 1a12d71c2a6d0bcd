package history

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// Store answers questions about deliveries and events, and redacts. History uses it.
// A list looks at up to about MaxExamined candidates; then it returns what it has found,
// if anything, and a cursor to go on from. A malformed cursor is ErrInvalid.
type Store interface {
	// Delivery returns a delivery with its event's body and the attempts that the query
	// selects, oldest first, or ErrNotFound. It reads no others.
	Delivery(ctx context.Context, id string, q AttemptQuery) (sender.Delivery, error)

	// Deliveries lists deliveries, without bodies and attempts, those of the
	// newest events first, and the cursor of the page that follows ("" if none
	// does). A malformed cursor is ErrInvalid.
	Deliveries(ctx context.Context, q DeliveryQuery) ([]sender.Delivery, string, error)

	// Redeliver makes a delivery due at once. One that is live or dead-lettered
	// starts its schedule anew: its horizon, its number of tries and what was spared,
	// while the attempt numbers go on. One that is delivered gets a single attempt
	// (Live.Single); if that is lost or not counted, the one in its place is a single one too.
	// While an attempt is in flight no second one is started. One whose subscription has an
	// order comes into the line of its object: see dispatch.Store.Step.
	// ErrNotFound; ErrCancelled if it was cancelled; ErrRedacted; a *RetentionError if
	// notBefore is not zero and its event was published before it.
	Redeliver(ctx context.Context, id string, notBefore time.Time) error

	// PassOver lets an object's later versions go on that a dead letter holds back (see
	// sender.Settings.HoldDead). It stays a dead letter. ErrNotFound; sender.ErrStatus if it
	// holds nothing back; a *RetentionError if notBefore is not zero and the event of the
	// first of them was published before it.
	PassOver(ctx context.Context, id string, notBefore time.Time) error

	// Redact removes the bodies of the events that p names, and the snippets and headers of
	// their attempts. One call is a batch of up to about p.Limit events, in one or a few
	// short transactions, beside any number of other processes. Only events that were
	// committed before the first batch count, expanded or not. All else of them stays, and
	// their deliveries read as Redacted. Live ones, held ones too, read as cancelled from the
	// commit on, and are not claimed. One whose attempt in flight succeeds is delivered. One
	// that was delivered before it was sent again stays delivered. An event that was not
	// expanded gets no more deliveries. An event that was redacted before is not counted.
	//
	// It begins with an empty p.Cursor and goes on with Redacted.Cursor until that is empty.
	// If it is broken off it can begin anew. ErrNotFound: p.Subscriber never was one's id. A
	// malformed cursor is ErrInvalid.
	Redact(ctx context.Context, p RedactParams) (Redacted, error)

	// Notices lists notices, the newest first, and the cursor of the page that
	// follows ("" if none does). A malformed cursor is ErrInvalid.
	Notices(ctx context.Context, q NoticeQuery) ([]sender.Notice, string, error)

	// AcknowledgeNotice marks a notice as read by somebody, at the database's time,
	// and returns it. One that is acknowledged already stays as it is. ErrNotFound:
	// there is none of that id, or, if subscriber is not empty, it is for another.
	AcknowledgeNotice(ctx context.Context, id, subscriber string) (sender.Notice, error)

	// Events lists events, the newest first, and the cursor of the page that follows ("" if
	// none does). They come without bodies unless the query has Bytes. Every event that was
	// committed before the first page was asked for is listed once, expanded or not.
	Events(ctx context.Context, q EventQuery) ([]sender.StoredEvent, string, error)

	// Event returns an event with its body, or ErrNotFound.
	Event(ctx context.Context, id string) (sender.StoredEvent, error)

	// Subscriptions lists subscriptions that are not deleted, oldest first, and the
	// cursor of the page that follows ("" if none does).
	Subscriptions(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error)

	// Counts returns the totals. Its cost depends neither on the backlog nor on the
	// history.
	Counts(ctx context.Context) (Counts, error)

	// Rollups returns those of the minutes that began at from or later and before
	// to, oldest first, and leaves out those in which nothing happened. The result has at
	// once what was committed through this store. It has what other processes have
	// committed once they have written that: with the transaction, or by their next Sweep.
	Rollups(ctx context.Context, from, to time.Time) ([]Rollup, error)

	// HourRollups returns a Rollup for each hour that began at from or later and before to,
	// oldest first: those of its minutes merged, with the hour's beginning as Minute. from
	// and to are whole hours. For an hour that Sweep has merged it reads one row.
	HourRollups(ctx context.Context, from, to time.Time) ([]Rollup, error)

	// SubscriptionRollups returns the figures of the subscriptions with these ids, which are
	// distinct, in the hours that began at from or later and before to. They are sorted by
	// subscription in the order of the ids, then by hour, oldest first. It leaves out hours
	// in which nothing happened, and ids that nobody has. The result has at once what was
	// committed through this store, and what others have committed once they have written
	// that. It reads the rows of these subscriptions and hours alone: at most one for each
	// subscription, hour and process.
	SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) ([]SubscriptionRollup, error)

	// DeadLetterGroups groups the newest dead letters, up to about MaxExamined of them, or as
	// many of the query's subscription or subscriber. Groups with more come first; equal ones
	// are sorted by subscription, the older first, then by class and status code. A query
	// that names what nobody has finds nothing.
	DeadLetterGroups(ctx context.Context, q DeadLetterQuery) (DeadLetterGroups, error)

	// NoticeGroups groups up to MaxExamined of the newest notices that nobody has
	// acknowledged. If subscriber is not empty, it groups those of the subscriber's newest
	// MaxExamined notices that nobody has acknowledged. The group with the newest notice
	// comes first.
	NoticeGroups(ctx context.Context, subscriber string) (NoticeGroups, error)

	// AcknowledgeNotices marks up to limit notices of a group as read, in a transaction, and
	// returns how many. It takes those that were made up to g.Last and that nobody has
	// acknowledged.
	AcknowledgeNotices(ctx context.Context, g NoticeGroup, limit int) (int, error)

	// Kinds tells the kinds of what has a text as its id, in the order of the constants;
	// deleted subscriptions and subscribers count. FoundObject is among them if there was an
	// event about object, whose type may be empty. It looks up one row for each kind.
	Kinds(ctx context.Context, id string, object sender.Object) ([]FoundKind, error)

	// Facts returns what explains the state of a delivery, or ErrNotFound. Its cost
	// does not grow with the backlog. Its attempts are the first one, the first that
	// succeeded and the last one, each once, oldest first.
	Facts(ctx context.Context, id string) (Facts, error)
}

// RedactParams names events: those about an object, or those that are addressed to
// a subscriber, registered or deleted. One of the two is given.
type RedactParams struct {
	Object     sender.Object
	Subscriber string

	Cursor string // of the batch before; "": it begins
	Limit  int    // at least 1
}

// Redacted counts what a batch has redacted.
type Redacted struct {
	Events     int
	Deliveries int // that it has ended; those in flight end with their attempts

	Cursor string // of the batch that follows; "": it is done
}
