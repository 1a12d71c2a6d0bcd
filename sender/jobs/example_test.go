package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strconv"

	"github.com/surehook/surehook/sender/jobs"
	jobsmemory "github.com/surehook/surehook/sender/jobs/memory"
	"github.com/surehook/surehook/sender/memory"
)

// A kind that does its work in steps: each step's effect is committed with the state
// to go on from.
func Example() {
	under, err := memory.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	store, err := jobsmemory.New(under, nil)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan jobs.Job)
	importing := jobs.Kind[*memory.Tx]{Name: "import", Run: func(ctx context.Context, run *jobs.Run[*memory.Tx]) (json.RawMessage, error) {
		var rows []string
		if err := json.Unmarshal(run.Job().Input, &rows); err != nil {
			return nil, jobs.Permanent(err) // trying again would not help
		}
		next := 0
		if state := run.State(); state != nil { // an earlier try was lost
			next, _ = strconv.Atoi(string(state))
		}
		for ; next < len(rows); next++ {
			err := run.InTx(ctx, func(_ *memory.Tx, step *jobs.Step) error {
				// Here the row would be written, in the transaction.
				step.Save([]byte(strconv.Itoa(next + 1)))
				step.Progress(int64(next+1), int64(len(rows)))
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		return json.Marshal(map[string]int{"imported": next})
	}}
	j, err := jobs.New(store, []jobs.Kind[*memory.Tx]{importing}, &jobs.Config[*memory.Tx]{
		Hooks: jobs.Hooks{Finished: func(_ context.Context, j jobs.Job) { done <- j }},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- j.Run(ctx) }()

	submission := jobs.Submission{Kind: "import", Input: json.RawMessage(`["a","b","c"]`), IdempotencyKey: "42"}
	first, err := j.Submit(ctx, submission)
	if err != nil {
		log.Fatal(err)
	}
	again, err := j.Submit(ctx, submission)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same job:", first.ID == again.ID)
	finished := <-done
	fmt.Println(finished.Status, string(finished.Result), *finished.Progress)
	stop()
	fmt.Println(<-stopped)
	// Output:
	// the same job: true
	// succeeded {"imported":3} {3 3}
	// <nil>
}
