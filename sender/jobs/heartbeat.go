package jobs

import (
	"context"
	"errors"
	"time"
)

// heartbeat prolongs the lease until done is closed, stores progress, and ends the
// function's context when the job was cancelled or the lease is lost.
func (t *attempt[Tx]) heartbeat(hard context.Context, done <-chan struct{}) {
	every := t.j.cfg.Lease / 3
	timer := time.NewTimer(every)
	defer timer.Stop()
	due := t.j.cfg.Now().Add(every)
	in := func(d time.Duration) {
		due = t.j.cfg.Now().Add(d)
		timer.Reset(d)
	}
	for {
		select {
		case <-done:
			return
		case <-hard.Done():
			return
		case <-t.reported:
			// Many reports in a second are one write.
			if at := t.j.cfg.Now().Add(min(progressAtMost, every)); at.Before(due) {
				in(min(progressAtMost, every))
			}
			continue
		case <-t.asked:
		case <-timer.C:
		}
		switch err := t.prolong(hard); {
		case err == nil:
			in(every)
		case errors.Is(err, ErrLost):
			t.stop(ErrLost)
			return
		default:
			t.j.cfg.Logger.WarnContext(hard, "a job's lease could not be prolonged; it is tried again until it ends",
				"kind", t.claimed.Kind, "job", t.claimed.ID, "error", err)
			if t.expired() {
				// Another worker may have begun already. If the
				// database answers again before that happens, the
				// function's result is stored all the same.
				if t.steps.Load() > 0 {
					t.stopStep(hard)
				}
				t.stop(ErrLost)
				return
			}
			in(max(every/4, time.Millisecond))
		}
	}
}

// prolong begins the lease anew.
func (t *attempt[Tx]) prolong(hard context.Context) error {
	ctx, cancel := context.WithTimeout(hard, max(t.remaining(), time.Millisecond))
	defer cancel()
	cancelled := false
	err := t.locked(ctx, func(_ Tx, r *Record) error {
		cancelled = r.CancelRequested
		return nil
	})
	if err == nil && cancelled {
		t.stop(ErrCancelled)
	}
	return err
}

// stopStep ends the function's context because a call of Run.InTx takes longer than the lease.
func (t *attempt[Tx]) stopStep(ctx context.Context) {
	t.j.cfg.Logger.ErrorContext(ctx, "a job's Run.InTx has taken longer than its lease and is given up: unless the database was away, or the connection dead, do less in each call, or set a longer Config.Lease",
		"kind", t.claimed.Kind, "job", t.claimed.ID, "lease", t.j.cfg.Lease)
	t.stop(errStep)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
