package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/sender"
)

const (
	outcomesEvents = 50  // events of one call
	outcomesEach   = 200 // deliveries that are counted of each
)

// Outcomes counts the deliveries of an event by status.
type Outcomes struct {
	ByStatus map[sender.Status]int // a status of none is left out
	// More tells that only 200 deliveries were counted, and there may be others.
	More bool
}

// Outcomes counts the deliveries of events, given by their ids, by status: of each event the
// first 200. An id that no event has, and an event without deliveries, is left out.
// ErrInvalid: there are more than 50 ids.
func (h *History) Outcomes(ctx context.Context, events []string) (map[string]Outcomes, error) {
	return h.outcomes(ctx, events, "")
}

// Outcomes is [History.Outcomes] of the deliveries to the subscriber's subscriptions.
func (o *Owned) Outcomes(ctx context.Context, events []string) (map[string]Outcomes, error) {
	if o.subscriber == "" {
		return nil, errNobody
	}
	return o.all.outcomes(ctx, events, o.subscriber)
}

func (h *History) outcomes(ctx context.Context, events []string, subscriber string) (map[string]Outcomes, error) {
	events = distinct(events)
	var errs []error
	if len(events) > outcomesEvents {
		errs = append(errs, fmt.Errorf("%w events: %d are asked for: at most %d may be in one call", sender.ErrInvalid, len(events), outcomesEvents))
	}
	for _, id := range events {
		errs = append(errs, ident.AllStorable(sender.ErrInvalid, ident.Text{Name: "event", Text: id})...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := map[string]Outcomes{}
	for _, id := range events {
		if id == "" {
			continue
		}
		page, next, err := h.store.Deliveries(ctx, DeliveryQuery{Event: id, Subscriber: subscriber, Limit: outcomesEach})
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			continue
		}
		o := Outcomes{ByStatus: map[sender.Status]int{}, More: next != ""}
		for i := range page {
			o.ByStatus[page[i].Status]++
		}
		all[id] = o
	}
	return all, nil
}
