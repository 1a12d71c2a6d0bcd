package deduptest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surehook/surehook/dedup"
)

func concurrencyRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"one-of-many", "Of many transactions that mark one id at once exactly one is told that it is fresh, and the others that it is a duplicate.", oneOfMany[Tx]},
		{"next-after-rollback", "When the one that marked an id rolls back, another of those that wait gets it.", nextAfterRollback[Tx]},
		{"uncommitted-marker", "Nobody is answered by a marker that is not committed: a second Mark of the id waits or must be run again.", uncommittedMarker[Tx]},
		{"uncommitted-version", "Nobody is answered by a version that is not committed, in Advance or in Version.", uncommittedVersion[Tx]},
		{"read-before-write", "A transaction that cannot write after what it has read is told ErrRetryTx, and never gives a wrong answer.", readBeforeWrite[Tx]},
		{"circle-of-waits", "Transactions that wait for each other in a circle end: with ErrRetryTx for one of them.", circleOfWaits[Tx]},
		{"context-ended", "With a context that has ended every method returns an error that matches it, and changes nothing.", contextEnded[Tx]},
	}
}

func oneOfMany[Tx any](e *env[Tx]) {
	for round := range 3 {
		id := fmt.Sprintf("event-%d", round)
		var told atomic.Int32
		e.each(64, func(int) error {
			var fresh bool
			err := e.run(func(tx Tx) (err error) {
				fresh, err = e.mark(tx, e.scope, id)
				return err
			})
			if err == nil && fresh {
				told.Add(1)
			}
			return err
		})
		if n := told.Load(); n != 1 {
			e.Errorf("%d of 64 transactions marked %q as fresh and committed, want 1", n, id)
		}
	}
}

func nextAfterRollback[Tx any](e *env[Tx]) {
	const losers = 5
	var told, kept atomic.Int32
	e.each(32, func(int) error {
		var fresh bool
		err := e.run(func(tx Tx) (err error) {
			fresh, err = e.mark(tx, e.scope, "a")
			if err == nil && fresh && told.Add(1) <= losers {
				return errGivenUp
			}
			return err
		})
		if errors.Is(err, errGivenUp) {
			return nil
		}
		if err == nil && fresh {
			kept.Add(1)
		}
		return err
	})
	if n := kept.Load(); n != 1 {
		e.Errorf("after %d rollbacks, %d transactions marked the id as fresh and committed, want 1", losers, n)
	}
	if !e.seen(e.scope, "a") {
		e.Errorf("the marker is not there")
	}
}

func uncommittedMarker[Tx any](e *env[Tx]) {
	for _, commit := range []bool{true, false} {
		id := fmt.Sprintf("committed-%t", commit)
		e.during(commit,
			func(tx Tx) error { return e.wantMark(tx, e.scope, id, true) },
			func(tx Tx, open func() bool) error {
				fresh, err := e.mark(tx, e.scope, id)
				if err != nil {
					return err
				}
				if open() {
					return fmt.Errorf("Mark = %t while the transaction that marked the id first was still open", fresh)
				}
				if fresh == commit {
					return fmt.Errorf("Mark = %t after the transaction that marked the id first ended with commit=%t", fresh, commit)
				}
				return nil
			})
	}
}

func uncommittedVersion[Tx any](e *env[Tx]) {
	for _, commit := range []bool{true, false} {
		for i, offered := range []int64{1, 5, 9} {
			o := dedup.Object{Type: "subscriber", ID: fmt.Sprintf("%t-%d", commit, i)}
			e.during(commit,
				func(tx Tx) error { return e.wantAdvance(tx, e.scope, o, 5, true) },
				func(tx Tx, open func() bool) error {
					newer, err := e.advance(tx, e.scope, o, offered)
					if err != nil {
						return err
					}
					if open() {
						return fmt.Errorf("Advance to %d = %t while a transaction with version 5 was still open", offered, newer)
					}
					if want := !commit || offered > 5; newer != want {
						return fmt.Errorf("Advance to %d = %t after a transaction with version 5 ended with commit=%t", offered, newer, commit)
					}
					return nil
				})
			want := offered
			if commit {
				want = max(want, 5)
			}
			if v := e.version(e.scope, o); v != want {
				e.Errorf("version is %d, want %d", v, want)
			}
		}
		o := dedup.Object{Type: "subscriber", ID: fmt.Sprintf("read-%t", commit)}
		e.during(commit,
			func(tx Tx) error { return e.wantAdvance(tx, e.scope, o, 5, true) },
			func(tx Tx, open func() bool) error {
				v, err := e.Store.Version(e.ctx, tx, e.scope, o)
				if err != nil {
					return e.fine(err)
				}
				if v != 0 && (open() || !commit) {
					return fmt.Errorf("Version = %d, which is not committed", v)
				}
				return nil
			})
	}
}

func readBeforeWrite[Tx any](e *env[Tx]) {
	const n = 6
	for round := range 2 {
		id, v := fmt.Sprintf("event-%d", round), int64(round+1)
		var reading atomic.Int32
		var fresh, newer atomic.Int32
		all := make(chan struct{})
		e.each(n, func(int) error {
			var isFresh, isNewer, told bool
			err := e.run(func(tx Tx) error {
				if _, err := e.Store.Version(e.ctx, tx, e.scope, obj); err != nil {
					return e.fine(err)
				}
				if !told {
					told = true
					if reading.Add(1) == n {
						close(all)
					}
				}
				await(all)
				var err error
				if isFresh, err = e.mark(tx, e.scope, id); err != nil {
					return err
				}
				isNewer, err = e.advance(tx, e.scope, obj, v)
				return err
			})
			if err == nil && isFresh {
				fresh.Add(1)
			}
			if err == nil && isNewer {
				newer.Add(1)
			}
			return err
		})
		if fresh.Load() != 1 || newer.Load() != 1 {
			e.Errorf("of %d transactions %d were told fresh and %d newer, want 1 and 1", n, fresh.Load(), newer.Load())
		}
	}
}

func circleOfWaits[Tx any](e *env[Tx]) {
	var holding sync.WaitGroup
	holding.Add(2)
	both := make(chan struct{})
	go func() {
		holding.Wait()
		close(both)
	}()
	var mu sync.Mutex
	kept := map[string]int{}
	ids := []string{"x", "y"}
	e.each(2, func(i int) error {
		var fresh [2]bool
		told := false
		err := e.run(func(tx Tx) error {
			for n := range 2 {
				var err error
				if fresh[n], err = e.mark(tx, e.scope, ids[(i+n)%2]); err != nil {
					return err
				}
				if n == 0 {
					if !told {
						told = true
						holding.Done()
					}
					await(both)
				}
			}
			return nil
		})
		if !told { // or the waiting goroutine above would stay
			holding.Done()
		}
		mu.Lock()
		defer mu.Unlock()
		for n := range 2 {
			if err == nil && fresh[n] {
				kept[ids[(i+n)%2]]++
			}
		}
		return err
	})
	if kept["x"] != 1 || kept["y"] != 1 {
		e.Errorf("marked as fresh and committed: x %d times and y %d times, want once each", kept["x"], kept["y"])
	}
}

func contextEnded[Tx any](e *env[Tx]) {
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	e.must(func(tx Tx) error { return both(e, tx, "kept", 3) })
	calls := map[string]func(tx Tx) error{
		"Mark": func(tx Tx) error {
			_, err := e.Store.Mark(ended, tx, e.scope, "a", day)
			return err
		},
		"Advance": func(tx Tx) error {
			_, err := e.Store.Advance(ended, tx, e.scope, obj, 7)
			return err
		},
		"Version": func(tx Tx) error {
			_, err := e.Store.Version(ended, tx, e.scope, obj)
			return err
		},
		"Prune": func(tx Tx) error {
			_, err := e.Store.Prune(ended, tx, old(0), 1)
			return err
		},
	}
	if s, ok := e.Store.(dedup.DeadLetters[Tx]); ok {
		calls["SetAside"] = func(tx Tx) error { return s.SetAside(ended, tx, letter(e.scope, "a")) }
		calls["DeadLetter"] = func(tx Tx) error {
			_, err := s.DeadLetter(ended, tx, e.scope, "a")
			return err
		}
		calls["ListDeadLetters"] = func(tx Tx) error {
			_, err := s.ListDeadLetters(ended, tx, e.scope, "", 1)
			return err
		}
		calls["Discard"] = func(tx Tx) error { return s.Discard(ended, tx, e.scope, "a") }
	}
	if s, ok := e.Store.(dedup.Reapplies[Tx]); ok {
		calls["AskReapply"] = func(tx Tx) error {
			return second(s.AskReapply(ended, tx, dedup.Reapply{Scope: e.scope, ID: "kept", At: day}))
		}
		calls["ListReapplies"] = func(tx Tx) error { return second(s.ListReapplies(ended, tx, e.scope, 0, 1)) }
		calls["CancelReapply"] = func(tx Tx) error { return s.CancelReapply(ended, tx, e.scope, 1) }
		calls["TakeReapply"] = func(tx Tx) error { return second(s.TakeReapply(ended, tx, e.scope, "kept", obj)) }
		calls["AdvanceAgain"] = func(tx Tx) error { return second(s.AdvanceAgain(ended, tx, e.scope, obj, 7)) }
	}
	for name, call := range calls {
		if err := e.run(call); !errors.Is(err, context.Canceled) {
			e.Errorf("%s with a cancelled context returned %v, which does not match context.Canceled", name, err)
		}
	}
	if e.seen(e.scope, "a") {
		e.Errorf("Mark with a cancelled context left a marker")
	}
	if v := e.version(e.scope, obj); v != 3 {
		e.Errorf("Advance with a cancelled context changed the version to %d", v)
	}
}
