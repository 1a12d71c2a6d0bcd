package sender_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/surehook/surehook/sender"
)

// The endpoint is behind a gateway that asks for a key, takes two requests at a time and
// answers within three seconds. The key's value is not shown when the settings are printed.
func ExampleSettings() {
	ctx := context.Background()
	s := newService(func(http.ResponseWriter, *http.Request) {})
	defer s.close()
	reg, err := sender.NewRegistry(s.store, s.keys, &sender.RegistryConfig{Network: s.network})
	if err != nil {
		log.Fatal(err)
	}
	owner, _, err := reg.CreateSubscriber(ctx, sender.NewSubscriber{})
	if err != nil {
		log.Fatal(err)
	}
	sub, err := reg.Subscribe(ctx, sender.NewSubscription{
		Subscriber: owner.ID, URL: s.endpoint.URL,
		Settings: sender.Settings{
			Headers:     map[string]string{"x-api-key": "0a1b2c3d"},
			MaxInFlight: 2,
			Timeout:     3 * time.Second,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sub.Settings)

	_, err = reg.Subscribe(ctx, sender.NewSubscription{
		Subscriber: owner.ID, URL: s.endpoint.URL, Settings: sender.Settings{Headers: map[string]string{"Webhook-Id": "mine"}},
	})
	fmt.Println(err)
	// Output:
	// {headers:[X-Api-Key] max_in_flight:2 rate:0 timeout:3s proxy:"" certificate:false}
	// sender: invalid subscription: settings: the header "Webhook-Id" is not yours to set
}
