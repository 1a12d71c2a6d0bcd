package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/ident"
)

// rules are a kind's settings for failures.
type rules struct {
	maxTries int
	retry    backoff.Policy
}

// claim leases a job that is due. If over is not nil, the job ends with that error, and
// its function is not run.
func (r *Record) claim(rl rules, token int64, now time.Time, lease time.Duration) (over error) {
	lost := r.Status == Running
	switch {
	case r.CancelRequested:
		over = ErrCancelled
	case lost && r.Tries >= rl.maxTries:
		times := "once"
		if r.Tries > 1 {
			times = fmt.Sprintf("%d times", r.Tries)
		}
		over = Permanent(fmt.Errorf("the process that ran it was lost, and it was begun %s without getting on", times))
	default:
		r.Tries++
	}
	r.Status, r.Token, r.Due = Running, token, now.Add(lease)
	if r.StartedAt.IsZero() && over == nil {
		r.StartedAt = now
	}
	return over
}

// unclaim takes a claim back after which no try was begun. Somebody may have cancelled the job
// meanwhile: the next claim ends it.
func (r *Record) unclaim(before Record) {
	r.Status, r.Due, r.Tries, r.StartedAt = before.Status, before.Due, before.Tries, before.StartedAt
}

// end decides the status of a job whose function has returned. cause is why the
// function's context ended; nil: it has not ended.
func (r *Record) end(rl rules, result json.RawMessage, err, cause error, now time.Time, chance float64) {
	switch {
	case err == nil:
		r.finish(Succeeded, now)
		r.Result, r.Error = result, ""
	case r.CancelRequested || errors.Is(cause, ErrCancelled) || errors.Is(err, ErrCancelled):
		r.finish(Cancelled, now)
		r.Error = ""
	case errors.Is(err, ErrPermanent):
		r.finish(Failed, now)
		r.Error = errorText(err)
	case errors.Is(cause, ErrDraining):
		r.Tries = max(r.Tries-1, 0)
		r.Status, r.Due = Queued, now
	case r.Tries >= rl.maxTries:
		r.finish(Failed, now)
		r.Error = errorText(tryError(err, cause))
	default:
		// Next's horizon is for deliveries; here the number of tries is the
		// bound.
		delay, _ := rl.retry.Next(backoff.State{Attempt: r.Tries}, chance)
		r.Status, r.Due, r.Error = Queued, now.Add(delay), errorText(tryError(err, cause))
	}
}

// tryError returns the reason why the context ended in place of an error that says only
// that it has ended.
func tryError(err, cause error) error {
	if cause != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return cause
	}
	return err
}

// cancel decides the status of a job that somebody cancels.
func (r *Record) cancel(now time.Time) error {
	switch {
	case r.Status.Finished():
		return fmt.Errorf("%w: it has %s", ErrFinished, r.Status)
	case r.Status == Queued:
		r.finish(Cancelled, now)
		r.Error = ""
	default:
		r.CancelRequested = true
	}
	return nil
}

// save stores the state that the function goes on from. A state that differs from the
// one before counts as progress: the tries are counted anew, from the present one.
func (r *Record) save(state []byte) {
	if string(r.State) != string(state) {
		r.State, r.Tries = state, 1
	}
}

func (r *Record) finish(s Status, now time.Time) {
	r.Status, r.FinishedAt, r.State, r.Due = s, now, nil, time.Time{}
}

// errorText is an error's text as databases take it: valid UTF-8, of a bounded length.
func errorText(err error) string {
	text := ident.MadeStorable(err.Error(), math.MaxInt)
	if len(text) <= maxErrorBytes {
		return text
	}
	return ident.MadeStorable(text, maxErrorBytes-len("…")) + "…"
}
