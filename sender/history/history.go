package history

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pagesize"
	"github.com/surehook/surehook/sender"
)

// History tells what became of deliveries, and sends them again. It is safe for
// concurrent use.
type History struct {
	store   Store
	keeps   sender.Retention
	convert sender.Convert
	now     func() time.Time
}

// Config adjusts a History. A nil config and zero fields mean the defaults.
type Config struct {
	// Retention says, by its Reach, how long ago an event may have been published that
	// Redeliver sends again. Give the Dispatcher the same.
	Retention sender.Retention

	// Convert makes the payload versions by which the filters of subscriptions decide that are
	// pinned to older ones, for WhyOf and Preview. Give the Dispatcher the same.
	Convert sender.Convert

	// Now is the clock that the reach is counted by. The default is time.Now.
	Now func() time.Time
}

// New returns a History on a store.
func New(store Store, cfg *Config) (*History, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	c.Retention = c.Retention.WithDefaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	err := errors.Join(c.Retention.Problems(0)...)
	if store == nil {
		err = errors.Join(errors.New("history: New needs a store"), err)
	}
	if err != nil {
		return nil, err
	}
	return &History{store: store, keeps: c.Retention, convert: c.Convert, now: c.Now}, nil
}

// Delivery returns a delivery with its body and its attempts, or ErrNotFound. If it has more
// than MaxAttempts, the newest are read: DeliveryWith reads the others. The caller must check
// whose it is, or use [History.ForSubscriber].
func (h *History) Delivery(ctx context.Context, id string) (sender.Delivery, error) {
	return h.DeliveryWith(ctx, id, AttemptQuery{Limit: MaxAttempts})
}

// Deliveries lists deliveries without bodies and attempts, those of the newest
// events first, and returns the cursor of the following page, "" after the last. A
// page can be short, or empty, before that: see MaxExamined. ErrInvalid: a filter,
// the limit or the cursor is malformed.
func (h *History) Deliveries(ctx context.Context, q DeliveryQuery) ([]sender.Delivery, string, error) {
	if err := q.check(); err != nil {
		return nil, "", err
	}
	return h.store.Deliveries(ctx, q)
}

// Notices lists notices, the newest first, and returns the cursor of the following
// page, "" after the last. ErrInvalid: a filter, the limit or the cursor is malformed.
func (h *History) Notices(ctx context.Context, q NoticeQuery) ([]sender.Notice, string, error) {
	limit, err := pagesize.Of(sender.ErrInvalid, q.Limit)
	errs := ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "subscriber", Text: q.Subscriber}, ident.Text{Name: "subscription", Text: q.Subscription}, ident.Text{Name: "kind", Text: string(q.Kind)})
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, "", err
	}
	q.Limit = limit
	return h.store.Notices(ctx, q)
}

// Acknowledge marks a notice as read, so that no Notifier is given it any more and
// it goes with its retention. If subscriber is not empty it must be the notice's:
// that is for owners; the operator gives none. Doing it again changes nothing.
// ErrNotFound.
func (h *History) Acknowledge(ctx context.Context, id, subscriber string) (sender.Notice, error) {
	return h.store.AcknowledgeNotice(ctx, id, subscriber)
}

// Redeliver sends a delivery again, at once, with the same event id and the same bytes.
// One that is not delivered starts its schedule anew. One that is delivered gets a single
// attempt, whose failure leaves it delivered. If its server closed an idle connection just
// then, another attempt is made in its place. If an attempt is in flight, no second one is
// started. If its subscription has an order, the delivery may have to wait for other
// versions of its object, or end as superseded by a newer one that waits: see
// sender.Order. ErrNotFound; ErrCancelled if it was cancelled with its subscription;
// ErrRedacted; a *RetentionError if its event was published longer ago than
// Retention.Reach.
func (h *History) Redeliver(ctx context.Context, id string) error {
	return h.store.Redeliver(ctx, id, h.keeps.NotBefore(h.now()))
}

// RedeliverForced is Redeliver for an event of any age. A receiver that has
// forgotten it may apply it a second time.
func (h *History) RedeliverForced(ctx context.Context, id string) error {
	return h.store.Redeliver(ctx, id, time.Time{})
}

// PassOver has an object's later versions sent that a dead letter holds back, because its
// subscription has HoldDead set. The dead letter stays, and can still be redelivered.
// ErrNotFound; ErrStatus if it holds nothing back; a *RetentionError if the event of the
// version that would go next was published longer ago than Retention.Reach. The receiver
// may have had that one before, and have forgotten it.
func (h *History) PassOver(ctx context.Context, id string) error {
	return h.store.PassOver(ctx, id, h.keeps.NotBefore(h.now()))
}

// PassOverForced is PassOver for versions of any age. A receiver that has had one of them,
// and has forgotten it, may apply it a second time.
func (h *History) PassOverForced(ctx context.Context, id string) error {
	return h.store.PassOver(ctx, id, time.Time{})
}
