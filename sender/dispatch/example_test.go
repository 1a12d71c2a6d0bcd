package dispatch_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// newService has a customer who wants all events. Her endpoint stands in for the network.
// It plays steps, and repeats the last step. Without steps it answers 200.
func newService(ctx context.Context, store *memory.Store, cfg dispatch.Config, steps ...sendertest.Step) *surehook.Sender[*memory.Tx] {
	cfg.UnguardedTransport = sendertest.NewRoundTripper(steps...)
	key := sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")}
	hooks, err := surehook.NewSender(store, key, &surehook.SenderConfig{Dispatch: cfg})
	check(err)
	customer, _, err := hooks.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	check(err)
	_, err = hooks.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: customer.ID, URL: "https://customer.example/webhooks"})
	check(err)
	return hooks
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Run delivers until its context ends, and records the attempts under way. Hooks tell the
// outcome of each attempt.
func Example() {
	ctx, stop := context.WithCancel(context.Background()) // a service: signal.NotifyContext
	store, err := memory.New(nil)
	check(err)
	hooks := newService(ctx, store, dispatch.Config{
		Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) {
			fmt.Println("attempt", r.Result.Number, r.Decision.Status)
			stop()
		}},
	})
	_, err = hooks.Publish(ctx, sender.Event{Type: "order.paid", Object: sender.Object{Type: "order", ID: "1"}})
	check(err)

	check(hooks.Dispatcher.Run(ctx))
	fmt.Println("drained")
	// Output:
	// attempt 1 delivered
	// drained
}

// RunOnce does the work that is due now: for a scheduler, or a test.
func ExampleDispatcher_RunOnce() {
	ctx := context.Background()
	now := time.Now()
	store, err := memory.New(&memory.Config{Now: func() time.Time { return now }})
	check(err)
	hooks := newService(ctx, store, dispatch.Config{}, sendertest.Status(503), sendertest.Status(204))
	_, err = hooks.Publish(ctx, sender.Event{Type: "order.paid", Object: sender.Object{Type: "order", ID: "1"}})
	check(err)
	for range 2 {
		did, err := hooks.Dispatcher.RunOnce(ctx)
		check(err)
		fmt.Println("attempted", did.Attempted, "delivered", did.Delivered)
		now = now.Add(time.Hour) // the retry is due
	}
	// Output:
	// attempted 1 delivered 0
	// attempted 1 delivered 1
}

// A service that runs the dispatcher by a scheduler must prune by it too.
func ExampleDispatcher_Prune() {
	ctx := context.Background()
	now := time.Now()
	store, err := memory.New(&memory.Config{Now: func() time.Time { return now }})
	check(err)
	hooks := newService(ctx, store, dispatch.Config{})
	_, err = hooks.Publish(ctx, sender.Event{Type: "order.paid", Object: sender.Object{Type: "order", ID: "1"}})
	check(err)
	_, err = hooks.Dispatcher.RunOnce(ctx)
	check(err)

	now = now.Add(31 * 24 * time.Hour) // longer than Retention keeps records
	pruned, err := hooks.Dispatcher.Prune(ctx)
	check(err)
	fmt.Println(pruned.Deliveries, "delivery and", pruned.Events, "event")
	// Output:
	// 1 delivery and 1 event
}
