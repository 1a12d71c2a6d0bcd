package deduptest

import (
	"github.com/surehook/surehook/dedup"
)

func reopenRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"reopen", "What was committed is there for the next process.", reopen[Tx]},
	}
}

func reopen[Tx any](e *env[Tx]) {
	if e.Reopen == nil {
		return
	}
	e.must(func(tx Tx) error {
		if err := both(e, tx, "a", 7); err != nil {
			return err
		}
		if s, ok := e.Store.(dedup.DeadLetters[Tx]); ok {
			return e.fine(s.SetAside(e.ctx, tx, letter(e.scope, "a")))
		}
		return nil
	})
	e.Harness = e.Reopen(e.t)
	e.must(func(tx Tx) error {
		if err := e.wantMark(tx, e.scope, "a", false); err != nil {
			return err
		}
		if err := e.wantVersion(tx, e.scope, obj, 7); err != nil {
			return err
		}
		if s, ok := e.Store.(dedup.DeadLetters[Tx]); ok {
			return e.wantLetter(tx, s, letter(e.scope, "a"))
		}
		return nil
	})
}
