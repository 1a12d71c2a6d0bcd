package replay_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/surehook/surehook"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/sendertest"
)

// An endpoint was down for so long that its deliveries became dead letters. Now the
// endpoint is back.
func Example() {
	ctx := context.Background()
	now := time.Now()
	store, err := memory.New(&memory.Config{Now: func() time.Time { return now }})
	check(err)
	endpoint := sendertest.NewRoundTripper(sendertest.Status(http.StatusServiceUnavailable)) // stands in for the network
	key := sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")}
	hooks, err := surehook.NewSender(store, key, &surehook.SenderConfig{
		Logger:   slog.New(slog.DiscardHandler),
		Dispatch: dispatch.Config{UnguardedTransport: endpoint},
	})
	check(err)
	customer, _, err := hooks.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	check(err)
	_, err = hooks.Registry.Subscribe(ctx, sender.NewSubscription{
		Subscriber: customer.ID, URL: "https://customer.example/webhooks", EventTypes: []string{"invoice.*"},
	})
	check(err)
	for _, id := range []string{"inv_1", "inv_2"} {
		_, err := hooks.Publish(ctx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: id}})
		check(err)
	}
	for range 2 { // a first attempt at each delivery, and the last attempt
		_, err := hooks.Dispatcher.RunOnce(ctx)
		check(err)
		now = now.Add(5 * 24 * time.Hour)
	}

	filter := replay.Filter{Subscriber: customer.ID, EventType: "invoice.*", ErrorClass: sender.ClassStatus}
	preview, err := hooks.Replays.Preview(ctx, filter)
	check(err)
	fmt.Println("would send", preview.Count, "to", len(preview.Subscriptions), "subscription")

	endpoint.Set(sendertest.Status(http.StatusNoContent))
	r, err := hooks.Replays.Create(ctx, replay.Request{Filter: filter, By: "ada@example.com", Reason: "their database is back"})
	check(err)
	did, err := hooks.Dispatcher.RunOnce(ctx) // a service has hooks.Run going
	check(err)
	r, err = hooks.Replays.Get(ctx, r.ID)
	check(err)
	fmt.Println(r.Status, r.Admitted, "of", r.Matched, "delivered", did.Delivered)
	// Output:
	// would send 2 to 1 subscription
	// finished 2 of 2 delivered 2
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
