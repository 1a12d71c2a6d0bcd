package sender_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

// A subscriber gets a new secret while deliveries go on. Until the overlap is over,
// deliveries carry signatures with both secrets in the header of Standard Webhooks.
func ExampleRegistry_RotateSecret() {
	ctx := context.Background()
	s := newService(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("signatures:", len(strings.Fields(r.Header.Get("Webhook-Signature"))))
	})
	defer s.close()
	reg, err := sender.NewRegistry(s.store, s.keys, &sender.RegistryConfig{Network: s.network})
	if err != nil {
		log.Fatal(err)
	}
	owner, _, err := reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_acme"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := reg.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: s.endpoint.URL}); err != nil {
		log.Fatal(err)
	}
	pub, err := sender.NewPublisher(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	deliver := func() {
		if _, err := pub.Publish(ctx, sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "inv_1"}}); err != nil {
			log.Fatal(err)
		}
		s.dispatch(ctx)
	}
	deliver()

	secret, until, err := reg.RotateSecret(ctx, owner.ID, nil)
	if err != nil {
		log.Fatal(err)
	}
	_ = secret.Reveal() // shown to the owner, this once
	fmt.Println("the one before is valid for a day:", !until.IsZero())
	deliver()

	// The owner has changed to the new secret.
	if err := reg.RetireSecret(ctx, owner.ID); err != nil {
		log.Fatal(err)
	}
	deliver()

	// Output:
	// signatures: 1
	// the one before is valid for a day: true
	// signatures: 2
	// signatures: 1
}

// An owner who verifies the header with one signature alone gets the new secret before it
// signs, and says when it has it.
func ExampleRegistry_ActivateSecret() {
	ctx := context.Background()
	s := newService(func(http.ResponseWriter, *http.Request) {})
	defer s.close()
	reg, err := sender.NewRegistry(s.store, s.keys, nil)
	if err != nil {
		log.Fatal(err)
	}
	owner, _, err := reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_acme"})
	if err != nil {
		log.Fatal(err)
	}
	show := func() {
		secrets, err := reg.Secrets(ctx, owner.ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("newest:", secrets[0].State, "before:", secrets[1].State)
	}
	secret, _, err := reg.RotateSecret(ctx, owner.ID, &sender.Rotation{SignFrom: time.Now().Add(12 * time.Hour)})
	if err != nil {
		log.Fatal(err)
	}
	_ = secret.Reveal() // shown to the owner, who adds it to the old one
	show()
	if err := reg.ActivateSecret(ctx, owner.ID); err != nil {
		log.Fatal(err)
	}
	show()

	// Output:
	// newest: waiting before: signing
	// newest: signing before: ending
}

// The key that seals secrets is replaced: processes start with the new key and the old one,
// and once all have started, all secrets are sealed anew.
func ExampleRegistry_Rewrap() {
	ctx := context.Background()
	s := newService(func(http.ResponseWriter, *http.Request) {})
	defer s.close()
	s.subscribe(ctx)

	keys, err := sender.NewKeys(
		sender.SealingKey{ID: "2027-01", Key: []byte("fedcba9876543210fedcba9876543210")},
		sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")},
	)
	if err != nil {
		log.Fatal(err)
	}
	reg, err := sender.NewRegistry(s.store, keys, nil)
	if err != nil {
		log.Fatal(err)
	}
	rewrapped, err := reg.Rewrap(ctx)
	if err != nil {
		log.Fatal(err)
	}
	left, err := s.store.SealingKeys(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rewrapped, "sealed anew; in use:", left)
	// Output: 1 sealed anew; in use: [2027-01|ef6c4c0d]
}
