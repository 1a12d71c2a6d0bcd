package jobs

import (
	"context"
	"fmt"
)

// Cancel ends a queued job at once. If the job is running, Cancel ends its function's
// context, with ErrCancelled. The job ends cancelled if its function then returns an
// error, and succeeded if the function returns a result. Cancel returns the job as it is
// after the call. To cancel a job again while it is ending changes nothing. It returns
// ErrNotFound if there is no such job, and ErrFinished if the job has ended. A queued job
// with a callback URL is ended only where Config.Announcer is set: else Cancel returns
// ErrNoAnnouncer.
func (j *Jobs[Tx]) Cancel(ctx context.Context, k Key) (job Job, err error) {
	err = j.inTx(ctx, func(tx Tx) error {
		job, err = j.CancelTx(ctx, tx, k)
		return err
	})
	if err != nil {
		return Job{}, err
	}
	if job.Status.Finished() {
		j.finished(ctx, job)
	} else {
		j.nudge(job.ID)
	}
	return job, nil
}

// CancelTx is Cancel in the caller's transaction. The context of a running job ends
// when its worker prolongs the lease the next time, within a third of Config.Lease.
func (j *Jobs[Tx]) CancelTx(ctx context.Context, tx Tx, k Key) (Job, error) {
	r, now, err := j.store.LockTx(ctx, tx, k)
	if err != nil {
		return Job{}, err
	}
	if err := r.cancel(now); err != nil {
		return Job{}, err
	}
	if err := j.put(ctx, tx, r); err != nil {
		return Job{}, err
	}
	return r.Job, nil
}

// put stores a record, and announces the job if the record completes it.
func (j *Jobs[Tx]) put(ctx context.Context, tx Tx, r Record) error {
	told := r.Status.Finished() && r.CallbackURL != ""
	if told && j.cfg.Announcer == nil {
		return fmt.Errorf("%w: job %q has a callback URL, to which its end could not be told: set Config.Announcer, as the process does that has accepted the job (see NewCallbacks)", ErrNoAnnouncer, r.ID)
	}
	if err := j.store.UpdateTx(ctx, tx, r); err != nil || !told {
		return err
	}
	return j.cfg.Announcer.CompletedTx(ctx, tx, r.Job)
}

// nudge makes the worker that runs a job in this process look at it now.
func (j *Jobs[Tx]) nudge(id string) {
	j.mu.Lock()
	t := j.attempts[id]
	j.mu.Unlock()
	if t != nil {
		t.look()
	}
}
