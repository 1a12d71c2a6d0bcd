package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Run is one try of a job, as its kind's function sees it. It is safe for
// concurrent use, and of no use once the function has returned.
type Run[Tx any] struct {
	t *attempt[Tx]
}

// Step is the part of a job that is done in one transaction of Run.InTx.
type Step struct {
	state    []byte
	saved    bool
	progress *Progress
}

// Save has the transaction store what the function is to go on from. The last call
// of a step counts. The bytes are the kind's own.
func (s *Step) Save(state []byte) { s.state, s.saved = bytes.Clone(state), true }

// Progress has the transaction store how much is done, in units of the kind.
func (s *Step) Progress(done, total int64) { s.progress = &Progress{Done: done, Total: total} }

// Job returns the job as it was claimed for this run, with its input.
func (r *Run[Tx]) Job() Job { return r.t.claimed.Job }

// State returns what was saved last, by this run or by an earlier one, or nil.
func (r *Run[Tx]) State() []byte {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	return bytes.Clone(r.t.state)
}

// Progress says how much of the job is done, in units of the kind. It waits for
// nothing: what is told is stored about a second later.
func (r *Run[Tx]) Progress(done, total int64) {
	r.t.mu.Lock()
	r.t.progress = &Progress{Done: done, Total: total}
	r.t.mu.Unlock()
	select {
	case r.t.reported <- struct{}{}:
	default:
	}
}

// Save stores what the function is to go on from after a crash. Once it has returned
// nil, that is durable.
func (r *Run[Tx]) Save(ctx context.Context, state []byte) error {
	return r.InTx(ctx, func(_ Tx, s *Step) error {
		s.Save(state)
		return nil
	})
}

// InTx runs fn in a transaction of the store's database: what fn does in it, and
// what it has the Step save, are committed together, or neither is. It commits only
// while this run has the job: else fn is not called, and the error matches ErrLost.
// Of a job that somebody has cancelled no further step is begun: ErrCancelled.
//
// If fn returns an error the transaction is rolled back, and the error returned. fn
// may run more than once, if the database could not serialise the transaction. It
// must not take longer than Config.Lease, and must not call methods of the Run but
// Job and State.
//
// After an error of the commit itself it is not known whether it was committed, and
// the function should return it: the next run's State says so.
func (r *Run[Tx]) InTx(ctx context.Context, fn func(tx Tx, step *Step) error) error {
	t := r.t
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
			t.progress = s.progress
		}
		t.mu.Unlock()
	}
	return err
}
