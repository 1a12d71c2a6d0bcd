package jobstest

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/surehook/surehook/sender/jobs"
)

func shares[Tx any](w *world[Tx]) {
	begun, ended := make(chan string, 100), make(chan struct{})
	release := map[string]chan struct{}{}
	for _, owner := range []string{"sub_a", "sub_b", "sub_c", "sub_d"} {
		release[owner] = make(chan struct{})
	}
	run := func(_ context.Context, run *jobs.Run[Tx]) (json.RawMessage, error) {
		begun <- run.Job().Owner
		select {
		case <-release[run.Job().Owner]:
		case <-ended:
		}
		return nil, nil
	}
	all, err := jobs.New(w.Store, []jobs.Kind[Tx]{{Name: "work", Run: run, Concurrency: 4, OwnerConcurrency: 2}},
		&jobs.Config[Tx]{Logger: slog.New(slog.DiscardHandler)})
	w.noError(err, "making jobs")
	submit := func(owner string, n int) {
		w.Helper()
		for range n {
			w.insert(w.job("work", owner))
		}
		all.Wake()
	}
	ran := make(chan error, 1)
	begins := func(owner, when string) {
		w.Helper()
		select {
		case b := <-begun:
			w.equal(b, owner, "owner of the job that is begun %s", when)
		case err := <-ran:
			ran <- err
			w.Fatalf("Run ended before a job was begun %s: %v", when, err)
		}
	}

	submit("sub_a", 50)
	ctx, stop := context.WithCancel(w.ctx)
	go func() { ran <- all.Run(ctx) }()
	defer func() {
		stop()
		close(ended)
		w.noError(<-ran, "running jobs")
	}()
	begins("sub_a", "first")
	begins("sub_a", "second")
	submit("sub_b", 1)
	begins("sub_b", "beside two of another owner with 48 more")
	submit("sub_c", 1)
	begins("sub_c", "beside those of two others")

	// All places are taken.
	submit("sub_d", 2)
	submit("sub_b", 1)
	release["sub_a"] <- struct{}{}
	begins("sub_d", "before another one of an owner that has had its turn")
	release["sub_a"] <- struct{}{}
	begins("sub_a", "when all have had their turn, being due longest")
	release["sub_c"] <- struct{}{}
	begins("sub_d", "in the turn of its owner")
	release["sub_d"] <- struct{}{}
	begins("sub_b", "in the turn of its owner")
}
