package sender

import (
	"context"
	"time"
)

// QueryStore answers what an operator asks. History uses it. A list looks at up to
// about MaxExamined candidates; then it returns what it has found, if anything,
// and a cursor to go on from. A malformed cursor is ErrInvalid.
type QueryStore interface {
	// Events lists events without bodies, the newest first, and the cursor of the
	// page that follows ("" if none does).
	Events(ctx context.Context, q EventQuery) ([]StoredEvent, string, error)

	// Event returns an event with its body, or ErrNotFound.
	Event(ctx context.Context, id string) (StoredEvent, error)

	// Subscriptions lists subscriptions that are not deleted, oldest first, and the
	// cursor of the page that follows ("" if none does).
	Subscriptions(ctx context.Context, q SubscriptionQuery) ([]Subscription, string, error)

	// Counts returns how many there are of what. Its cost depends neither on the
	// backlog nor on the history.
	Counts(ctx context.Context) (Counts, error)

	// Rollups returns those of the minutes that began at from or later and before
	// to, oldest first, and leaves out those in which nothing happened. What was
	// committed through this store is among them at once, and what other processes have
	// committed once that is written: with the transaction, or by their next Sweep.
	Rollups(ctx context.Context, from, to time.Time) ([]Rollup, error)

	// Facts returns what explains the state of a delivery, or ErrNotFound. Its cost
	// does not grow with the backlog.
	Facts(ctx context.Context, id string) (Facts, error)
}
