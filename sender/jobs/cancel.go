package jobs

import "context"

// Cancel ends a job that is queued at once, and makes the context of one that is
// running end, with ErrCancelled: it ends cancelled when its function returns an
// error, or succeeded if that has done all its work. It returns the job as it is
// then. Cancelling one again that is ending changes nothing. ErrNotFound;
// ErrFinished: it has ended.
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

// CancelTx is Cancel in the caller's transaction. The context of one that is running
// ends when its worker prolongs its lease the next time, within a third of it.
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

// put stores a record, and the event of its completion with it.
func (j *Jobs[Tx]) put(ctx context.Context, tx Tx, r Record) error {
	if err := j.store.UpdateTx(ctx, tx, r); err != nil {
		return err
	}
	if !r.Status.Finished() || r.CallbackURL == "" || j.cfg.Announcer == nil {
		return nil
	}
	return j.cfg.Announcer.CompletedTx(ctx, tx, r.Job)
}

// nudge has the worker that runs a job in this process look at it now.
func (j *Jobs[Tx]) nudge(id string) {
	j.mu.Lock()
	t := j.attempts[id]
	j.mu.Unlock()
	if t != nil {
		t.look()
	}
}
