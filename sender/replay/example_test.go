package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

// An endpoint was down for so long that its deliveries became dead letters. Now it
// is back.
func ExampleReplays() {
	ctx := context.Background()
	down := true
	s := newService(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			http.Error(w, "no database", http.StatusInternalServerError)
		}
	})
	defer s.close()
	s.subscribe(ctx)
	pub, err := sender.NewPublisher(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		event := sender.Event{Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: fmt.Sprint(i)}, Data: json.RawMessage(`{}`)}
		if _, err := pub.Publish(ctx, event); err != nil {
			log.Fatal(err)
		}
	}
	giveUp, err := backoff.Fixed(time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	disp, err := dispatch.New(s.store, s.keys, &dispatch.Config{
		Network: s.network, Policy: dispatch.Policy{Backoff: backoff.Policy{Schedule: giveUp, Horizon: time.Millisecond}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for dead := 0; dead < 3; time.Sleep(time.Millisecond) {
		stats, err := disp.RunOnce(ctx)
		if err != nil {
			log.Fatal(err)
		}
		dead += stats.DeadLettered
	}

	replays, err := replay.New(s.store, nil)
	if err != nil {
		log.Fatal(err)
	}
	filter := replay.Filter{EventType: "invoice.*", ErrorClass: sender.ClassStatus}
	preview, err := replays.Preview(ctx, filter)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("would send", preview.Count, "to", len(preview.Subscriptions), "subscription")

	down = false
	r, err := replays.Create(ctx, replay.Request{Filter: filter, By: "ada@example.com", Reason: "their database is back"})
	if err != nil {
		log.Fatal(err)
	}
	s.dispatch(ctx)
	if r, err = replays.Get(ctx, r.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Status, r.Admitted, "of", r.Matched)
	// Output:
	// would send 3 to 1 subscription
	// finished 3 of 3
}
