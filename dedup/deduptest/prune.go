package deduptest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/dedup"
)

func pruneRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"prune-oldest-first", "Prune removes the oldest markers of all scopes first, at most limit of them, and only those before the time.", pruneOldestFirst[Tx]},
		{"prune-batches", "Pruning in batches removes all markers before the time, each once, and none else.", pruneBatches[Tx]},
		{"prune-rollback", "What a rolled-back transaction pruned is still there.", pruneRollback[Tx]},
		{"prune-keeps-versions", "Versions are never pruned: they are what holds when the marker is gone.", pruneKeepsVersions[Tx]},
		{"prune-while-marking", "Pruning takes no marker that is not old, whoever marks at the same time, and counts none twice.", pruneWhileMarking[Tx]},
	}
}

// old is a time long ago, n microseconds after the first.
func old(n int) time.Time {
	return time.Date(1999, 12, 31, 23, 59, 59, 999_999_000, time.UTC).Add(time.Duration(n) * time.Microsecond)
}

// prunable commits a marker at old(n).
func prunable[Tx any](e *env[Tx], id string, n int) {
	e.Helper()
	e.must(func(tx Tx) error { return wantMarkAt(e, tx, e.scope, id, old(n)) })
}

func wantMarkAt[Tx any](e *env[Tx], tx Tx, scope, id string, at time.Time) error {
	fresh, err := e.markAt(tx, scope, id, at)
	if err == nil && !fresh {
		err = fmt.Errorf("Mark(%q, %q) = false, want true", scope, id)
	}
	return err
}

func prune[Tx any](e *env[Tx], before time.Time, n int) (removed int) {
	e.Helper()
	e.must(func(tx Tx) (err error) {
		removed, err = e.Store.Prune(e.ctx, tx, before, n)
		return e.fine(err)
	})
	return removed
}

// removeOld removes what is there from before, so that what is pruned can be counted.
func removeOld[Tx any](e *env[Tx]) {
	e.Helper()
	if _, err := dedup.Prune(e.ctx, e.InTx, e.Store, day.AddDate(-1, 0, 0), 0); err != nil {
		e.Fatalf("%v", err)
	}
}

func pruneOldestFirst[Tx any](e *env[Tx]) {
	removeOld(e)
	const n = 9
	scope := func(i int) string { return fmt.Sprintf("%s/%d", e.scope, i%2) }
	id := func(i int) string { return fmt.Sprintf("%d-%d", (i*7)%n, i) } // in another order than the times
	e.must(func(tx Tx) error {
		for _, i := range rand.Perm(n) {
			at := old(i)
			if i%3 == 0 {
				at = at.In(time.FixedZone("", -11*3600)) // the same moment
			}
			if i == 0 {
				at = time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)
			}
			if err := wantMarkAt(e, tx, scope(i), id(i), at); err != nil {
				return err
			}
		}
		return nil
	})
	gone := 0
	for _, step := range []struct{ before, limit, want int }{
		{0, 10, 1}, // only the one of 1960
		{1, 10, 0}, // not the one at that very time
		{n, 3, 3},
		{n - 2, 10, n - 2 - 4},
		{n, 1, 1},
		{n, 10, 1},
		{n, 10, 0},
	} {
		if got := prune(e, old(step.before), step.limit); got != step.want {
			e.Fatalf("Prune before time %d with limit %d removed %d markers, want %d", step.before, step.limit, got, step.want)
		}
		gone += step.want
		for i := range n {
			if got := e.seen(scope(i), id(i)); got != (i >= gone) {
				e.Fatalf("after pruning %d markers, number %d from the oldest is there: %t", gone, i+1, got)
			}
		}
	}
	e.must(func(tx Tx) error { return e.wantMark(tx, scope(0), id(0), true) }) // as if never seen
}

func pruneBatches[Tx any](e *env[Tx]) {
	removeOld(e)
	const n = 25
	e.must(func(tx Tx) error {
		for i := range n {
			if err := wantMarkAt(e, tx, e.scope, fmt.Sprintf("old-%d", i), old(i)); err != nil {
				return err
			}
		}
		return e.wantMark(tx, e.scope, "new", true)
	})
	batches := 0
	inTx := func(ctx context.Context, fn func(Tx) error) error {
		batches++
		return e.InTx(ctx, fn)
	}
	removed, err := dedup.Prune(e.ctx, inTx, e.Store, old(n), 10)
	if err != nil || removed != n {
		e.Fatalf("dedup.Prune = %d, %v, want %d", removed, err, n)
	}
	if batches < 3 {
		e.Errorf("%d markers were removed in %d batches of at most 10", n, batches)
	}
	if !e.seen(e.scope, "new") || e.seen(e.scope, "old-0") || e.seen(e.scope, fmt.Sprintf("old-%d", n-1)) {
		e.Errorf("not the old ones were removed")
	}
}

func pruneRollback[Tx any](e *env[Tx]) {
	removeOld(e)
	prunable(e, "a", 1)
	e.giveUp(func(tx Tx) error {
		n, err := e.Store.Prune(e.ctx, tx, old(2), 10)
		if err != nil || n != 1 {
			return errors.Join(fmt.Errorf("Prune removed %d markers, want 1", n), e.fine(err))
		}
		return e.wantMark(tx, e.scope, "a", true) // gone for this transaction
	})
	if !e.seen(e.scope, "a") {
		e.Errorf("the marker is gone")
	}
}

func pruneKeepsVersions[Tx any](e *env[Tx]) {
	removeOld(e)
	e.must(func(tx Tx) error {
		if err := wantMarkAt(e, tx, e.scope, "a", old(1)); err != nil {
			return err
		}
		return e.wantAdvance(tx, e.scope, obj, 7, true)
	})
	if n := prune(e, old(2), 10); n != 1 {
		e.Errorf("Prune removed %d markers, want 1", n)
	}
	e.must(func(tx Tx) error { // the event that comes after the retention
		if err := e.wantMark(tx, e.scope, "a", true); err != nil {
			return err
		}
		return e.wantAdvance(tx, e.scope, obj, 7, false)
	})
}

// pruneTwice prunes while another transaction has pruned the same markers and is
// still open.
func pruneTwice[Tx any](e *env[Tx]) {
	const n = 5
	for _, commit := range []bool{true, false} {
		removeOld(e)
		for i := range n {
			prunable(e, fmt.Sprintf("old-%d", i), i)
		}
		var first, second int
		e.during(commit,
			func(tx Tx) (err error) {
				first, err = e.Store.Prune(e.ctx, tx, old(n), 3)
				return e.fine(err)
			},
			func(tx Tx, _ func() bool) (err error) {
				second, err = e.Store.Prune(e.ctx, tx, old(n), n)
				return e.fine(err)
			})
		if !commit {
			first = 0
		}
		if rest := prune(e, old(n), n); first+second+rest != n {
			e.Errorf("two transactions at once removed %d and %d markers and a third %d, of %d in all", first, second, rest, n)
		}
	}
}

func pruneWhileMarking[Tx any](e *env[Tx]) {
	pruneTwice(e)
	removeOld(e)
	const n, pruners, markers = 60, 2, 4
	e.must(func(tx Tx) error {
		for i := range n {
			if err := wantMarkAt(e, tx, e.scope, fmt.Sprintf("old-%d", i), old(i)); err != nil {
				return err
			}
		}
		return nil
	})
	var removed, marking atomic.Int64
	marking.Store(markers)
	again := make([]bool, n) // marked again after it was pruned; one goroutine each
	e.each(pruners+markers, func(w int) error {
		if w < pruners {
			for got := 1; got > 0 || marking.Load() > 0; {
				if err := e.run(func(tx Tx) (err error) {
					got, err = e.Store.Prune(e.ctx, tx, old(n), 7)
					return e.fine(err)
				}); err != nil {
					return err
				}
				if got > 7 {
					return fmt.Errorf("Prune with limit 7 removed %d markers", got)
				}
				removed.Add(int64(got))
				// In a database with one writer two pruners without a pause leave
				// the others no turn.
				time.Sleep(time.Millisecond)
			}
			return nil
		}
		defer marking.Add(-1)
		for i := w - pruners; i < n; i += markers {
			if err := e.run(func(tx Tx) (err error) {
				if err = e.wantMark(tx, e.scope, fmt.Sprintf("new-%d", i), true); err != nil {
					return err
				}
				again[i], err = e.mark(tx, e.scope, fmt.Sprintf("old-%d", n-1-i))
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	removed.Add(int64(prune(e, old(n), n)))
	if got := removed.Load(); got != n {
		e.Errorf("%d markers were removed, want %d", got, n)
	}
	for i := range n {
		if !e.seen(e.scope, fmt.Sprintf("new-%d", i)) {
			e.Fatalf("a marker that is not old was removed")
		}
		if got := e.seen(e.scope, fmt.Sprintf("old-%d", n-1-i)); got != again[i] {
			e.Fatalf("an old marker that was pruned, and marked again: %t, is there: %t", again[i], got)
		}
	}
}
