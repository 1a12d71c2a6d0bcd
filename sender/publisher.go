package sender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surehook/surehook/internal/traceparent"
)

// PublisherConfig adjusts a Publisher. A nil config and zero fields mean the
// defaults.
type PublisherConfig struct {
	// MaxBodyBytes bounds an event's body. The default is 1 MiB, which is also
	// what a receiver of this module takes.
	MaxBodyBytes int

	// Now is the clock of OccurredAt and of the ids. The default is time.Now.
	Now func() time.Time

	// Traceparent returns the trace context of a publish, as the value of the W3C header
	// traceparent of version 00 (55 bytes), from the context of PublishStart or else of the
	// publish's caller. It is stored with the event, for hooks and for
	// dispatch.Config.Traceparent. A text of another form is no trace context, and neither is
	// "": nothing is stored then. So a header that a stranger has sent cannot make a publish
	// fail. The default is to store none.
	Traceparent func(ctx context.Context) string

	// PayloadVersion returns the newest version of a type's data, as a date, or "". The
	// PayloadVersion of package catalogue's Catalogue is one. It is asked for events that do
	// not say their version themselves.
	PayloadVersion func(eventType string) string

	// Check, if not nil, looks at each payload before anything is written, on the goroutine
	// of the caller. An error refuses the publish, which changes nothing: it is wrapped in
	// ErrInvalidEvent. It must let job.completed of package jobs pass: nobody learns of a
	// completion that it refuses. The module sender/catalogue/jsonschema has checks against
	// the schemas of a catalogue.
	Check func(ctx context.Context, p Payload) error

	// RequireSubscriber refuses an event that names no Subscriber, with ErrInvalidEvent: every
	// subscriber would get it, also if the field was only forgotten. What is meant for all
	// then goes through another Publisher on the same store.
	RequireSubscriber bool

	// Hooks are called at each publish.
	Hooks PublishHooks
}

// Publisher persists events: in the producer's transaction, so that an event
// commits with the change it reports or not at all, or in one of its own. It is
// safe for concurrent use.
type Publisher[Tx any] struct {
	store       Outbox[Tx]
	maxBody     int
	now         func() time.Time
	traceparent func(ctx context.Context) string
	newest      func(eventType string) string
	check       func(ctx context.Context, p Payload) error
	addressed   bool
	hooks       PublishHooks
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
	p := &Publisher[Tx]{store: store, maxBody: c.MaxBodyBytes, now: c.Now, traceparent: c.Traceparent, newest: c.PayloadVersion, check: c.Check, addressed: c.RequireSubscriber, hooks: c.Hooks}
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
// tx must be on the database of the store. On another one that has the library's tables,
// too, the event may be stored there without an error: a transaction does not tell whose
// it is.
//
// It returns ErrInvalidEvent, a *VersionError, ErrIdempotencyKey or ErrNotFound (an
// unknown Subscriber or Subscription): then nothing was written, and tx can go on. An
// unknown Subscriber is no error if Event.IfSubscriberExists is set: the event is dropped,
// and the Ref says so. On any other error the caller must roll back; one that matches
// ErrRetryTx asks for the transaction to be run again.
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
//
// The objects are locked in the order of the events. Transactions that publish about the same
// objects at a time should have them in the same order, or one may lose by a deadlock.
func (p *Publisher[Tx]) PublishManyTx(ctx context.Context, tx Tx, events []Event) ([]Ref, error) {
	return p.hooked(ctx, events, func(ctx context.Context, drafts []Draft) ([]Ref, error) {
		return p.store.PublishTx(ctx, tx, drafts)
	})
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
	return p.hooked(ctx, events, func(ctx context.Context, drafts []Draft) (refs []Ref, err error) {
		err = p.InTx(ctx, func(tx Tx) (err error) {
			refs, err = p.store.PublishTx(ctx, tx, drafts)
			return err
		})
		if err != nil {
			return nil, err
		}
		return refs, nil
	})
}

// InTx runs fn in a transaction of the store's database, for the business change and its
// PublishTx together. It commits if fn returns nil, and rolls back otherwise. After the
// commit it wakes the dispatchers. fn may run more than once, if the database could not
// serialise the transaction. On a database with a single writer, transactions that go
// through InTx take turns with the dispatcher's, so that a backlog that drains does not
// starve them. There fn must not call Publish, which would wait for the end of fn: it is
// refused with ErrInvalid. On other databases, Publish inside fn persists the event
// whatever becomes of fn's transaction. Use PublishTx.
func (p *Publisher[Tx]) InTx(ctx context.Context, fn func(tx Tx) error) error {
	return p.store.InTx(ctx, fn)
}

// Wake tells the dispatchers of this process, on this store, that a transaction
// with an event has committed. It never blocks. It is only a hint: without it
// they find the event by polling.
func (p *Publisher[Tx]) Wake() { p.store.Wake() }

// hooked makes drafts of events and persists them, between the hooks.
func (p *Publisher[Tx]) hooked(ctx context.Context, events []Event, persist func(ctx context.Context, drafts []Draft) ([]Ref, error)) ([]Ref, error) {
	if len(events) == 0 {
		return nil, nil
	}
	ctx, end := p.hooks.begin(ctx, events)
	drafts, err := p.drafts(ctx, events)
	var refs []Ref
	if err == nil {
		refs, err = persist(ctx, drafts)
	}
	end(refs, err)
	return refs, err
}

func (p *Publisher[Tx]) drafts(ctx context.Context, events []Event) ([]Draft, error) {
	now, trace := p.now(), ""
	if p.traceparent != nil {
		if given := p.traceparent(ctx); traceparent.Valid(given) {
			trace = given
		}
	}
	drafts := make([]Draft, len(events))
	var errs []error
	for i := range events {
		d, err := p.draft(ctx, events[i], now)
		if err != nil {
			if len(events) > 1 {
				err = fmt.Errorf("event %d: %w", i, err)
			}
			errs = append(errs, err)
			continue
		}
		d.Traceparent = trace
		drafts[i] = d
	}
	return drafts, errors.Join(errs...)
}

// draft validates, checks and renders an event.
func (p *Publisher[Tx]) draft(ctx context.Context, e Event, now time.Time) (Draft, error) {
	if e.PayloadVersion == "" && p.newest != nil {
		e.PayloadVersion = p.newest(e.Type)
	}
	data, err := e.checked()
	if p.addressed && e.Subscriber == "" {
		err = errors.Join(err, fmt.Errorf("%w: subscriber is empty, and RequireSubscriber is set: name the one that the event is for, or publish what is for all by a Publisher without RequireSubscriber", ErrInvalidEvent))
	}
	if err != nil {
		return Draft{}, err
	}
	if p.check != nil {
		if err := p.check(ctx, Payload{e.Type, e.PayloadVersion, data}); err != nil {
			return Draft{}, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
		}
	}
	return e.rendered(now, data, p.maxBody)
}
