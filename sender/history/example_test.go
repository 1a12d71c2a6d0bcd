package history_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// newService has published events about three invoices and attempted to deliver them to a
// customer. Her endpoint stands in for the network. It plays steps, and repeats the last
// step.
func newService(ctx context.Context, steps ...sendertest.Step) *surehook.Sender[*memory.Tx] {
	store, err := memory.New(nil)
	check(err)
	key := sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")}
	hooks, err := surehook.NewSender(store, key, &surehook.SenderConfig{
		Dispatch: dispatch.Config{UnguardedTransport: sendertest.NewRoundTripper(steps...)},
	})
	check(err)
	customer, _, err := hooks.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	check(err)
	_, err = hooks.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: customer.ID, URL: "https://customer.example/webhooks"})
	check(err)
	for _, id := range []string{"inv_1", "inv_2", "inv_3"} {
		_, err := hooks.Publish(ctx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: id}})
		check(err)
	}
	_, err = hooks.Dispatcher.RunOnce(ctx)
	check(err)
	return hooks
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// An operator looks at a failed delivery, and sends it again.
func Example() {
	ctx := context.Background()
	hooks := newService(ctx, sendertest.Answer(500, nil, "no database"), sendertest.Status(204)) // one of the three fails

	page, _, err := hooks.History.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusAwaitingRetry})
	check(err)
	d, err := hooks.History.Delivery(ctx, page[0].ID)
	check(err)
	for _, a := range d.Attempts {
		fmt.Printf("attempt %d: %s, %q\n", a.Number, a.Error, a.Snippet)
	}

	check(hooks.History.Redeliver(ctx, d.ID))
	did, err := hooks.Dispatcher.RunOnce(ctx) // a service has hooks.Run going
	check(err)
	fmt.Println("delivered", did.Delivered)
	// Output:
	// attempt 1: answered 500, "no database"
	// delivered 1
}

// A customer asks for her deliveries, and for another's.
func ExampleHistory_ForSubscriber() {
	ctx := context.Background()
	hooks := newService(ctx)
	page, _, err := hooks.History.Deliveries(ctx, history.DeliveryQuery{Limit: 1})
	check(err)

	hers := hooks.History.ForSubscriber(page[0].Subscriber) // as her token says
	fmt.Println("hers:", hers.Redeliver(ctx, page[0].ID))
	others := hooks.History.ForSubscriber("sub_other")
	fmt.Println("another's:", errors.Is(others.Redeliver(ctx, page[0].ID), sender.ErrNotFound))
	// Output:
	// hers: <nil>
	// another's: true
}

// Why has an event not arrived?
func ExampleHistory_Why() {
	ctx := context.Background()
	hooks := newService(ctx, sendertest.Status(http.StatusBadGateway))

	page, _, err := hooks.History.Deliveries(ctx, history.DeliveryQuery{
		EventType: "invoice.*", Object: sender.Object{Type: "invoice", ID: "inv_2"},
	})
	check(err)
	why, err := hooks.History.Why(ctx, page[0].ID)
	check(err)
	// why.Sentence says: Attempt 1 failed at 2026-11-20T12:00:01Z: status, answered
	// 502. Attempt 2, the 2nd of its schedule, is due at 2026-11-20T12:01:03Z.
	fmt.Println(why.Reason, why.Until.After(time.Now()))
	// Output: awaiting_retry true
}

// Events are looked up by their objects.
func ExampleHistory_Events() {
	ctx := context.Background()
	hooks := newService(ctx)

	q := history.EventQuery{Type: "invoice.*", Object: sender.Object{Type: "invoice"}}
	for {
		page, next, err := hooks.History.Events(ctx, q)
		check(err)
		for _, e := range page {
			fmt.Println(e.Type, e.Object.ID, e.Version)
		}
		if next == "" { // a short page is not the end
			break
		}
		q.Cursor = next
	}
	// Output:
	// invoice.paid inv_3 1
	// invoice.paid inv_2 1
	// invoice.paid inv_1 1
}

// Counts tells how much work waits, at a cost that does not depend on the amount.
func ExampleHistory_Counts() {
	ctx := context.Background()
	hooks := newService(ctx, sendertest.Status(http.StatusBadGateway))

	c, err := hooks.History.Counts(ctx)
	check(err)
	fmt.Println("live", c.Live, "held", c.Held, "dead-lettered", c.DeadLettered)
	fmt.Println("active subscriptions", c.Subscriptions[sender.SubscriptionActive])
	// Output:
	// live 3 held 0 dead-lettered 0
	// active subscriptions 1
}

// Rollups tell how the last minutes went: they are merged, and give quantiles.
func ExampleHistory_Rollups() {
	ctx := context.Background()
	hooks := newService(ctx)

	now := time.Now()
	minutes, err := hooks.History.Rollups(ctx, now.Add(-5*time.Minute), now.Add(time.Minute))
	check(err)
	var last history.Rollup
	for i := range minutes {
		last.Merge(&minutes[i])
	}
	fmt.Println("published", last.Published, "delivered", last.Delivered, "failed", last.Failed)
	fmt.Println("99 % within 10 s:", last.Success.Quantile(0.99) <= 10*time.Second)
	// Output:
	// published 3 delivered 3 failed 0
	// 99 % within 10 s: true
}

// Somebody asks to be forgotten: the bodies of events about her go, and the records stay.
func ExampleHistory_Redact() {
	ctx := context.Background()
	hooks := newService(ctx)
	person := sender.Object{Type: "person", ID: "ada"}
	_, err := hooks.Publish(ctx, sender.Event{Type: "person.updated", Object: person, Data: map[string]string{"email": "ada@example.com"}})
	check(err)

	events, err := hooks.History.Redact(ctx, history.Redaction{Object: person})
	check(err)
	fmt.Println(events, "event redacted")
	// Output:
	// 1 event redacted
}

func ExampleLatency() {
	var l history.Latency
	for i := range 100 {
		l.Add(time.Duration(i+1) * 10 * time.Millisecond)
	}
	fmt.Println(l.Count(), l.Longest())
	fmt.Println(l.Quantile(0.5) >= 500*time.Millisecond, l.Quantile(0.5) < 600*time.Millisecond)
	// Output:
	// 100 1s
	// true true
}
