package history

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// Owned is the History of one subscriber, for what customers ask for: it neither shows nor
// sends anything of another. The id of another's delivery or event answers ErrNotFound, just
// as an id that nobody has. It is safe for concurrent use.
type Owned struct {
	all        *History
	subscriber string
}

// ForSubscriber returns the History of one subscriber. It asks no database whether there is
// such a subscriber: if there is none, nothing is found. An empty id is no subscriber:
// everything is refused then, with ErrInvalid or ErrNotFound.
func (h *History) ForSubscriber(id string) *Owned { return &Owned{all: h, subscriber: id} }

// Delivery is [History.Delivery] for a delivery to one of the subscriber's subscriptions.
func (o *Owned) Delivery(ctx context.Context, id string) (sender.Delivery, error) {
	return o.DeliveryWith(ctx, id, AttemptQuery{Limit: MaxAttempts})
}

// Deliveries is [History.Deliveries] of the deliveries to the subscriber's subscriptions.
// q.Subscriber may be left out. It finds nothing of another subscriber, or of another's
// subscription.
func (o *Owned) Deliveries(ctx context.Context, q DeliveryQuery) ([]sender.Delivery, string, error) {
	if o.subscriber == "" {
		return nil, "", errNobody
	}
	if err := q.check(); err != nil {
		return nil, "", err
	}
	if q.Subscriber != "" && q.Subscriber != o.subscriber {
		return nil, "", nil
	}
	q.Subscriber = o.subscriber
	return o.all.Deliveries(ctx, q)
}

// Event is [History.Event] for an event that is addressed to the subscriber. One that is for
// everybody it has as the body of its delivery, or from package feed.
func (o *Owned) Event(ctx context.Context, id string) (sender.StoredEvent, error) {
	e, err := o.all.Event(ctx, id)
	if err == nil {
		err = o.owns(e.Subscriber, "event", id)
	}
	if err != nil {
		return sender.StoredEvent{}, err
	}
	return e, nil
}

// Why is [History.Why] for a delivery to one of the subscriber's subscriptions.
func (o *Owned) Why(ctx context.Context, id string) (Why, error) {
	f, err := o.all.store.Facts(ctx, id)
	if err == nil {
		err = o.owns(f.Delivery.Subscriber, "delivery", id)
	}
	if err != nil {
		return Why{}, err
	}
	return o.all.why(ctx, &f)
}

// Redeliver is [History.Redeliver] for a delivery to one of the subscriber's subscriptions.
// Only the operator can send again a delivery that is beyond the reach.
func (o *Owned) Redeliver(ctx context.Context, id string) error {
	if _, err := o.DeliveryWith(ctx, id, AttemptQuery{}); err != nil { // its owner never changes
		return err
	}
	return o.all.Redeliver(ctx, id)
}

// PassOver is [History.PassOver] for a delivery to one of the subscriber's subscriptions.
// Only the operator can let versions go on that are beyond the reach.
func (o *Owned) PassOver(ctx context.Context, id string) error {
	if _, err := o.DeliveryWith(ctx, id, AttemptQuery{}); err != nil {
		return err
	}
	return o.all.PassOver(ctx, id)
}

// errNobody keeps a caller whose id was forgotten from passing for one who sees all.
var errNobody = fmt.Errorf("%w subscriber: it is empty: give ForSubscriber the id of the one who asks", sender.ErrInvalid)

// owns returns what a store returns for an unknown id unless the thing is the subscriber's.
func (o *Owned) owns(subscriber, what, id string) error {
	if o.subscriber == "" {
		return errNobody
	}
	if subscriber != o.subscriber {
		return fmt.Errorf("%w: %s %q", sender.ErrNotFound, what, id)
	}
	return nil
}
