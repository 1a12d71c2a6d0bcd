package history_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// publishThree publishes events of three invoices.
func (s *service) publishThree(ctx context.Context) {
	pub, err := sender.NewPublisher(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"inv_1", "inv_2", "inv_3"} {
		if _, err := pub.Publish(ctx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: id}}); err != nil {
			log.Fatal(err)
		}
	}
}

// How the last minutes went: rollups are merged, and asked for quantiles.
func ExampleHistory_Rollups() {
	ctx := context.Background()
	s := newService(func(http.ResponseWriter, *http.Request) {})
	defer s.close()
	s.subscribe(ctx)
	s.publishThree(ctx)
	s.dispatch(ctx)

	past, err := history.New(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	minutes, err := past.Rollups(ctx, now.Add(-5*time.Minute), now.Add(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
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

// How much there is to do, at a cost that does not depend on how much it is.
func ExampleHistory_Counts() {
	ctx := context.Background()
	s := newService(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	defer s.close()
	s.subscribe(ctx)
	s.publishThree(ctx)
	s.dispatch(ctx)

	history, err := history.New(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	c, err := history.Counts(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("live", c.Live, "held", c.Held, "dead-lettered", c.DeadLettered)
	fmt.Println("active subscriptions", c.Subscriptions[sender.SubscriptionActive])
	// Output:
	// live 3 held 0 dead-lettered 0
	// active subscriptions 1
}

// Why an event has not arrived.
func ExampleHistory_Why() {
	ctx := context.Background()
	s := newService(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	defer s.close()
	s.subscribe(ctx)
	s.publishThree(ctx)
	s.dispatch(ctx)

	past, err := history.New(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	page, _, err := past.Deliveries(ctx, history.DeliveryQuery{EventType: "invoice.*", Object: sender.Object{Type: "invoice", ID: "inv_2"}})
	if err != nil {
		log.Fatal(err)
	}
	why, err := past.Why(ctx, page[0].ID)
	if err != nil {
		log.Fatal(err)
	}
	// why.Sentence says: Attempt 1 failed at 2026-11-20T12:00:01Z: status, answered
	// 502. Attempt 2, the 2nd of its schedule, is due at 2026-11-20T12:01:03Z.
	fmt.Println(why.Reason, why.Until.After(time.Now()))
	// Output: awaiting_retry true
}

// An event is looked up by what it is about.
func ExampleHistory_Events() {
	ctx := context.Background()
	s := newService(nil)
	defer s.close()
	s.publishThree(ctx)
	past, err := history.New(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	q := history.EventQuery{Type: "invoice.*", Object: sender.Object{Type: "invoice"}}
	for {
		page, next, err := past.Events(ctx, q)
		if err != nil {
			log.Fatal(err)
		}
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

// What could not be delivered is looked at, and sent again.
func ExampleHistory() {
	ctx := context.Background()
	broken := true
	s := newService(func(w http.ResponseWriter, _ *http.Request) {
		if broken {
			http.Error(w, "no database", http.StatusInternalServerError)
		}
	})
	defer s.close()
	s.subscribe(ctx)
	pub, err := sender.NewPublisher(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pub.Publish(ctx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "inv_1"}}); err != nil {
		log.Fatal(err)
	}
	s.dispatch(ctx)

	past, err := history.New(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	page, _, err := past.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusAwaitingRetry})
	if err != nil {
		log.Fatal(err)
	}
	d, err := past.Delivery(ctx, page[0].ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range d.Attempts {
		fmt.Printf("attempt %d: %s, %q\n", a.Number, a.Error, a.Snippet)
	}

	broken = false
	if err := past.Redeliver(ctx, d.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println("delivered", s.dispatch(ctx).Delivered)
	// Output:
	// attempt 1: answered 500, "no database\n"
	// delivered 1
}

// Somebody asks to be forgotten: the bodies that tell of her go, the records stay.
func ExampleHistory_Redact() {
	ctx := context.Background()
	store, _ := inMemory(time.Now)
	pub, err := sender.NewPublisher(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	past, err := history.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	person := sender.Object{Type: "person", ID: "ada"}
	if _, err := pub.Publish(ctx, sender.Event{Type: "person.updated", Object: person, Data: []byte(`{"email":"ada@example.com"}`)}); err != nil {
		log.Fatal(err)
	}
	events, err := past.Redact(ctx, history.Redaction{Object: person})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(events, "event redacted")
	// Output:
	// 1 event redacted
}
