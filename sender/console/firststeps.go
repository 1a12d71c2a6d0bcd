package console

import (
	"cmp"
	"context"

	"github.com/surehook/surehook/sender/history"
)

// firstSteps lead to the first delivery.
type firstSteps struct {
	Name  string
	Steps []step
}

type step struct {
	ID, Title, Text, Code string
	Done, Now             bool
}

const (
	firstCustomer = `owner, secret, err := registry.CreateSubscriber(ctx, sender.NewSubscriber{})`
	firstEndpoint = `subscription, err := registry.Subscribe(ctx, sender.NewSubscription{
	Subscriber: owner.ID, URL: "https://customer.example/webhooks", EventTypes: []string{"invoice.*"},
})`
	firstEvent = `ref, err := publisher.PublishTx(ctx, tx, sender.Event{
	Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"}, Subscriber: owner.ID,
})`
)

// unused returns the first steps if nothing was published yet, and nil otherwise.
func (c *Console) unused(ctx context.Context, counts *history.Counts) (*firstSteps, error) {
	if counts.Live+counts.Held+counts.DeadLettered+counts.Unexpanded > 0 {
		return nil, nil
	}
	events, _, err := c.History.Events(ctx, history.EventQuery{Limit: 1})
	if err != nil || len(events) > 0 {
		return nil, err
	}
	var subscriptions int64
	for _, n := range counts.Subscriptions {
		subscriptions += n
	}
	customer := subscriptions > 0
	if c.Customers != nil && !customer {
		list, _, err := c.Customers.Customers(ctx, CustomerQuery{Limit: 1})
		if err != nil {
			return nil, err
		}
		customer = len(list) > 0
	}
	f := &firstSteps{Name: c.cfg.Name, Steps: []step{
		{ID: "s0", Title: "Start the sender", Text: "It runs, and this is its console.", Done: true},
		{ID: "s1", Title: "Make a customer", Text: "A customer is a subscriber with a signing secret, which is shown this once.", Code: cmp.Or(c.cfg.FirstSteps.Customer, firstCustomer), Done: customer},
		{ID: "s2", Title: "Register an endpoint", Text: "A subscription names a URL and the types of events that are posted to it.", Code: cmp.Or(c.cfg.FirstSteps.Endpoint, firstEndpoint), Done: subscriptions > 0},
		{ID: "s3", Title: "Publish an event", Text: "It arrives within milliseconds, and this page turns into the overview.", Code: cmp.Or(c.cfg.FirstSteps.Event, firstEvent)},
	}}
	for i := range f.Steps {
		if !f.Steps[i].Done {
			f.Steps[i].Now = true
			break
		}
	}
	return f, nil
}
