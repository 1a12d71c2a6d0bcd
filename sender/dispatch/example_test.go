package dispatch_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Whoever runs the dispatcher by a scheduler prunes by it too.
func ExampleDispatcher_Prune() {
	ctx := context.Background()
	now := time.Now()
	store, keys := inMemory(func() time.Time { return now })
	pub, err := sender.NewPublisher(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	disp, err := dispatch.New(store, keys, nil)
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
