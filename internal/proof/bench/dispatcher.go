package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/internal/proof/bench/child"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// warnings leaves out that a dispatcher starts and stops.
var warnings = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

// dispatcherParams say where a dispatcher works.
type dispatcherParams struct {
	Database location
	N        int    // the run ends after this many deliveries; 0: it runs until it is stopped
	Profile  string // folder for profiles; "": none
}

const (
	// askWarm makes a process do the first part of its work, and answer how much
	// remains. By then connections are made, statements are prepared, and caches
	// are warm.
	askWarm    = "warm"
	askGo      = "go"
	askProfile = "profile" // to be written, if nothing else ends the run
)

// counts has the hooks' counts.
type counts struct {
	warm, all    int64         // deliveries
	warmed, done chan struct{} // closed once there were that many

	started, ended, delivered, recorded, expanded, others atomic.Int64
}

// network allows callback URLs on this machine.
func network() sender.Network { return sender.Network{AllowPrivateNetworks: true} }

// dispatch is the dispatcher's process. It has the default configuration, except that
// it allows callback URLs on this machine and has hooks that count.
func runDispatcher() error {
	var p dispatcherParams
	ctx, parent, err := child.Open(&p)
	if err != nil {
		return err
	}
	store, closeStore, err := dispatchStore(ctx, p.Database)
	if err != nil {
		return parent.Fail(err)
	}
	defer func() { _ = closeStore() }()
	c := counts{warm: int64(p.N / 20), all: int64(p.N), warmed: make(chan struct{}), done: make(chan struct{})}
	keys, err := sealing()
	if err != nil {
		return parent.Fail(err)
	}
	disp, err := dispatch.New(store, keys, &dispatch.Config{Network: network(), Hooks: c.hooks(), Logger: warnings})
	if err != nil {
		return parent.Fail(err)
	}
	if err := parent.Answer(nil); err != nil {
		return err
	}
	ran, profiled := make(chan error, 1), func() {}
	var running sync.WaitGroup
	until := func(reached <-chan struct{}) error {
		select {
		case <-reached:
			return nil
		case err := <-ran:
			return fmt.Errorf("%d of %d delivered: %w", c.delivered.Load(), p.N, err)
		}
	}
	var cpu float64
	var began time.Time
	err = child.Answers(parent, func(question string) (any, error) {
		switch question {
		case askProfile:
			profiled()
			return nil, nil
		case askWarm:
			if profiled, err = profile(p.Profile); err != nil {
				return nil, err
			}
			running.Go(func() { ran <- disp.Run(ctx) })
			if err := until(c.warmed); err != nil {
				return nil, err
			}
			cpu, began = child.CPU(), time.Now()
			return int64(p.N) - c.delivered.Load(), nil
		}
		if p.N == 0 {
			profiled, err = profile(p.Profile)
			running.Go(func() { ran <- disp.Run(ctx) })
			return nil, err
		}
		if err := until(c.done); err != nil {
			return nil, err
		}
		t := took{Seconds: time.Since(began).Seconds(), CPU: child.CPU() - cpu}
		profiled()
		return t, nil
	})
	if err == nil {
		running.Wait() // it needs the store to its end
	}
	return err
}

// hooks count the dispatcher's deliveries.
func (c *counts) hooks() dispatch.Hooks {
	return dispatch.Hooks{
		AttemptStart: func(ctx context.Context, _ *dispatch.Claimed) context.Context {
			c.started.Add(1)
			return ctx
		},
		AttemptEnd: func(context.Context, *dispatch.Claimed, *dispatch.Result) { c.ended.Add(1) },
		Recorded: func(_ context.Context, r *dispatch.Recorded) {
			c.recorded.Add(1)
			if r.Decision.Status != sender.StatusDelivered {
				return
			}
			switch c.delivered.Add(1) {
			case c.warm:
				close(c.warmed)
			case c.all:
				close(c.done)
			}
		},
		Expanded: func(_ context.Context, x dispatch.Expanded) { c.expanded.Add(int64(x.Deliveries)) },
		Noticed:  func(context.Context, sender.Notice) { c.others.Add(1) },
		Pruned:   func(context.Context, dispatch.Pruned) { c.others.Add(1) },
	}
}

// profile begins a CPU profile. It returns a function that ends the profile, and writes
// one of the process's allocations beside it.
func profile(folder string) (stop func(), err error) {
	if folder == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	create := func(what string) (*os.File, error) {
		return os.Create(filepath.Join(folder, fmt.Sprintf("dispatcher-%d.%s.prof", os.Getpid(), what)))
	}
	cpu, err := create("cpu")
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = cpu.Close()
		if allocs, err := create("allocs"); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(allocs, 0)
			_ = allocs.Close()
		}
	}, pprof.StartCPUProfile(cpu)
}
