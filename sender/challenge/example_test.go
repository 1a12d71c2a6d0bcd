package challenge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync/atomic"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
)

// A callback URL is registered once its endpoint has sent the challenge's token
// back. Package receiver does that by itself; this endpoint does it by hand, after
// verifying the signature, which is left out here.
func ExampleNew() {
	ctx := context.Background()
	var ready atomic.Bool // the endpoint's owner has not deployed it yet
	s := newService(func(w http.ResponseWriter, r *http.Request) {
		var event struct {
			Type string
			Data struct{ Token string }
		}
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			http.Error(w, "not an event", http.StatusBadRequest)
			return
		}
		if event.Type == challenge.Type && ready.Load() {
			fmt.Fprint(w, event.Data.Token)
		}
	})
	defer s.close()

	challenger, err := challenge.New(&challenge.Config{Network: s.network})
	if err != nil {
		log.Fatal(err)
	}
	reg, err := sender.NewRegistry(s.store, s.keys, &sender.RegistryConfig{Network: s.network, Challenger: challenger})
	if err != nil {
		log.Fatal(err)
	}
	owner, _, err := reg.CreateSubscriber(ctx, sender.NewSubscriber{})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		sub, err := reg.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: s.endpoint.URL})
		var failed *challenge.Error
		if errors.As(err, &failed) {
			fmt.Println(failed.Class, failed.StatusCode, failed.Text)
			ready.Store(true)
			continue
		}
		fmt.Println(sub.Status, err)
	}
	// Output:
	// challenge 200 the answer is not the token: answer data.token as {"token":"…"} or as it is
	// active <nil>
}
