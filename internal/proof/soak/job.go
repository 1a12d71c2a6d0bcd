package soak

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/jobs"
)

// job is the witness's record of a job.
type job struct {
	id       string
	callback string // the slot to which its completion is posted; "": it is not
	began    time.Time
	looked   time.Time // when it was last seen
	ended    bool
}

const steps = 3

// newJobs are the jobs of one process.
func (c *cycle) newJobs(db *sending, rng *rand.Rand) (*jobs.Jobs[*sql.Tx], error) {
	registry, pub, err := c.senderOn(db)
	if err != nil {
		return nil, err
	}
	callbacks, err := jobs.NewCallbacks(registry, pub, &jobs.CallbacksConfig{Logger: c.log})
	if err != nil {
		return nil, err
	}
	schedule, err := backoff.Fixed(20 * time.Millisecond)
	if err != nil {
		return nil, err
	}
	draw := locked(rng)
	return jobs.New(db.jobs, []jobs.Kind[*sql.Tx]{{
		Name: "steps", Concurrency: 2, MaxTries: 30, Schedule: schedule,
		Run: func(ctx context.Context, run *jobs.Run[*sql.Tx]) (json.RawMessage, error) {
			done := len(run.State())
			for step := done; step < steps; step++ {
				err := run.InTx(ctx, func(tx *sql.Tx, s *jobs.Step) error {
					if err := db.exec(ctx, tx, "INSERT INTO soak_steps VALUES ($1, $2)", run.Job().ID, step); err != nil {
						return err
					}
					s.Save(make([]byte, step+1))
					if !c.ends.calm.Load() && draw(8) == 0 {
						return errDrawn
					}
					return nil
				})
				if err != nil {
					return nil, err
				}
				if !c.ends.calm.Load() && draw(10) == 0 {
					panic(errDrawn)
				}
			}
			return json.RawMessage(`{}`), nil
		},
	}}, &jobs.Config[*sql.Tx]{
		Announcer: callbacks, Lease: time.Second, Poll: 50 * time.Millisecond, Retention: c.cfg.Reach, Logger: c.log,
		Hooks: jobs.Hooks{Ended: func(context.Context, jobs.Try) { c.w.count("tries of jobs") }},
	})
}

// worker runs jobs, one life after the other.
func (c *cycle) worker(ctx context.Context) error {
	rng := c.cfg.rng("worker")
	for ctx.Err() == nil {
		if err := c.shift(ctx, rng); err != nil {
			return fmt.Errorf("worker: %w", err)
		}
	}
	return nil
}

func (c *cycle) shift(ctx context.Context, rng *rand.Rand) error {
	db, err := c.place.openSending(ctx)
	if err != nil {
		return err
	}
	defer db.close()
	j, err := c.newJobs(db, rand.New(rand.NewPCG(rng.Uint64(), 1)))
	if err != nil {
		return err
	}
	life, stop := context.WithTimeout(ctx, time.Duration((0.5+rng.Float64())*float64(max(c.load/6, time.Second))))
	defer stop()
	return j.Run(life)
}

// submit hands in jobs until ctx ends.
func (c *cycle) submit(ctx context.Context) error {
	rng := c.cfg.rng("jobs")
	j, err := c.newJobs(c.db, c.cfg.rng("idle"))
	if err != nil {
		return err
	}
	pace := time.NewTicker(min(time.Duration(10/c.cfg.Rate*float64(time.Second)), 500*time.Millisecond))
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		owner := c.owners[rng.IntN(len(c.owners))]
		s := jobs.Submission{Kind: "steps", Owner: owner.id, IdempotencyKey: fmt.Sprint(c.number, "-", n)}
		if rng.IntN(2) == 0 {
			s.CallbackURL = c.ends.url + "jobs-" + owner.id
		}
		first, err := j.Submit(ctx, s)
		if err != nil {
			if ctx.Err() == nil {
				c.w.add("jobs", "a submission failed: %v", err)
			}
			continue
		}
		now := time.Now()
		c.w.submitted(&job{id: first.ID, callback: s.CallbackURL[strings.LastIndex(s.CallbackURL, "/")+1:], began: now, looked: now})
		again, err := j.Submit(ctx, s)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.w.add("jobs", "a submission failed: %v", err)
		case again.ID != first.ID || !again.Duplicate:
			c.w.add("jobs", "a repeated submission made job %s of what was %s", again.ID, first.ID)
		}
		if rng.IntN(8) == 0 {
			_, err := j.Cancel(ctx, jobs.Key{ID: first.ID})
			if err := but(err, jobs.ErrFinished); err != nil && ctx.Err() == nil {
				c.w.add("jobs", "a job was not cancelled: %v", err)
			}
		}
	}
}

func (w *witness) submitted(j *job) {
	w.count("jobs submitted")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[j.id] = j
}

// senderOn are a registry and a publisher on a database.
func (c *cycle) senderOn(db *sending) (*sender.Registry[*sql.Tx], *sender.Publisher[*sql.Tx], error) {
	registry, err := sender.NewRegistry(db.store, c.keys, &sender.RegistryConfig{
		Network: sender.Network{AllowPrivateNetworks: true}, Retention: c.cfg.retention(),
	})
	if err != nil {
		return nil, nil, err
	}
	pub, err := sender.NewPublisher(db.store, nil)
	return registry, pub, err
}

// dropJobs removes all jobs, as if much time had passed.
func (c *cycle) dropJobs(ctx context.Context) error {
	return c.db.jobs.InTx(ctx, func(tx *sql.Tx) error {
		for {
			n, err := c.db.jobs.PruneTx(ctx, tx, jobs.PruneQuery{Limit: 500})
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
		c.w.mu.Lock()
		clear(c.w.jobs)
		clear(c.w.told)
		c.w.mu.Unlock()
		return c.db.exec(ctx, tx, "DELETE FROM soak_steps")
	})
}

// locked makes a source safe for concurrent use.
func locked(rng *rand.Rand) func(n int) int {
	var mu sync.Mutex
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
}
