package deduptest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/surehook/surehook/dedup"
)

func reapplyRollback[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	e.must(func(tx Tx) error { return both(e, tx, "a", 5) })
	e.giveUp(func(tx Tx) error {
		_, err := e.askIn(tx, s, dedup.Reapply{ID: "a"})
		return err
	})
	e.must(func(tx Tx) error { return e.wantDue(tx, s, "a", obj, false) })
	n := e.ask(s, dedup.Reapply{ID: "a"})
	for range 2 {
		e.giveUp(func(tx Tx) error { return e.wantTaken(tx, "a", obj, 7, true, true) })
		if v := e.version(e.scope, obj); v != 5 {
			e.Errorf("version is %d after a rollback, want 5", v)
		}
	}
	e.giveUp(func(tx Tx) error {
		if err := s.CancelReapply(e.ctx, tx, e.scope, n); err != nil {
			return e.fine(err)
		}
		return e.wantDue(tx, s, "a", obj, false) // for this transaction
	})
	e.must(func(tx Tx) error { return e.wantTaken(tx, "a", obj, 5, true, true) })
	e.must(func(tx Tx) error { return e.wantTaken(tx, "a", obj, 5, false, false) })
}

func reapplyOneOfMany[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	const n = 32
	e.must(func(tx Tx) error { return both(e, tx, "a", 5) })
	for round := range 3 {
		e.ask(s, dedup.Reapply{ID: "a"})
		if round == 2 { // more than one that cover it
			e.ask(s, dedup.Reapply{Object: obj})
		}
		var told, lost atomic.Int32
		e.each(n, func(int) error {
			var due bool
			err := e.run(func(tx Tx) (err error) {
				if err = e.wantMark(tx, e.scope, "a", false); err != nil {
					return err
				}
				if due, _, err = dedup.TakeAgain(e.ctx, e.Store, tx, e.scope, "a", obj, 5); err != nil {
					return e.fine(err)
				}
				if due && lost.Add(1) <= 2 { // whoever rolls back leaves it due
					return errGivenUp
				}
				return nil
			})
			if errors.Is(err, errGivenUp) {
				return nil
			}
			if err == nil && due {
				told.Add(1)
			}
			return err
		})
		if got := told.Load(); got != 1 {
			e.Errorf("%d of %d transactions were told that the event is due and committed, want 1", got, n)
		}
	}
}

func reapplyWaits[Tx any](e *env[Tx], s dedup.Reapplies[Tx]) {
	for _, commit := range []bool{true, false} {
		for i, c := range []struct {
			why           string
			first, second string // what the two transactions do: Advance to 9, or the event of version 5 again
			want          bool   // of the second, if the first commits
		}{
			{"a newer version is stored meanwhile", "advance", "again", false},
			{"the event is being applied again", "again", "advance", true},
			{"the event is being applied again by another one", "again", "again", false},
		} {
			o := dedup.Object{Type: "subscriber", ID: fmt.Sprintf("%t-%d", commit, i)}
			e.must(func(tx Tx) error {
				if err := e.wantMark(tx, e.scope, o.ID, true); err != nil {
					return err
				}
				return e.wantAdvance(tx, e.scope, o, 5, true)
			})
			e.ask(s, dedup.Reapply{ID: o.ID})
			do := func(tx Tx, what string) (bool, error) {
				if what == "advance" {
					return e.advance(tx, e.scope, o, 9)
				}
				_, current, err := dedup.TakeAgain(e.ctx, e.Store, tx, e.scope, o.ID, o, 5)
				return current, e.fine(err)
			}
			e.during(commit,
				func(tx Tx) error {
					done, err := do(tx, c.first)
					if err == nil && !done {
						err = fmt.Errorf("%s is false, with nobody else there", c.first)
					}
					return err
				},
				func(tx Tx, open func() bool) error {
					got, err := do(tx, c.second)
					switch {
					case err != nil:
						return err
					case open():
						return fmt.Errorf("%s = %t while %s", c.second, got, c.why)
					case commit && got != c.want || !commit && !got:
						return fmt.Errorf("%s = %t after it (%s) ended with commit=%t", c.second, got, c.why, commit)
					}
					return nil
				})
		}
	}
	e.marked("asked")
	e.during(false, // nobody sees a request that is not committed
		func(tx Tx) error {
			_, err := e.askIn(tx, s, dedup.Reapply{ID: "asked"})
			return err
		},
		func(tx Tx, _ func() bool) error { return e.wantDue(tx, s, "asked", obj, false) })
}
