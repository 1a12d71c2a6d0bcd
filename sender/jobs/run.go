package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Run is one try of a job, as its kind's function sees it. It is safe for concurrent
// use. The function must not use it after it has returned.
type Run[Tx any] struct {
	t *attempt[Tx]
}

// Step is one transaction of Run.InTx.
type Step struct {
	state    []byte
	saved    bool
	progress *Progress
}

// Save makes the transaction store the state from which the function can go on. The
// last call of a step counts. Only the kind interprets the bytes.
func (s *Step) Save(state []byte) { s.state, s.saved = bytes.Clone(state), true }

// Progress makes the transaction store how much is done, in units of the kind. A total of 0
// is not known.
func (s *Step) Progress(done, total int64) { s.progress = &Progress{Done: done, Total: total} }

// Job returns the job as it was claimed for this run, with its input.
func (r *Run[Tx]) Job() Job { return r.t.claimed.Job }

// State returns the state that was saved last, by this run or by an earlier one, or
// nil.
func (r *Run[Tx]) State() []byte {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return bytes.Clone(r.t.state)
}

// Progress reports how much of the job is done, in units of the kind. A total of 0 is not
// known. It never waits: the report is stored about a second later.
func (r *Run[Tx]) Progress(done, total int64) {
	r.t.mu.Lock()
	r.t.progress = &Progress{Done: done, Total: total}
	r.t.mu.Unlock()
	select {
	case r.t.reported <- struct{}{}:
	default:
	}
}

// Save stores the state from which the function goes on after a crash. Once Save has
// returned nil, the state is durable.
func (r *Run[Tx]) Save(ctx context.Context, state []byte) error {
	return r.InTx(ctx, func(_ Tx, s *Step) error {
		s.Save(state)
		return nil
	})
}

// InTx runs fn in a transaction of the store's database. The effects of fn and the
// state that it saves with the Step commit together, or not at all. The transaction
// commits only while this run has the job: else fn is not called, and the error matches
// ErrLost. If somebody has cancelled the job, fn is not called, and the error matches
// ErrCancelled.
//
// If fn returns an error the transaction is rolled back, and InTx returns the error. fn
// may run more than once, if the database could not serialise the transaction. It must
// not take longer than Config.Lease, because the lease cannot be prolonged meanwhile: the
// function's context ends then. It must call no methods of the Run except Job and State.
//
// If the commit itself fails, it may have taken effect or not. The function should
// return that error: the next run's State tells whether it did.
func (r *Run[Tx]) InTx(ctx context.Context, fn func(tx Tx, step *Step) error) error {
	t := r.t
	t.steps.Add(1)
	defer t.steps.Add(-1)
	// A connection that is dead without a word locks nothing, and the heartbeat would prolong
	// the lease on another one for as long as the call hangs.
	defer time.AfterFunc(t.j.cfg.Lease, func() { t.stopStep(ctx) }).Stop()
	var s Step
	err := t.locked(ctx, func(tx Tx, rec *Record) error {
		s = Step{}
		if rec.CancelRequested {
			return ErrCancelled
		}
		if err := fn(tx, &s); err != nil {
			return err
		}
		if len(s.state) > t.j.cfg.MaxStateBytes {
			return Permanent(fmt.Errorf("%w state: it has %d bytes: at most %d are allowed (Config.MaxStateBytes)", ErrInvalid, len(s.state), t.j.cfg.MaxStateBytes))
		}
		if s.saved {
			rec.save(s.state)
		}
		if s.progress != nil {
			rec.Progress = s.progress
		}
		return nil
	})
	switch {
	case errors.Is(err, ErrLost):
		t.stop(ErrLost)
	case errors.Is(err, ErrCancelled):
		t.stop(ErrCancelled)
	case err == nil:
		t.mu.Lock()
		if s.saved {
			t.state = s.state
		}
		if s.progress != nil {
			t.progress, t.stored = s.progress, s.progress
		}
		t.mu.Unlock()
	}
	return err
}
