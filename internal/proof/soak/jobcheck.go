package soak

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/surehook/surehook/sender/jobs"
)

// checkJobs looks at all jobs that are known, and forgets those that were pruned. It
// returns how many have not ended.
func (c *cycle) checkJobs(ctx context.Context) (running int, err error) {
	c.w.mu.Lock()
	var list []*job
	for _, j := range c.w.jobs {
		list = append(list, j)
	}
	c.w.mu.Unlock()
	for _, known := range list {
		now, err := c.jobs.Get(ctx, jobs.Key{ID: known.id})
		if errors.Is(err, jobs.ErrNotFound) {
			c.lose(known)
			if err := c.dropSteps(ctx, known.id); err != nil {
				return 0, err
			}
			continue
		}
		if err != nil {
			return 0, err
		}
		c.w.mu.Lock()
		known.looked = time.Now()
		c.w.mu.Unlock()
		if !now.Status.Finished() {
			running++
			continue
		}
		done, err := column[int64](ctx, c.db.base, "SELECT step FROM soak_steps WHERE job = $1 ORDER BY step", known.id)
		if err != nil {
			return 0, err
		}
		for i, step := range done {
			if int64(i) != step {
				c.w.add("jobs", "the steps of job %s had these effects: %v", known.id, done)
				break
			}
		}
		if now.Status == jobs.Succeeded && len(done) != steps {
			c.w.add("jobs", "job %s succeeded with %d of %d steps", known.id, len(done), steps)
		}
		if now.Status == jobs.Failed {
			c.w.add("jobs", "job %s failed, which was to be tried again: %s", known.id, now.Error)
		}
		c.w.mu.Lock()
		known.ended = true
		c.w.mu.Unlock()
	}
	return running, nil
}

// lose forgets a job that is not on record any more. Finished jobs are kept for the
// reach.
func (c *cycle) lose(j *job) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	since := time.Since(j.looked)
	switch {
	case c.w.jobs[j.id] != j: // the job was forgotten already
		return
	case j.ended:
		c.announced(j)
	case since < c.cfg.patience():
		c.w.add("jobs", "job %s is gone, and had not ended %v before", j.id, since)
	default:
		c.w.count("jobs pruned before they were checked")
	}
	delete(c.w.jobs, j.id)
	delete(c.w.told, j.id)
}

// announced checks that a job that ended was announced once, if it has a callback. It
// is called with the witness's lock held.
func (c *cycle) announced(j *job) {
	want := 0
	if j.callback != "" {
		want = 1
	}
	if told := c.w.told[j.id]; told > want || told < want && !c.feed.excuses(&event{began: j.began}) {
		c.w.add("jobs", "the completion of job %s was announced %d times, not %d", j.id, told, want)
	}
}

func (c *cycle) checkCallbacks() {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for _, j := range c.w.jobs {
		c.announced(j)
	}
}

// callback is the slot to which a job's completion is posted.
func (w *witness) callback(id string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[id]; j != nil {
		return j.callback
	}
	return ""
}

func (c *cycle) dropSteps(ctx context.Context, id string) error {
	return c.db.store.InTx(ctx, func(tx *sql.Tx) error {
		return c.db.exec(ctx, tx, "DELETE FROM soak_steps WHERE job = $1", id)
	})
}
