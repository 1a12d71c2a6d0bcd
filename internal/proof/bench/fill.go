package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/surehook/surehook/internal/proof/bench/post"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/signing"
)

// batch is how many rows one transaction writes when tables are filled.
const batch = 1000

// registering says what to register.
type registering struct {
	prefix   string // of the subscribers' ids: PREFIX_0, PREFIX_1 …
	n        int    // subscribers, each with one subscription
	url      func(i int) string
	types    []string
	settings sender.Settings // of the subscriptions
	filter   string          // on their content; "": none
}

// subscriber is the id of the ith.
func (r registering) subscriber(i int) string { return fmt.Sprintf("%s_%d", r.prefix, i) }

// hooks returns the URLs of a receiver.
func hooks(url string) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%s/hook/%d", url, i) }
}

// nowhere is a URL to which nothing is posted.
func nowhere(i int) string { return fmt.Sprintf("http://127.0.0.1:9/hook/%d", i) }

// register registers subscribers and returns the ids of their subscriptions.
func (p *place[Tx]) register(ctx context.Context, r registering) (subscriptions []string, err error) {
	registry, err := sender.NewRegistry(p.store, p.keys, &sender.RegistryConfig{Network: network()})
	if err != nil {
		return nil, err
	}
	secret, err := signing.ParseSecret(post.Secret)
	if err != nil {
		return nil, err
	}
	for done := 0; done < r.n; {
		var made []string
		n := min(batch, r.n-done)
		err := p.store.InTx(ctx, func(tx Tx) error {
			made = made[:0]
			for i := done; i < done+n; i++ {
				if _, _, err := registry.CreateSubscriberTx(ctx, tx, sender.NewSubscriber{ID: r.subscriber(i), Secret: secret}); err != nil {
					return err
				}
				s, err := registry.SubscribeTx(ctx, tx, sender.NewSubscription{
					Subscriber: r.subscriber(i), URL: r.url(i), EventTypes: r.types, Filter: r.filter, Settings: r.settings,
				})
				if err != nil {
					return err
				}
				made = append(made, s.ID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		subscriptions = append(subscriptions, made...)
		done += n
	}
	return subscriptions, nil
}

func (p *place[Tx]) pause(ctx context.Context, subscriptions []string) error {
	return p.store.InTx(ctx, func(tx Tx) error {
		for _, id := range subscriptions {
			if err := p.store.HoldSubscriptionTx(ctx, tx, id, sender.SubscriptionPaused, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// around is an event's body without its data.
const around = 200

// event is the ith event, for a subscriber, or for all if that is "".
func event(i int, subscriber string, size int) sender.Event {
	data, _ := json.Marshal(string(post.Data(max(0, size-around))))
	return sender.Event{
		Type: "thing.changed", Object: sender.Object{Type: "thing", ID: fmt.Sprintf("thing_%d", i)},
		Subscriber: subscriber, Data: json.RawMessage(data),
	}
}

// publish publishes n events of a size. to returns the subscriber of the ith.
func (p *place[Tx]) publish(ctx context.Context, n, size int, to func(i int) string) error {
	pub, err := sender.NewPublisher(p.store, nil)
	if err != nil {
		return err
	}
	for done := 0; done < n; {
		events := make([]sender.Event, min(batch, n-done))
		for i := range events {
			events[i] = event(done+i, to(done+i), size)
		}
		if _, err := pub.PublishMany(ctx, events); err != nil {
			return err
		}
		done += len(events)
	}
	return nil
}

// everybody addresses events to nobody in particular.
func everybody(int) string { return "" }

// inTurn addresses events to the registered subscribers in turn.
func (r registering) inTurn(i int) string { return r.subscriber(i % r.n) }

// expand makes the deliveries of all published events.
func (p *place[Tx]) expand(ctx context.Context) error {
	for {
		x, _, err := p.store.Step(ctx, dispatch.ExpandParams{Events: batch, Deliveries: batch}, dispatch.Batch{})
		if err != nil || !x.More && x.Events == 0 && x.Deliveries == 0 {
			return err
		}
	}
}
