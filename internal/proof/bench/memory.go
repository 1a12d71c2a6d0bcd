package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const residentMB = "most memory MB"

// memory measures the memory that a backlog takes in the dispatcher's process.
func memory[Tx any](k kind[Tx]) scenario {
	const few, many = "1,000 pending", "1,000,000 pending"
	return scenario{
		name: "memory-" + k.name,
		question: "The most memory (RSS) of a dispatcher's process while it delivers on " + k.text + " from a backlog of a million deliveries, " +
			"beside one of a thousand that is kept up (with -quick 100,000).",
		columns: []string{residentMB},
		ratios:  []ratio{{figure: residentMB, of: many, over: []string{few}, least: 1.2, aim: 1, smallerBetter: true}},
		open: func(_ context.Context, b *bench) ([]measure, func() error, error) {
			during := time.Duration(b.of(8, 3)) * time.Second
			return []measure{
				func(ctx context.Context) ([]sample, error) { return resident(ctx, b, k, few, 1000, during) },
				func(ctx context.Context) ([]sample, error) {
					return resident(ctx, b, k, many, b.of(1_000_000, 100_000), during)
				},
			}, nil, nil
		},
	}
}

// resident measures a dispatcher with a backlog of at least a number of deliveries.
func resident[Tx any](ctx context.Context, b *bench, k kind[Tx], variant string, backlog int, during time.Duration) (_ []sample, err error) {
	l, err := openLine(ctx, b, k)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	// Every event is for all ten subscriptions.
	if err := l.publish(ctx, backlog/l.healthy.n, 1<<10, everybody); err != nil {
		return nil, err
	}
	if err := l.expand(ctx); err != nil {
		return nil, err
	}
	if err := l.dispatch(ctx, b); err != nil {
		return nil, err
	}
	missing := 0
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		arrived, err := l.receiver.arrivals()
		if err != nil {
			return nil, err
		}
		if missing += len(arrived); backlog > 1000 || missing < 10 {
			continue
		}
		if err := l.publish(ctx, missing, 1<<10, everybody); err != nil {
			return nil, err
		}
		missing = 0
	}
	mb, err := mostResident(l.dispatcher.PID())
	return one(variant, map[string]float64{residentMB: mb}), err
}

// mostResident is a process's peak of resident memory.
func mostResident(pid int) (mb float64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, found := bytes.Cut(b, []byte("VmHWM:"))
	if !found {
		return 0, fmt.Errorf("/proc/%d/status has no VmHWM", pid)
	}
	var kb float64
	_, err = fmt.Sscan(string(after), &kb)
	return kb / 1024, err
}
