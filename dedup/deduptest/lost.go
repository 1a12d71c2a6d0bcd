package deduptest

import (
	"errors"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/dberr"
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
	letters, hasLetters := e.Store.(dedup.DeadLetters[Tx])
	reapplies, hasReapplies := e.Store.(dedup.Reapplies[Tx])
	asked := int64(0)
	e.must(func(tx Tx) error {
		err := e.wantMark(tx, e.scope, "a", true)
		if err == nil && hasLetters {
			err = e.fine(letters.SetAside(e.ctx, tx, letter(e.scope, "a")))
		}
		if err == nil && hasReapplies {
			asked, err = e.askIn(tx, reapplies, dedup.Reapply{ID: "a"})
		}
		return err
	})
	back := e.Lose(e.t)
	defer func() { back() }()
	refuses := func(what string, write func(tx Tx) error) {
		e.Helper()
		for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
			err := e.tried(write)
			if err != nil && dberr.Classify(err) != dberr.Retry && !errors.Is(err, dedup.ErrRetryTx) && !errors.Is(err, dedup.ErrNotFound) {
				return
			}
			select {
			case <-time.After(pause):
			case <-e.ctx.Done():
				e.Fatalf("%s still writes into a file that is not there, and its last error is %v", what, err)
			}
		}
	}
	refuses("Mark", func(tx Tx) error { _, err := e.mark(tx, e.scope, "b"); return err })
	refuses("Mark of a duplicate", func(tx Tx) error { _, err := e.mark(tx, e.scope, "a"); return err })
	refuses("Advance", func(tx Tx) error { _, err := e.advance(tx, e.scope, obj, 1); return err })
	refuses("Prune", func(tx Tx) error { _, err := e.Store.Prune(e.ctx, tx, day.AddDate(-1, 0, 0), 1); return err })
	if both, ok := e.Store.(dedup.MarkAdvancer[Tx]); ok {
		refuses("MarkAndAdvance", func(tx Tx) error {
			_, _, err := both.MarkAndAdvance(e.ctx, tx, e.scope, "b", day, obj, 1)
			return err
		})
	}
	if hasLetters {
		refuses("SetAside", func(tx Tx) error { return letters.SetAside(e.ctx, tx, letter(e.scope, "b")) })
		refuses("Discard", func(tx Tx) error { return letters.Discard(e.ctx, tx, e.scope, "a") })
	}
	if hasReapplies {
		refuses("AskReapply", func(tx Tx) error { _, err := e.askIn(tx, reapplies, dedup.Reapply{ID: "b"}); return err })
		refuses("CancelReapply", func(tx Tx) error { return reapplies.CancelReapply(e.ctx, tx, e.scope, asked) })
		refuses("TakeReapply", func(tx Tx) error { _, err := reapplies.TakeReapply(e.ctx, tx, e.scope, "a", obj); return err })
		refuses("AdvanceAgain", func(tx Tx) error { _, err := reapplies.AdvanceAgain(e.ctx, tx, e.scope, obj, 1); return err })
	}
	back()
	back = func() {}
	for {
		err := e.tried(func(tx Tx) error { _, err := e.mark(tx, e.scope, "b"); return err })
		if err == nil {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-e.ctx.Done():
			e.Fatalf("Mark does not work although the file is back: %v", err)
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
