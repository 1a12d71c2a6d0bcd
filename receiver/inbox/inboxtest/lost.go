package inboxtest

import (
	"errors"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/receiver/inbox"
)

func lostRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"lost", "While the file is not where it was, each method that writes returns an error. It works again once the file is back.", lost[Tx]},
	}
}

func lost[Tx any](e *env[Tx]) {
	if e.Lose == nil {
		return
	}
	e.record(event("line", "a", 1), true)
	e.record(event("other", "b", 1), true)
	claims := e.claim(1, long)
	if len(claims) != 1 {
		e.Fatalf("claimed were %v, and it must be one event", ids(claims))
	}
	back := e.Lose(e.t)
	defer func() { back() }()
	record := func(tx Tx) error { _, err := e.Store.RecordTx(e.ctx, tx, event("line", "c", 2)); return err }
	for what, write := range map[string]func(tx Tx) error{
		"RecordTx":           record,
		"RecordTx of a copy": func(tx Tx) error { _, err := e.Store.RecordTx(e.ctx, tx, event("line", "a", 1)); return err },
		"ClaimTx":            func(tx Tx) error { _, err := e.Store.ClaimTx(e.ctx, tx, scope, 10, long); return err },
		"ClaimTx of nothing": func(tx Tx) error { _, err := e.Store.ClaimTx(e.ctx, tx, "nobody's", 10, long); return err },
		"FinishTx":           func(tx Tx) error { return e.Store.FinishTx(e.ctx, tx, claims[0]) },
		"RetryTx":            func(tx Tx) error { return e.Store.RetryTx(e.ctx, tx, claims[0], long, "it failed") },
	} {
		for {
			err := e.tried(write)
			if err != nil && dberr.Classify(err) != dberr.Retry && !errors.Is(err, inbox.ErrLeaseLost) {
				break
			}
			if e.pause(); e.ctx.Err() != nil {
				e.Fatalf("%s still writes into a file that is not there, and its last error is %v", what, err)
			}
		}
	}
	back()
	back = func() {}
	for {
		err := e.tried(record)
		if err == nil {
			return
		}
		if e.pause(); e.ctx.Err() != nil {
			e.Fatalf("RecordTx does not work although the file is back: %v", err)
		}
	}
}

// tried runs fn in a transaction that is rolled back, and returns its error.
func (e *env[Tx]) tried(fn func(tx Tx) error) error {
	var got error
	called := false
	err := e.InTx(e.ctx, func(tx Tx) error {
		called, got = true, fn(tx)
		return errors.Join(errGivenUp, got)
	})
	if !called {
		return err
	}
	return got
}
