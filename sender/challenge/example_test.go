package challenge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

// A callback URL is registered once its endpoint has sent the challenge's token back.
// Package receiver does that by itself.
func Example() {
	ctx := context.Background()
	endpoint := sendertest.NewRoundTripper( // stands in for the network
		sendertest.Status(http.StatusOK), // its owner has not deployed the endpoint yet
		sendertest.Func(sendTokenBack),
	)
	challenger, err := challenge.New(&challenge.Config{UnguardedTransport: endpoint})
	check(err)
	store, err := memory.New(nil)
	check(err)
	keys, err := sender.NewKeys(sender.SealingKey{ID: "2026-11", Key: []byte("0123456789abcdef0123456789abcdef")})
	check(err)
	reg, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Challenger: challenger})
	check(err)

	owner, _, err := reg.CreateSubscriber(ctx, sender.NewSubscriber{})
	check(err)
	for range 2 {
		s, err := reg.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: "https://customer.example/webhooks"})
		if failed := (*challenge.Error)(nil); errors.As(err, &failed) {
			fmt.Println(failed.Class, failed.StatusCode, failed.Text)
			continue
		}
		check(err)
		fmt.Println(s.Status)
	}
	// Output:
	// challenge 200 the answer is not the token: answer data.token as {"token":"…"} or as it is
	// active
}

// sendTokenBack is the endpoint. It has verified the signature already.
func sendTokenBack(w http.ResponseWriter, r *http.Request) {
	var event struct {
		Type string
		Data struct{ Token string }
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	if event.Type == challenge.Type {
		fmt.Fprint(w, event.Data.Token)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
