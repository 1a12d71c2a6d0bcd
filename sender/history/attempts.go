package history

import (
	"context"
	"fmt"

	"github.com/surehook/surehook/sender"
)

// MaxAttempts is how many attempts of a delivery are read at a time. No schedule of its own
// comes to more. A delivery that was sent again many times can.
const MaxAttempts = 1000

// AttemptQuery selects attempts of a delivery: the newest of those whose numbers are below
// Before. The numbers are from 1 to AttemptCount.
type AttemptQuery struct {
	Before int // 0: of any number
	Limit  int // up to MaxAttempts; 0: none
}

// DeliveryWith is Delivery with the attempts that a query selects. So a page shows some of them
// without reading all. ErrInvalid: the query is negative, or its Limit too high.
func (h *History) DeliveryWith(ctx context.Context, id string, q AttemptQuery) (sender.Delivery, error) {
	if q.Before < 0 || q.Limit < 0 || q.Limit > MaxAttempts {
		return sender.Delivery{}, fmt.Errorf("%w attempts: Before is %d and Limit %d: neither may be negative, and Limit at most %d", sender.ErrInvalid, q.Before, q.Limit, MaxAttempts)
	}
	return h.store.Delivery(ctx, id, q)
}

// DeliveryWith is [History.DeliveryWith] for a delivery to one of the subscriber's
// subscriptions.
func (o *Owned) DeliveryWith(ctx context.Context, id string, q AttemptQuery) (sender.Delivery, error) {
	d, err := o.all.DeliveryWith(ctx, id, q)
	if err == nil {
		err = o.owns(d.Subscriber, "delivery", id)
	}
	if err != nil {
		return sender.Delivery{}, err
	}
	return d, nil
}
