package deduptest

import (
	"fmt"

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
	asked := int64(0)
	e.must(func(tx Tx) (err error) {
		if err := both(e, tx, "a", 7); err != nil {
			return err
		}
		if s, ok := e.Store.(dedup.Reapplies[Tx]); ok {
			if asked, err = e.askIn(tx, s, dedup.Reapply{ID: "a"}); err != nil {
				return err
			}
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
		if s, ok := e.Store.(dedup.Reapplies[Tx]); ok {
			if err := e.wantDue(tx, s, "a", obj, true); err != nil {
				return err
			}
			n, err := e.askIn(tx, s, dedup.Reapply{ID: "b"})
			if err == nil && n <= asked {
				err = fmt.Errorf("AskReapply returned the number %d in the next process, after %d", n, asked)
			}
			if err != nil {
				return err
			}
		}
		if s, ok := e.Store.(dedup.DeadLetters[Tx]); ok {
			return e.wantLetter(tx, s, letter(e.scope, "a"))
		}
		return nil
	})
}
