package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	jobsmemory "github.com/surehook/surehook/sender/jobs/memory"
	"github.com/surehook/surehook/sender/memory"
)

// The event that announces a job's completion commits with it, and goes to the job's
// callback URL alone. A dispatcher delivers it.
func ExampleNewCallbacks() {
	ctx, stop := context.WithCancel(context.Background())
	under, err := memory.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)}) // a real one is random
	if err != nil {
		log.Fatal(err)
	}
	registry, err := sender.NewRegistry(under, keys, nil)
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := sender.NewPublisher(under, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, _, err := registry.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_7"}); err != nil {
		log.Fatal(err)
	}

	store, err := jobsmemory.New(under, nil)
	if err != nil {
		log.Fatal(err)
	}
	callbacks, err := jobs.NewCallbacks(registry, publisher, nil)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan jobs.Job)
	j, err := jobs.New(store, []jobs.Kind[*memory.Tx]{{
		Name: "export",
		Run: func(context.Context, *jobs.Run[*memory.Tx]) (json.RawMessage, error) {
			return json.RawMessage(`{"rows":3}`), nil
		},
	}}, &jobs.Config[*memory.Tx]{Announcer: callbacks, Hooks: jobs.Hooks{Finished: func(_ context.Context, j jobs.Job) { done <- j }}})
	if err != nil {
		log.Fatal(err)
	}
	stopped := make(chan error)
	go func() { stopped <- j.Run(ctx) }()
	if _, err := j.Submit(ctx, jobs.Submission{Kind: "export", Owner: "sub_7", CallbackURL: "https://example.com/done?export=3"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println((<-done).Status)

	past, err := history.New(under, nil)
	if err != nil {
		log.Fatal(err)
	}
	events, _, err := past.Events(ctx, history.EventQuery{})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events {
		fmt.Println(e.Type, "for", e.Subscriber, "to", e.URL)
	}
	stop()
	fmt.Println(<-stopped)
	// Output:
	// succeeded
	// job.completed for sub_7 to https://example.com/done?export=3
	// <nil>
}
