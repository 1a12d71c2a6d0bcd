package sender_test

import (
	"fmt"
	"log"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
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

// A retention that contradicts itself is refused, and the error lists all that is wrong.
func ExampleRetention() {
	store, keys := inMemory(time.Now)
	_, err := dispatch.New(store, keys, &dispatch.Config{
		Retention: sender.Retention{Reach: 60 * 24 * time.Hour, Receivers: 90 * 24 * time.Hour, Events: 90 * 24 * time.Hour},
	})
	fmt.Println(err)
	// Output:
	// sender: Retention.Delivered is 720h0m0s: it must be at least Reach, 1440h0m0s, or the records of what may be redelivered would be gone
}
