package history

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

// Neighbours are the deliveries to the same subscription of the versions of the same object
// that come next.
type Neighbours struct {
	Previous, Next *sender.Delivery // without bodies and attempts; nil: none was found
	// More tells that one that was not found may be beyond the about MaxExamined
	// deliveries that were looked at on its side.
	More bool
}

// Neighbours returns the neighbours of a delivery, or ErrNotFound. It reads a bounded
// number of rows.
func (h *History) Neighbours(ctx context.Context, id string) (Neighbours, error) {
	f, err := h.store.Facts(ctx, id)
	if err != nil {
		return Neighbours{}, err
	}
	return h.neighbours(ctx, &f.Delivery)
}

// Neighbours is [History.Neighbours] for a delivery to one of the subscriber's
// subscriptions.
func (o *Owned) Neighbours(ctx context.Context, id string) (Neighbours, error) {
	f, err := o.all.store.Facts(ctx, id)
	if err == nil {
		err = o.owns(f.Delivery.Subscriber, "delivery", id)
	}
	if err != nil {
		return Neighbours{}, err
	}
	return o.all.neighbours(ctx, &f.Delivery)
}

// neighbourPages is how many pages are read on each side: one, since one looks at up to
// MaxExamined candidates, and a few more where a page is full.
const neighbourPages = 3

func (h *History) neighbours(ctx context.Context, d *sender.Delivery) (n Neighbours, err error) {
	q := DeliveryQuery{Subscription: d.Subscription, Object: d.Event.Object, Limit: 200}
	older, newer := q, q
	older.Until = d.CreatedAt.Add(time.Microsecond)
	newer.Since = d.CreatedAt
	// Listed from the newest on: the first older one, and the last newer one.
	olderMore, err := h.walk(ctx, older, func(o *sender.Delivery) bool {
		if o.Version < d.Version && (n.Previous == nil || o.Version > n.Previous.Version) {
			n.Previous = o
		}
		return n.Previous == nil
	})
	if err != nil {
		return Neighbours{}, err
	}
	newerMore, err := h.walk(ctx, newer, func(o *sender.Delivery) bool {
		if o.Version > d.Version && (n.Next == nil || o.Version < n.Next.Version) {
			n.Next = o
		}
		return true
	})
	if err != nil {
		return Neighbours{}, err
	}
	n.More = n.Previous == nil && olderMore || newerMore
	return n, nil
}

// walk calls fn for the deliveries of a few pages until it returns false, and tells whether
// others follow.
func (h *History) walk(ctx context.Context, q DeliveryQuery, fn func(d *sender.Delivery) bool) (more bool, err error) {
	for range neighbourPages {
		page, next, err := h.store.Deliveries(ctx, q)
		if err != nil {
			return false, err
		}
		for i := range page {
			if !fn(&page[i]) {
				return false, nil
			}
		}
		if next == "" {
			return false, nil
		}
		q.Cursor = next
	}
	return true, nil
}
