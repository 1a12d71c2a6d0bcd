package inboxtest

import (
	"errors"

	"github.com/surehook/surehook/receiver/inbox"
)

func resultRules[Tx any]() []rule[Tx] {
	return []rule[Tx]{
		{"finished", "What is finished is gone: it cannot be finished again, even when it was recorded anew.", finished[Tx]},
		{"finish-rollback", "A result that is rolled back changes nothing, and the claim still holds.", finishRollback[Tx]},
		{"put-back", "What is put back is due after the time that was said, as one more attempt, and its old claim is over.", putBack[Tx]},
		{"put-back-keeps-order", "A lower version that comes while its line waits goes first.", putBackKeepsOrder[Tx]},
		{"waits-in-line", "Those behind an event that was put back wait with it.", waitsInLine[Tx]},
	}
}

func finished[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	c := e.claimed("a")
	e.finish(c)
	e.lost("finishing twice", e.tryFinish(c))
	e.lost("putting back what is finished", e.tryRetry(c, 0))
	e.nothing("it is finished")
	if s := e.status(); s != (inbox.Status{}) {
		e.Errorf("the status is %+v after everything is finished", s)
	}
	e.record(event("line", "a", 1), true)
	anew := e.claimed("a")
	if anew.Attempt != 1 {
		e.Errorf("the event that was recorded anew is at attempt %d", anew.Attempt)
	}
	e.lost("finishing what was recorded anew under the claim of before", e.tryFinish(c))
	e.finish(anew)
}

func finishRollback[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	c := e.claimed("a")
	e.giveUp(func(tx Tx) error { return e.Store.FinishTx(e.ctx, tx, c) })
	e.giveUp(func(tx Tx) error { return e.Store.RetryTx(e.ctx, tx, c, 0, "it failed") })
	e.nothing("it is still claimed")
	if s := e.status(); s.Events != 1 || s.Failing != 0 {
		e.Errorf("the status is %+v, and nothing but one event has happened", s)
	}
	e.finish(c)
}

func putBack[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	c := e.claimed("a")
	e.retry(c, 0)
	e.lost("finishing what was put back", e.tryFinish(c))
	again := e.soon(scope, 10, long)[0]
	if again.ID != "a" || again.Attempt != 2 || again.Token == c.Token {
		e.Errorf("the next claim is of %q, attempt %d, token %d after %d", again.ID, again.Attempt, again.Token, c.Token)
	}
	e.retry(again, long)
	e.nothing("it is due in an hour")
	if s := e.status(); s.Events != 1 || s.Failing != 1 {
		e.Errorf("the status is %+v, and one event has failed", s)
	}
}

func putBackKeepsOrder[Tx any](e *env[Tx]) {
	e.record(event("line", "b", 2), true)
	c := e.claimed("b")
	e.record(event("line", "a", 1), true)
	e.retry(c, 0)
	first := e.soon(scope, 10, long)
	if len(first) != 1 || first[0].ID != "a" {
		e.Fatalf("claimed were %v, and the lowest version is that of a", ids(first))
	}
	e.finish(first[0])
	if c := e.claimed("b"); c.Attempt != 2 {
		e.Errorf("the one that failed is at attempt %d", c.Attempt)
	}
}

func waitsInLine[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	e.record(event("line", "b", 2), true)
	e.retry(e.claimed("a"), long)
	e.nothing("the line waits")
	e.record(event("line", "c", 0), true)
	e.nothing("the line waits, whatever comes")
	e.record(event("other", "d", 1), true)
	e.claimed("d")
}

// A method that fails returns an error that matches the context's.
func contextEnded[Tx any](e *env[Tx]) {
	e.record(event("line", "a", 1), true)
	c := e.claimed("a")
	ctx, cancel := cancelled(e.ctx)
	defer cancel()
	for name, call := range map[string]func(Tx) error{
		"RecordTx":  func(tx Tx) error { _, err := e.Store.RecordTx(ctx, tx, event("line", "b", 1)); return err },
		"ClaimTx":   func(tx Tx) error { _, err := e.Store.ClaimTx(ctx, tx, scope, 1, long); return err },
		"FinishTx":  func(tx Tx) error { return e.Store.FinishTx(ctx, tx, c) },
		"RetryTx":   func(tx Tx) error { return e.Store.RetryTx(ctx, tx, c, 0, "it failed") },
		"StatusTx":  func(tx Tx) error { _, err := e.Store.StatusTx(ctx, tx, scope); return err },
		"OverdueTx": func(tx Tx) error { _, err := e.Store.OverdueTx(ctx, tx, scope, long); return err },
	} {
		_ = e.InTx(e.ctx, func(tx Tx) error {
			if err := call(tx); !errors.Is(err, ctx.Err()) {
				e.Errorf("%s with a context that has ended: the error is %v", name, err)
			}
			return errGivenUp
		})
	}
	e.finish(c)
}
