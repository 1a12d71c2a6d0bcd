package sender

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// PublisherConfig adjusts a Publisher. A nil config and zero fields mean the
// defaults.
type PublisherConfig struct {
	// MaxBodyBytes bounds an event's body. The default is 1 MiB, which is also
	// what a receiver of this module takes.
	MaxBodyBytes int

	// Now is the clock of OccurredAt and of the ids. The default is time.Now.
	Now func() time.Time
}

// Publisher persists events: in the producer's transaction, so that an event
// commits with the change it reports or not at all, or in one of its own. It is
// safe for concurrent use.
type Publisher[Tx any] struct {
	store   Outbox[Tx]
	maxBody int
	now     func() time.Time
}

// NewPublisher returns a Publisher on a store. Tx is inferred from the store.
func NewPublisher[Tx any](store Outbox[Tx], cfg *PublisherConfig) (*Publisher[Tx], error) {
	var c PublisherConfig
	if cfg != nil {
		c = *cfg
	}
	var errs []error
	if store == nil {
		errs = append(errs, errors.New("sender: NewPublisher needs a store"))
	}
	if c.MaxBodyBytes < 0 {
		errs = append(errs, fmt.Errorf("sender: MaxBodyBytes is %d: it must be positive, or 0 for the default", c.MaxBodyBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p := &Publisher[Tx]{store: store, maxBody: c.MaxBodyBytes, now: c.Now}
	if p.maxBody == 0 {
		p.maxBody = 1 << 20
	}
	if p.now == nil {
		p.now = time.Now
	}
	return p, nil
}

// PublishTx persists an event in tx. It is sent if and only if tx commits; from
// then on it is durable. It locks nothing but the version row of the event's
// object, and the idempotency key if there is one.
//
// It returns ErrInvalidEvent, a *VersionError, ErrIdempotencyKey or ErrNotFound
// (an unknown Subscriber or Subscription): then nothing was written, and tx can go on.
// An unknown Subscriber is no error if Event.IfSubscriberExists is set: the event is
// dropped, and the Ref says so.
// On any other error the caller must roll back; one that matches ErrRetryTx asks for
// the transaction to be run again.
//
// Nothing tells the library of the caller's commit: the dispatcher finds the
// event when it polls. Wake, after the commit, or InTx bring the first attempt
// forward, and spare the database the looks: at ordinary rates they are half of what
// an event costs.
func (p *Publisher[Tx]) PublishTx(ctx context.Context, tx Tx, event Event) (Ref, error) {
	refs, err := p.PublishManyTx(ctx, tx, []Event{event})
	if err != nil {
		return Ref{}, err
	}
	return refs[0], nil
}

// PublishManyTx is PublishTx for many events, in one round trip. All are
// validated before the first is written; on every error but ErrInvalidEvent the caller
// must roll back, since those before the one that was refused may be written.
func (p *Publisher[Tx]) PublishManyTx(ctx context.Context, tx Tx, events []Event) ([]Ref, error) {
	drafts, err := p.drafts(events)
	if err != nil || len(drafts) == 0 {
		return nil, err
	}
	return p.store.PublishTx(ctx, tx, drafts)
}

// Publish persists an event in a transaction of its own. Once it returns without
// an error the event is durable, and the dispatchers of this process are awake.
func (p *Publisher[Tx]) Publish(ctx context.Context, event Event) (Ref, error) {
	refs, err := p.PublishMany(ctx, []Event{event})
	if err != nil {
		return Ref{}, err
	}
	return refs[0], nil
}

// PublishMany is Publish for many events: all are persisted, or none.
func (p *Publisher[Tx]) PublishMany(ctx context.Context, events []Event) ([]Ref, error) {
	drafts, err := p.drafts(events)
	if err != nil || len(drafts) == 0 {
		return nil, err
	}
	var refs []Ref
	err = p.InTx(ctx, func(tx Tx) (err error) {
		refs, err = p.store.PublishTx(ctx, tx, drafts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

// InTx runs fn in a transaction of the store's database, for the business change
// and its PublishTx together; commits if fn returns nil, else rolls back; and
// wakes the dispatchers after the commit. fn may run more than once, if the
// database could not serialise the transaction. On a database with a single
// writer, transactions that go through InTx take turns with the dispatcher's, so
// that a backlog that drains does not starve them. There fn must not call Publish, which
// would wait for the end of fn: it is refused with ErrInvalid. On other databases what
// Publish persists inside fn does not depend on fn's transaction. Use PublishTx.
func (p *Publisher[Tx]) InTx(ctx context.Context, fn func(tx Tx) error) error {
	return p.store.InTx(ctx, fn)
}

// Wake tells the dispatchers of this process, on this store, that a transaction
// with an event has committed. It never blocks. It is only a hint: without it
// they find the event by polling.
func (p *Publisher[Tx]) Wake() { p.store.Wake() }

func (p *Publisher[Tx]) drafts(events []Event) ([]Draft, error) {
	now := p.now()
	drafts := make([]Draft, len(events))
	var errs []error
	for i := range events {
		e := events[i]
		d, err := e.Draft(now, p.maxBody)
		if err != nil {
			if len(events) > 1 {
				err = fmt.Errorf("event %d: %w", i, err)
			}
			errs = append(errs, err)
			continue
		}
		drafts[i] = d
	}
	return drafts, errors.Join(errs...)
}
