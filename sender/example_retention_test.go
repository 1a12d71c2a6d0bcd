package sender_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/memory"
)

// inMemory is a store for examples.
func inMemory(now func() time.Time) (*memory.Store, *sender.Keys) {
	store, err := memory.New(&memory.Config{Now: now})
	if err != nil {
		log.Fatal(err)
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		log.Fatal(err)
	}
	return store, keys
}

// A retention that does not hold together is refused, with all that is wrong.
func ExampleRetention() {
	store, keys := inMemory(time.Now)
	_, err := sender.NewDispatcher(store, keys, &sender.DispatcherConfig{
		Retention: sender.Retention{Reach: 60 * 24 * time.Hour, Receivers: 90 * 24 * time.Hour, Events: 90 * 24 * time.Hour},
	})
	fmt.Println(err)
	// Output:
	// sender: Retention.Delivered is 720h0m0s: it must be at least Reach, 1440h0m0s, or the records of what may be redelivered would be gone
}

// Whoever runs the dispatcher by a scheduler prunes by it too.
func ExampleDispatcher_Prune() {
	ctx := context.Background()
	now := time.Now()
	store, keys := inMemory(func() time.Time { return now })
	pub, err := sender.NewPublisher(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	disp, err := sender.NewDispatcher(store, keys, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pub.Publish(ctx, sender.Event{Type: "order.paid", Object: sender.Object{Type: "order", ID: "1"}}); err != nil {
		log.Fatal(err)
	}
	if _, err := disp.RunOnce(ctx); err != nil {
		log.Fatal(err)
	}
	now = now.Add(31 * 24 * time.Hour)
	pruned, err := disp.Prune(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pruned.Events, "event")
	// Output:
	// 1 event
}

// Somebody asks to be forgotten: the bodies that tell of her go, the records stay.
func ExampleHistory_Redact() {
	ctx := context.Background()
	store, _ := inMemory(time.Now)
	pub, err := sender.NewPublisher(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	history, err := sender.NewHistory(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	person := sender.Object{Type: "person", ID: "ada"}
	if _, err := pub.Publish(ctx, sender.Event{Type: "person.updated", Object: person, Data: []byte(`{"email":"ada@example.com"}`)}); err != nil {
		log.Fatal(err)
	}
	events, err := history.Redact(ctx, sender.Redaction{Object: person})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(events, "event redacted")
	// Output:
	// 1 event redacted
}
