//go:build !race

package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// transactionBreakages break a store's own transactions, its check and its signal.
var transactionBreakages = []breakage{
	{"no second run", func(s store) store { return runOnce{s} }, checks{"transaction/runs again"}},
	{"never commits", func(s store) store { return neverCommits{s} }, checks{"transaction/commits"}},
	{"commits on a panic", func(s store) store { return panicCommits{s} }, checks{"transaction/rolls back on a panic"}},
	{"commits when its goroutine ends", func(s store) store { return exitCommits{s} }, checks{"transaction/rolls back on a panic"}},
	{"busy transactions try again later", func(s store) store { return &busy{store: s} }, checks{"transaction/takes turns"}},
	{"fails its own check", func(s store) store { return unfit{s} }, checks{"transaction/check"}},
	{"a step in two transactions", func(s store) store { return stepInTwo{s} }, checks{"expand/in a step that fails"}},
	{"no signal", func(s store) store { return noSignal{s} }, checks{"transaction/signals"}},
}

type stepInTwo struct{ store }

func (b stepInTwo) Step(ctx context.Context, p dispatch.ExpandParams, batch dispatch.Batch) (dispatch.Expanded, dispatch.Claims, error) {
	x, _, err := b.store.Step(ctx, p, dispatch.Batch{})
	if err != nil {
		return x, dispatch.Claims{}, err
	}
	_, c, err := b.store.Step(ctx, dispatch.ExpandParams{}, batch)
	return x, c, err
}

type runOnce struct{ store }

func (b runOnce) InTx(ctx context.Context, fn func(tx) error) error {
	return b.store.InTx(ctx, func(tx tx) error {
		err := fn(tx)
		if errors.Is(err, sender.ErrRetryTx) {
			return errors.New("not retried")
		}
		return err
	})
}

type neverCommits struct{ store }

func (b neverCommits) InTx(ctx context.Context, fn func(tx) error) error {
	rollback := errors.New("roll back")
	err := b.store.InTx(ctx, func(tx tx) error { return cmp.Or(fn(tx), rollback) })
	if errors.Is(err, rollback) {
		return nil
	}
	return err
}

type panicCommits struct{ store }

func (b panicCommits) InTx(ctx context.Context, fn func(tx) error) error {
	var panicked any
	err := b.store.InTx(ctx, func(tx tx) error {
		defer func() { panicked = recover() }()
		return fn(tx)
	})
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// exitCommits takes the end of a goroutine for the end of the function.
type exitCommits struct{ store }

func (b exitCommits) InTx(ctx context.Context, fn func(tx) error) error {
	return b.store.InTx(ctx, func(tx tx) error {
		type end struct {
			err      error
			panicked any
		}
		ended := make(chan end)
		go func() {
			var e end
			defer func() { e.panicked = recover(); ended <- e }()
			e.err = fn(tx)
		}()
		e := <-ended
		if e.panicked != nil {
			panic(e.panicked)
		}
		return e.err
	})
}

type busy struct {
	store
	busy sync.Mutex
}

func (b *busy) InTx(ctx context.Context, fn func(tx) error) error {
	for !b.busy.TryLock() {
		time.Sleep(50 * time.Microsecond)
	}
	defer b.busy.Unlock()
	return b.store.InTx(ctx, fn)
}

type unfit struct{ store }

func (unfit) Check(context.Context) error { return sender.ErrUnfit }

type noSignal struct{ store }

func (noSignal) Woken() <-chan struct{} { return nil }
