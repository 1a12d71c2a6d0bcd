package inboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/receiver/inbox"
)

// env has all that a rule needs.
type env[Tx any] struct {
	reporter
	Harness[Tx]
	t   *testing.T // for Lose
	ctx context.Context
}

const (
	scope = "inboxtest"
	all   = ""        // the scope that means all that were recorded without OneScope
	long  = time.Hour // a lease that does not end meanwhile
)

var errGivenUp = errors.New("given up on purpose")

// run runs fn in a transaction, again for as long as it lost against another one.
func (e *env[Tx]) run(fn func(Tx) error) error {
	for {
		err := e.InTx(e.ctx, fn)
		if err == nil || dberr.Classify(err) != dberr.Retry {
			return err
		}
		e.pause()
		if e.ctx.Err() != nil {
			return fmt.Errorf("still to be run again when the time was over: %w", err)
		}
	}
}

// pause waits between two looks at something that takes its time.
func (e *env[Tx]) pause() {
	select {
	case <-time.After(2 * time.Millisecond):
	case <-e.ctx.Done():
	}
}

func (e *env[Tx]) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("%v", err)
	}
}

// giveUp runs fn in a transaction that is rolled back.
func (e *env[Tx]) giveUp(fn func(Tx) error) {
	e.Helper()
	err := e.run(func(tx Tx) error { return errors.Join(fn(tx), errGivenUp) })
	if err == nil || err.Error() != errGivenUp.Error() {
		e.Fatalf("rolling back: %v", err)
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
	e.must(errors.Join(errs...))
}

func event(line, id string, version int64) inbox.Record {
	return inbox.Record{Scope: scope, ID: id, Line: line, Type: "thing.made", Version: version, Body: []byte(id + "'s body")}
}

func (e *env[Tx]) tryRecord(r inbox.Record) (fresh bool, err error) {
	err = e.run(func(tx Tx) (err error) {
		fresh, err = e.Store.RecordTx(e.ctx, tx, r)
		return err
	})
	return fresh, err
}

// record records an event that must be fresh, or must not be.
func (e *env[Tx]) record(r inbox.Record, want bool) {
	e.Helper()
	fresh, err := e.tryRecord(r)
	e.must(err)
	if fresh != want {
		e.Fatalf("RecordTx of %q said %t, and must say %t", r.ID, fresh, want)
	}
}

func (e *env[Tx]) tryClaim(of string, limit int, lease time.Duration) (claims []inbox.Claim, err error) {
	err = e.run(func(tx Tx) (err error) {
		claims, err = e.Store.ClaimTx(e.ctx, tx, of, limit, lease)
		return err
	})
	return claims, err
}

func (e *env[Tx]) claim(limit int, lease time.Duration) []inbox.Claim {
	e.Helper()
	return e.claimOf(scope, limit, lease)
}

// claimOf claims in another scope, or in all.
func (e *env[Tx]) claimOf(of string, limit int, lease time.Duration) []inbox.Claim {
	e.Helper()
	claims, err := e.tryClaim(of, limit, lease)
	e.must(err)
	return claims
}

// claimed claims one event, which must be there, and must be this one.
func (e *env[Tx]) claimed(id string) inbox.Claim {
	e.Helper()
	claims := e.claim(10, long)
	if len(claims) != 1 || claims[0].ID != id {
		e.Fatalf("claimed were %v, and it must be %q alone", ids(claims), id)
	}
	return claims[0]
}

// nothing reports each event that can be claimed.
func (e *env[Tx]) nothing(why string) {
	e.Helper()
	if claims := e.claim(10, long); len(claims) > 0 {
		e.Fatalf("claimed were %v, though %s", ids(claims), why)
	}
}

// soon claims until something is due.
func (e *env[Tx]) soon(of string, limit int, lease time.Duration) []inbox.Claim {
	e.Helper()
	for {
		claims := e.claimOf(of, limit, lease)
		if len(claims) > 0 {
			return claims
		}
		if e.pause(); e.ctx.Err() != nil {
			e.Fatalf("nothing was ever due")
		}
	}
}

func (e *env[Tx]) tryFinish(c inbox.Claim) error {
	return e.run(func(tx Tx) error { return e.Store.FinishTx(e.ctx, tx, c) })
}

func (e *env[Tx]) finish(c inbox.Claim) {
	e.Helper()
	e.must(e.tryFinish(c))
}

func (e *env[Tx]) tryRetry(c inbox.Claim, after time.Duration) error {
	return e.run(func(tx Tx) error { return e.Store.RetryTx(e.ctx, tx, c, after, "it failed") })
}

func (e *env[Tx]) retry(c inbox.Claim, after time.Duration) {
	e.Helper()
	e.must(e.tryRetry(c, after))
}

// lost reports a result that was taken although the claim is over.
func (e *env[Tx]) lost(what string, err error) {
	e.Helper()
	if !errors.Is(err, inbox.ErrLeaseLost) {
		e.Fatalf("%s: the error is %v, and must match ErrLeaseLost", what, err)
	}
}

func (e *env[Tx]) status() inbox.Status {
	e.Helper()
	return e.statusOf(all)
}

func (e *env[Tx]) statusOf(of string) (s inbox.Status) {
	e.Helper()
	e.must(e.run(func(tx Tx) (err error) {
		s, err = e.Store.StatusTx(e.ctx, tx, of)
		return err
	}))
	return s
}

func (e *env[Tx]) overdueIn(of string, longer time.Duration) (o inbox.Overdue) {
	e.Helper()
	e.must(e.run(func(tx Tx) (err error) {
		o, err = e.Store.OverdueTx(e.ctx, tx, of, longer)
		return err
	}))
	return o
}

func ids(claims []inbox.Claim) (ids []string) {
	for _, c := range claims {
		ids = append(ids, c.ID)
	}
	return ids
}

func same(a, b inbox.Record) bool {
	if !bytes.Equal(a.Body, b.Body) {
		return false
	}
	a.Body, b.Body = nil, nil
	return a.Scope == b.Scope && a.ID == b.ID && a.Line == b.Line && a.Type == b.Type && a.Version == b.Version
}
