package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// errStored is an ErrLost of a run whose own outcome is stored: nothing else ends a running
// job under its token.
var errStored = fmt.Errorf("%w: its outcome is stored", ErrLost)

// errStep is the ErrLost of a run with a call of Run.InTx that takes too long.
var errStep = fmt.Errorf("%w: a call of Run.InTx took longer than the lease", ErrLost)

// attempt is one try of a claimed job by a worker.
type attempt[Tx any] struct {
	j        *Jobs[Tx]
	kind     *Kind[Tx]
	claimed  Record
	stop     context.CancelCauseFunc // ends the function's context
	stopped  func() bool             // tells whether that has ended
	reported chan struct{}           // progress was reported
	asked    chan struct{}           // prolong the lease now: see look
	steps    atomic.Int64            // calls of Run.InTx that are under way

	mu       sync.Mutex
	renewed  time.Time // on this process's clock: the lease lasts from then on at least
	state    []byte
	progress *Progress // not stored yet, if it differs from stored
	stored   *Progress
}

func newAttempt[Tx any](j *Jobs[Tx], k *Kind[Tx], r Record, renewed time.Time) *attempt[Tx] {
	return &attempt[Tx]{
		j: j, kind: k, claimed: r, renewed: renewed, state: r.State, progress: r.Progress, stored: r.Progress,
		stop: func(error) {}, reported: make(chan struct{}, 1), asked: make(chan struct{}, 1),
	}
}

// look has the lease prolonged now, so that the worker learns at once that the job was
// cancelled.
func (t *attempt[Tx]) look() {
	select {
	case t.asked <- struct{}{}:
	default:
	}
}

// goesOn returns the run of a job that is due, if it is one of this process and has not been told
// to end. Its lease ended while the machine was suspended, or the clock was set forward: nobody
// else has claimed the job since.
func (j *Jobs[Tx]) goesOn(r Record) *attempt[Tx] {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t := j.attempts[r.ID]; t != nil && r.Status == Running && r.Token == t.claimed.Token && !t.stopped() {
		return t
	}
	return nil
}

// locked runs fn in a transaction on the job's record, under the token, stores the
// record as fn changes it, and begins the lease anew.
func (t *attempt[Tx]) locked(ctx context.Context, fn func(tx Tx, r *Record) error) error {
	from := t.j.cfg.Now()
	var progress *Progress
	err := t.j.inTx(ctx, func(tx Tx) error {
		r, now, err := t.j.store.LockTx(ctx, tx, Key{ID: t.claimed.ID})
		if errors.Is(err, ErrNotFound) {
			return ErrLost
		}
		if err != nil {
			return err
		}
		switch {
		case r.Token != t.claimed.Token:
			return ErrLost
		case r.Status != Running:
			return errStored
		}
		t.mu.Lock()
		progress = t.progress
		if progress != t.stored { // else a step may have stored a later one
			r.Progress = progress
		}
		t.mu.Unlock()
		r.Due = now.Add(t.j.cfg.Lease)
		if err := fn(tx, &r); err != nil {
			return err
		}
		return t.j.put(ctx, tx, r)
	})
	if err == nil {
		t.mu.Lock()
		t.renewed, t.stored = from, progress
		t.mu.Unlock()
	}
	return err
}

// run runs the kind's function and stores its result. hard ends when the process cannot
// wait any longer.
func (t *attempt[Tx]) run(ctx, hard context.Context, over error) {
	if over != nil {
		if r, lost := t.record(hard, nil, over, nil); !lost {
			t.j.finished(hard, r.Job)
		}
		return
	}
	ctx = t.j.started(ctx, t.claimed.Job)
	ctx, t.stop = context.WithCancelCause(ctx)
	t.stopped = func() bool { return ctx.Err() != nil }
	defer t.stop(nil)
	t.j.mu.Lock()
	t.j.attempts[t.claimed.ID] = t
	t.j.mu.Unlock()
	defer func() {
		t.j.mu.Lock()
		defer t.j.mu.Unlock()
		if t.j.attempts[t.claimed.ID] == t {
			delete(t.j.attempts, t.claimed.ID)
		}
	}()
	done, beating := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(beating)
		t.heartbeat(hard, done)
	}()

	running := ctx
	if t.kind.Timeout > 0 {
		var cancel context.CancelFunc
		running, cancel = context.WithTimeoutCause(ctx, t.kind.Timeout, ErrTimeout)
		defer cancel()
	}
	begun := t.j.cfg.Now()
	result, err := t.call(running)
	ended := Try{Job: t.claimed.Job, Took: t.j.cfg.Now().Sub(begun)}
	result, err = t.checked(result, err)
	ended.Err = err
	r, lost := t.record(hard, result, err, context.Cause(running))
	close(done)
	<-beating
	if ended.Lost = lost; !lost {
		ended.Job = r.Job
	}
	t.j.ended(ctx, ended)
	if !lost && r.Status.Finished() {
		t.j.finished(ctx, r.Job)
	}
}

// call calls the kind's function in a goroutine of its own: the function may end its
// goroutine (runtime.Goexit).
func (t *attempt[Tx]) call(ctx context.Context) (result json.RawMessage, err error) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		normal := false
		defer func() {
			if normal {
				return
			}
			v := recover()
			result, err = nil, panicked{v}
			t.j.cfg.Logger.ErrorContext(ctx, "a kind's function panicked; the try counts as failed",
				"kind", t.claimed.Kind, "job", t.claimed.ID, "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		}()
		result, err = t.kind.Run(ctx, &Run[Tx]{t})
		normal = true
	}()
	<-returned
	return result, err
}

// checked refuses a result that cannot be stored.
func (t *attempt[Tx]) checked(result json.RawMessage, err error) (json.RawMessage, error) {
	switch most := t.j.cfg.MaxResultBytes; {
	case err != nil || len(result) == 0:
		return nil, err
	case len(result) > most:
		return nil, Permanent(fmt.Errorf("the result has %d bytes: at most %d are allowed (Config.MaxResultBytes)", len(result), most))
	case !json.Valid(result) || !utf8.Valid(result):
		return nil, Permanent(errors.New("the result is not valid JSON in UTF-8"))
	}
	return result, nil
}

// record stores the outcome of the try, with the event of the job's completion. It
// repeats that after errors for as long as this try has the job and hard has not ended. A
// commit that has failed may have taken effect all the same: the repetition finds that.
func (t *attempt[Tx]) record(hard context.Context, result json.RawMessage, err, cause error) (r Record, lost bool) {
	for pause := recordPause; ; pause = min(2*pause, recordPauseMax) {
		chance := t.j.cfg.Chance()
		// A connection can be dead without a word. When the lease has ended there is still a
		// chance, unless another worker has begun.
		ctx, cancel := context.WithTimeout(hard, max(t.remaining(), t.j.cfg.Lease/3))
		failed := t.contained(hard, func() error {
			return t.locked(ctx, func(_ Tx, rec *Record) error {
				due := rec.Due.Add(-t.j.cfg.Lease) // now
				rec.end(t.kind.rules(), result, err, cause, due, chance)
				r = *rec
				return nil
			})
		})
		cancel()
		if failed == nil || errors.Is(failed, errStored) && r.ID != "" {
			r.Input = t.claimed.Input
			return r, false
		}
		if errors.Is(failed, ErrLost) || hard.Err() != nil || t.expired() {
			message := "the outcome of a job's try was not stored; the job is due again when its lease ends"
			if r.ID != "" {
				message = "it is not known whether the outcome of a job's try was stored; if it was not, the job is due again when its lease ends"
			}
			t.j.cfg.Logger.WarnContext(hard, message,
				"kind", t.claimed.Kind, "job", t.claimed.ID, "error", failed)
			return Record{}, true
		}
		t.j.cfg.Logger.ErrorContext(hard, "the outcome of a job's try could not be stored; it is tried again",
			"kind", t.claimed.Kind, "job", t.claimed.ID, "error", failed)
		sleep(hard, pause)
	}
}

// contained makes an error of a panic. Code of the application runs in the transaction that
// ends a job: the Announcer, a publisher's check, the kind's Schedule. A panic there would end
// the process, and then each other one that takes the job over.
func (t *attempt[Tx]) contained(ctx context.Context, store func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			t.j.cfg.Logger.ErrorContext(ctx, "storing the outcome of a job's try panicked",
				"kind", t.claimed.Kind, "job", t.claimed.ID, "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			err = fmt.Errorf("jobs: storing the outcome panicked with a %T", v)
		}
	}()
	return store()
}

// remaining is how long the lease lasts at least.
func (t *attempt[Tx]) remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.j.cfg.Lease - t.j.cfg.Now().Sub(t.renewed)
}

// expired tells whether the lease may have ended.
func (t *attempt[Tx]) expired() bool { return t.remaining() <= 0 }
