package sender

import "context"

// Outbox persists events. Publisher uses it.
type Outbox[Tx any] interface {
	// PublishTx persists drafts in tx, in their order, and returns a Ref for
	// each. It is one round trip, and locks nothing but the version rows of the
	// drafts' objects and their idempotency keys. It never begins, ends or
	// savepoints tx, and keeps no reference to it. Nothing is visible to others,
	// and nothing is sent, unless tx commits; once it has committed, the event is
	// durable.
	//
	// A draft without a version gets the object's last version + 1, or more: see
	// dispatch.Store.Prune. One with a version that does not exceed the last is refused with
	// a *VersionError. A draft whose (KeyScope, Key) is stored already changes nothing, the
	// version included. With the same KeyHash its Ref is the first one's with Duplicate set;
	// with another KeyHash it is refused with ErrIdempotencyKey. A draft whose Subscriber or
	// Subscription is not registered is refused with ErrNotFound. With IfSubscriberExists, a
	// draft whose Subscriber is not registered is dropped instead: nothing of it is written,
	// no statement fails, and its Ref has Dropped set alone. The other drafts are persisted.
	//
	// On any error the caller must roll tx back: some drafts may have been
	// written in it. A conflict that the database resolves by aborting comes back
	// matching ErrRetryTx. A transaction that would not be durable is refused
	// with ErrUnfit.
	PublishTx(ctx context.Context, tx Tx, drafts []Draft) ([]Ref, error)

	// InTx runs fn in a transaction that commits if fn returns nil and rolls back
	// if it returns an error, panics or ends its goroutine. An error that matches ErrRetryTx is
	// retried a few times, so fn may run more than once. Transactions of this store in one process
	// take turns in the order of their calls where the database has a single writer. There a call
	// inside fn that would wait for fn's own end is refused at once, if the store can tell.
	InTx(ctx context.Context, fn func(tx Tx) error) error

	// Wake hints to the dispatchers of this process that something may be due.
	Wake()
}

// Store is what a Registry needs of a database: it keeps subscribers, their subscriptions,
// and their signing secrets, which are sealed. The comments of the methods are the
// contract, here as in the Stores of dispatch, history, replay and feed. Package storetest
// checks it. Package rules has the decisions that every store runs on its rows. Tx is the
// transaction of the producer's database driver.
//
// All methods are safe for concurrent use, by any number of processes. A method that
// returns an error has changed nothing, unless it says otherwise. A store keeps no slice
// and no map that a caller has given, and returns none that it keeps. The values in a
// dispatch.Claimed are shared, and only read. Times are those of the database's clock, in
// microseconds or finer. The caller has validated ids, URLs and filters.
type Store[Tx any] interface {
	Outbox[Tx]
	SealingStore

	// CreateSubscriberTx stores a subscriber with its sealed secrets, or returns
	// ErrExists if the id is, or was, in use: then tx goes on.
	CreateSubscriberTx(ctx context.Context, tx Tx, s Subscriber, secrets []SealedSecret) error

	// SubscriberTx returns a subscriber, or ErrNotFound.
	SubscriberTx(ctx context.Context, tx Tx, id string) (Subscriber, error)

	// SubscriberKeyringTx returns a subscriber's sealed secrets, or ErrNotFound.
	SubscriberKeyringTx(ctx context.Context, tx Tx, id string) (SealedKeyring, error)

	// CreateSubscriptionTx stores an active subscription. It gets the events that are
	// committed after it, and none older. Whether it gets the events that its own transaction
	// published before it is left open. ErrNotFound: no such subscriber. ErrExists: the id is
	// in use, or was and is not pruned. ErrExists also: the subscription is Implicit, and its
	// subscriber has an implicit one of the same URL that is neither closing nor deleted. If
	// calls are concurrent, one creates it; the others wait for its end.
	CreateSubscriptionTx(ctx context.Context, tx Tx, s Subscription) error

	// SubscriptionTx returns a subscription that is not deleted, or ErrNotFound. An implicit
	// one that is closing is found by its ID alone.
	SubscriptionTx(ctx context.Context, tx Tx, key SubscriptionKey) (Subscription, error)

	// SubscriptionsTx lists subscriptions that are not deleted, implicit ones too, oldest
	// first. It returns up to limit of them, after the one with the id after, which may be
	// deleted since; "" is the beginning. If subscriber is not empty, it lists that
	// subscriber's alone. ErrNotFound: there never was one with the id after, or it was
	// pruned.
	SubscriptionsTx(ctx context.Context, tx Tx, subscriber, after string, limit int) ([]Subscription, error)

	// UpdateSubscriptionTx stores the URL, the EventTypes, the Filter, the Description and
	// the Settings of a subscription. Attempts that are claimed later go to the new URL under
	// the new settings. Deliveries that were made stay. The new filter holds for events that
	// are expanded later. A type that is asked for anew holds for events that are committed
	// later. ErrNotFound: no such subscription.
	UpdateSubscriptionTx(ctx context.Context, tx Tx, s Subscription) error

	// HoldSubscriptionTx makes an active subscription paused or disabled, or a
	// paused one disabled, for a reason (DisabledReason). From the commit on none
	// of its deliveries is claimed, and the live ones read as held; attempts in
	// flight are left to end. If it has the status already nothing is changed.
	// ErrNotFound; ErrStatus: it is closing, or disabled and to be paused. The cost
	// does not depend on the backlog.
	HoldSubscriptionTx(ctx context.Context, tx Tx, id string, status SubscriptionStatus, reason string) error

	// ResumeSubscriptionTx makes a paused or disabled subscription active. Its live
	// deliveries of events that Resume takes are due at once, and start their schedules anew,
	// while their attempt numbers go on. The others read as cancelled from the commit on,
	// except for an attempt in flight that succeeds. Events that are committed, and not
	// expanded yet, count among the held ones, whether the Filter will match them or not. The
	// failing time of a disabled one ends (Streak, FailingSince, Warned, WarnedAt). If it is
	// active already nothing is changed. ErrNotFound; ErrStatus: it is closing; a
	// *RetentionError, and nothing is changed, if r.NotBefore is not zero and an event that
	// would be sent was published before it. The cost does not depend on the backlog.
	ResumeSubscriptionTx(ctx context.Context, tx Tx, id string, r Resume) error

	// CloseSubscriptionTx begins a subscription's deletion. The subscription gets what was
	// committed before, and what tx has published before this call, but nothing later. Once
	// all of that has ended it is deleted. One that is paused or disabled is deleted at once.
	// If it is closing already nothing is changed. ErrNotFound: no such subscription.
	//
	// The call is the boundary, not the commit of tx, unless the database has a single
	// writer. Until tx has committed, others publish to the subscription as before.
	// An event that they commit after the call is accepted, and the subscription does
	// not get it: nobody waits for anybody else's transaction. A caller who makes the
	// call the last one in tx keeps that time short.
	CloseSubscriptionTx(ctx context.Context, tx Tx, id string) error

	// DeleteSubscriptionTx ends a subscription, at a cost that does not depend on its
	// backlog. It gets no new deliveries. Its live ones read as cancelled from the commit on.
	// The exception is an attempt in flight that succeeds: it makes its delivery delivered.
	// ErrNotFound: no such subscription.
	DeleteSubscriptionTx(ctx context.Context, tx Tx, id string) error

	// DeleteSubscriberTx deletes a subscriber: its subscriptions are closed, those that
	// another transaction is making included, and its secrets are destroyed once the last of
	// them is deleted. From the commit on it reads as not found, except to what is still to
	// be sent. Its id is never in use again. ErrNotFound: no such subscriber. Events that are
	// published to it while tx is open are accepted: see CloseSubscriptionTx.
	DeleteSubscriberTx(ctx context.Context, tx Tx, id string) error

	// SetSecretsTx replaces a subscriber's secrets, in their order, and raises the
	// keyring's version, if that is still version. Claims that follow the commit
	// name the new one. ErrConflict: it is another version; ErrNotFound: no such
	// subscriber.
	SetSecretsTx(ctx context.Context, tx Tx, subscriber string, version int64, secrets []SealedSecret) error

	// KeyringsTx lists the whole keyrings that have a secret with this Key, in the order of
	// the subscribers' numbers. It returns up to limit of them, after that of the subscriber
	// after; "" is the beginning. Its cost depends on the limit, and not on how many secrets
	// have another key. Keyrings of deleted subscribers are among them until they are
	// destroyed, and the subscriber after may be deleted since. ErrNotFound: there never was
	// a subscriber after.
	KeyringsTx(ctx context.Context, tx Tx, key, after string, limit int) ([]SealedKeyring, error)

	// RewrapTx stores the Sealed and the Key of sealed, for the secret with its ID, and
	// reports whether it did. It changes nothing unless that secret is there and its sealed
	// bytes are still old. The subscriber may be deleted. The keyring's version stays, since
	// the secret is the same.
	RewrapTx(ctx context.Context, tx Tx, subscriber string, old []byte, sealed SealedSecret) (bool, error)
}

// Reader is an optional part of a Store whose InTx waits for other writers, on a database
// where reading does not. A Registry reads through it, and so does jobs.Jobs if the Store of
// jobs has it. A status is then read while somebody else writes for long.
type Reader[Tx any] interface {
	// InReadTx runs fn once, in a transaction that only reads, and ends it. It waits for no
	// transaction that writes. fn sees what was committed when it began to read, and must
	// not write.
	InReadTx(ctx context.Context, fn func(tx Tx) error) error
}

// SubscriptionKey names a subscription by its ID, or the implicit one of a subscriber by
// its origin.
type SubscriptionKey struct {
	ID string

	Subscriber string
	Origin     string // the URL of the implicit subscription; if it is given ID is not

	// ToChange has nobody else change the subscription until the end of the transaction, so
	// that a caller who stores it again undoes no other change. It is given with ID.
	ToChange bool
}
