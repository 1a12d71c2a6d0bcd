package deduptest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/dberr"
)

// env has all that a rule needs.
type env[Tx any] struct {
	reporter
	Harness[Tx]
	t     *testing.T // for Reopen
	ctx   context.Context
	scope string
	alone bool // there is one writer: another transaction begins when it has ended
}

// window is how long a store that should wait is given to answer wrongly. A right
// one is never judged by time.
const window = 50 * time.Millisecond

// beginning is how long the other transaction is given to begin, which takes a
// connection. Where there is one writer, it does not.
const beginning = 500 * time.Millisecond

var (
	errGivenUp = errors.New("given up on purpose")
	// day is when the suite's events happen; to prune, it uses times long before.
	day = time.Now().UTC().Truncate(time.Second)
	obj = dedup.Object{Type: "subscriber", ID: "s-1"}
)

func unique() string { return rand.Text()[:8] }

// run runs fn in a transaction, again for as long as it must be run again.
func (e *env[Tx]) run(fn func(Tx) error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := e.InTx(e.ctx, fn)
		// An error of the begin or the commit is not the store's and is not wrapped.
		if err == nil || !errors.Is(err, dedup.ErrRetryTx) && dberr.Classify(err) != dberr.Retry {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-e.ctx.Done():
			return fmt.Errorf("still to be run again when the time was over: %w", err)
		}
	}
}

// must runs fn and ends the test if it cannot be committed.
func (e *env[Tx]) must(fn func(Tx) error) {
	e.Helper()
	if err := e.run(fn); err != nil {
		e.Fatalf("%v", err)
	}
}

// giveUp runs fn in a transaction that is rolled back.
func (e *env[Tx]) giveUp(fn func(Tx) error) {
	e.Helper()
	err := e.run(func(tx Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errGivenUp
	})
	if !errors.Is(err, errGivenUp) {
		e.Fatalf("rolling back: the transaction returned %v, not its function's error", err)
	}
}

// each runs fn n times at once and waits for all.
func (e *env[Tx]) each(n int, fn func(i int) error) {
	e.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		e.Fatalf("%v", err)
	}
}

// fine checks an error from the store on its way out: a lost transaction that does
// not say so is a violation.
func (e *env[Tx]) fine(err error) error {
	if dberr.Classify(err) == dberr.Retry && !errors.Is(err, dedup.ErrRetryTx) {
		e.Errorf("the store returned %q, which does not match ErrRetryTx", err)
	}
	return err
}

// await waits until all have come this far, but not for ever: with a store that
// has one transaction at a time they never do.
func await(all <-chan struct{}) {
	timer := time.NewTimer(window)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	}
}

func (e *env[Tx]) mark(tx Tx, scope, id string) (bool, error) {
	return e.markAt(tx, scope, id, day)
}

func (e *env[Tx]) markAt(tx Tx, scope, id string, at time.Time) (bool, error) {
	fresh, err := e.Store.Mark(e.ctx, tx, scope, id, at)
	return fresh, e.fine(err)
}

func (e *env[Tx]) advance(tx Tx, scope string, o dedup.Object, v int64) (bool, error) {
	newer, err := e.Store.Advance(e.ctx, tx, scope, o, v)
	return newer, e.fine(err)
}

// wantMark marks and returns an error unless the answer is fresh.
func (e *env[Tx]) wantMark(tx Tx, scope, id string, fresh bool) error {
	got, err := e.mark(tx, scope, id)
	if err == nil && got != fresh {
		err = fmt.Errorf("Mark(%q, %q) = %t, want %t", scope, id, got, fresh)
	}
	return err
}

// wantAdvance advances and returns an error unless the answer is newer.
func (e *env[Tx]) wantAdvance(tx Tx, scope string, o dedup.Object, v int64, newer bool) error {
	got, err := e.advance(tx, scope, o, v)
	if err == nil && got != newer {
		err = fmt.Errorf("Advance(%q, %q, %d) = %t, want %t", scope, o, v, got, newer)
	}
	return err
}

func (e *env[Tx]) wantVersion(tx Tx, scope string, o dedup.Object, want int64) error {
	got, err := e.Store.Version(e.ctx, tx, scope, o)
	if err = e.fine(err); err == nil && got != want {
		err = fmt.Errorf("Version(%q, %q) = %d, want %d", scope, o, got, want)
	}
	return err
}

// seen reports whether the event has a committed marker.
func (e *env[Tx]) seen(scope, id string) (seen bool) {
	e.Helper()
	e.giveUp(func(tx Tx) error {
		fresh, err := e.mark(tx, scope, id)
		seen = !fresh
		return err
	})
	return seen
}

// version returns the committed version.
func (e *env[Tx]) version(scope string, o dedup.Object) (v int64) {
	e.Helper()
	e.must(func(tx Tx) (err error) {
		v, err = e.Store.Version(e.ctx, tx, scope, o)
		return e.fine(err)
	})
	return v
}

// during runs first in a transaction that stays open while second runs in another one.
// Then it commits or rolls back the first, and waits for both. second gets a function that
// says whether the first was surely open until then.
func (e *env[Tx]) during(commit bool, first func(Tx) error, second func(tx Tx, open func() bool) error) {
	e.Helper()
	var mu sync.Mutex
	isOpen := false
	set := func(v bool) {
		mu.Lock()
		defer mu.Unlock()
		isOpen = v
	}
	open := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return isOpen
	}
	var done chan error
	err := e.run(func(tx Tx) error {
		if err := first(tx); err != nil {
			return err
		}
		set(true)
		begun := make(chan struct{})
		if done == nil { // not again when this transaction must be run again
			done = make(chan error, 1)
			var once sync.Once
			go func() {
				done <- e.run(func(tx Tx) error {
					once.Do(func() { close(begun) })
					return second(tx, open)
				})
			}()
		}
		if !e.alone {
			select {
			case <-begun:
			case <-time.After(beginning):
				e.alone = true // it is not waited for again in this rule
			}
		}
		select {
		case err := <-done:
			done <- err
		case <-time.After(window):
		}
		set(false)
		if !commit {
			return errGivenUp
		}
		return nil
	})
	if !commit && errors.Is(err, errGivenUp) {
		err = nil
	}
	var secondErr error
	if done != nil {
		secondErr = <-done
	}
	if err := errors.Join(err, secondErr); err != nil {
		e.Fatalf("%v", err)
	}
}
