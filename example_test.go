package surehook_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/surehook/surehook"
	inbound "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	outbound "github.com/surehook/surehook/sender/memory"
)

// Both sides in one process. A service has its events and markers in its database: see
// sender/postgres, sender/sqlite and their siblings of dedup.
func Example() {
	ctx := context.Background()
	store, err := outbound.New(nil)
	check(err)
	hooks, err := surehook.NewSender(store, sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")},
		&surehook.SenderConfig{Network: sender.Network{AllowPrivateNetworks: true}}) // the consumer is on loopback
	check(err)
	customer, secret, err := hooks.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	check(err)

	markers := inbound.New()
	applied, err := surehook.NewReceiver(markers.InTx, markers, "billing", secret.Reveal(), nil)
	check(err)
	consumer := httptest.NewServer(applied.Handler(receiver.State(func(_ context.Context, _ *inbound.Tx, ev receiver.Event) error {
		fmt.Println(ev.Type, ev.Object.ID, "version", ev.Version)
		return nil
	})))
	defer consumer.Close()

	_, err = hooks.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: customer.ID, URL: consumer.URL, EventTypes: []string{"invoice.*"}})
	check(err)
	check(hooks.InTx(ctx, func(tx *outbound.Tx) error { // with the change that it reports
		_, err := hooks.PublishTx(ctx, tx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "in_1"}, Subscriber: customer.ID})
		return err
	}))
	stats, err := hooks.Dispatcher.RunOnce(ctx) // a service calls hooks.Run
	check(err)
	fmt.Println("delivered:", stats.Delivered)
	// Output:
	// invoice.paid in_1 version 1
	// delivered: 1
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
