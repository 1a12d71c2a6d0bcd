package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surehook/surehook/internal/fence"
	"github.com/surehook/surehook/sender"
)

// worker is one call of Run.
type worker[Tx any] struct {
	j        *Jobs[Tx]
	attempts sync.WaitGroup
	freed    chan struct{} // a try has ended

	// The goroutine that claims has the fields below to itself.

	doubts []doubt             // the oldest first
	served map[string][]string // by kind: see vacancy

	mu      sync.Mutex
	running map[string]map[string]int // by kind and owner: how many jobs; 0 is left out
}

// Run claims and runs jobs until ctx ends, and then drains: it claims no more jobs, and
// functions may go on for Config.DrainTimeout before their contexts end. Jobs that have
// not ended by then are queued again. Outcomes that the database does not take soon are
// given up, and their jobs become due when their leases end. Run returns nil, or
// ErrDrainTimeout if a function ignores the end of its context. It returns at once, with
// ErrRunning or an error that matches sender.ErrUnfit, if it cannot run. It logs all other
// errors of the database and tries again, also if the database is away when Run is called.
//
// Any number of processes may run jobs on one database, without a leader.
func (j *Jobs[Tx]) Run(ctx context.Context) error {
	if j.running.Swap(true) {
		return ErrRunning
	}
	defer j.running.Store(false)
	if err := j.becomeReady(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	w := &worker[Tx]{j: j, freed: make(chan struct{}, 1), served: map[string][]string{}, running: map[string]map[string]int{}}
	for name := range j.kinds {
		w.running[name] = map[string]int{}
	}
	lasting := context.WithoutCancel(ctx)
	soft, stop := context.WithCancelCause(lasting) // of the functions
	defer stop(nil)
	hard, abandon := context.WithCancel(lasting) // of the writes of their outcomes
	defer abandon()

	var pruner sync.WaitGroup
	pruner.Go(func() { j.pruning(ctx) })
	defer pruner.Wait()
	w.claiming(ctx, soft, hard)
	w.giveBack(hard)

	drained := make(chan struct{})
	go func() {
		w.attempts.Wait()
		close(drained)
	}()
	if within(drained, j.cfg.DrainTimeout) {
		return nil
	}
	stop(ErrDraining)
	if within(drained, graceOfDrain) {
		return nil
	}
	abandon() // outcomes that a database does not take are no functions that still run
	if within(drained, graceOfWrites) {
		return nil
	}
	return ErrDrainTimeout
}

// becomeReady waits for a database that is away, until ctx ends.
func (j *Jobs[Tx]) becomeReady(ctx context.Context) error {
	pause := j.cfg.Poll
	for {
		err := j.store.Check(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, sender.ErrUnfit) {
			return fmt.Errorf("jobs: checking the database: %w", err)
		}
		pause = j.longerPause(pause)
		j.cfg.Logger.ErrorContext(ctx, "the database cannot be checked; the workers begin when it can", "error", err, "in", pause)
		within(ctx.Done(), pause)
	}
}

// longerPause is the pause after another failure of the database, given the pause
// before it.
func (j *Jobs[Tx]) longerPause(pause time.Duration) time.Duration {
	return min(2*pause, max(claimFailedPauseMost, j.cfg.Poll))
}

func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// claiming claims jobs and begins them until ctx ends.
func (w *worker[Tx]) claiming(ctx, soft, hard context.Context) {
	pause := w.j.cfg.Poll
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.j.woken:
		case <-w.freed:
		case <-timer.C:
		}
		for ctx.Err() == nil {
			more, err := w.claim(ctx, soft, hard)
			if err != nil {
				if ctx.Err() != nil {
					return
				}
				pause = w.j.longerPause(pause)
				w.j.cfg.Logger.ErrorContext(ctx, "jobs could not be claimed; it is tried again", "in", pause, "error", err)
				break
			}
			pause = w.j.cfg.Poll
			if !more {
				break
			}
		}
		timer.Reset(pause)
	}
}

// claimed is a leased job. If over is not nil the job ends with it, and its function is
// not run.
type claimed struct {
	r    Record
	over error
}

// claim claims as many jobs as it has room for, and begins them, unless ctx has ended by then.
// more tells that there may be more due jobs that there is room for.
func (w *worker[Tx]) claim(ctx, soft, hard context.Context) (more bool, err error) {
	w.giveBack(hard)
	vacancies := w.vacancies()
	if len(vacancies) == 0 {
		return false, nil
	}
	from := w.j.cfg.Now()
	// The worker must learn whether this commits, also when it is being stopped.
	lasting, cancel := context.WithTimeout(hard, w.j.cfg.Lease)
	defer cancel()
	if looker, ok := w.j.store.(Looker); ok {
		var queries []DueQuery
		for _, v := range vacancies {
			queries = append(queries, DueQuery{Kind: v.kind, Limit: 1, NoCallbacks: w.j.cfg.Announcer == nil, Except: v.full()})
		}
		if some, err := looker.AnyDue(lasting, queries); err != nil || !some {
			return false, err
		}
	}
	var all []claimed
	var before []Record
	token := fence.Token()
	err = w.j.inTx(lasting, func(tx Tx) error {
		all, before, more = nil, nil, false
		vacancies = w.vacancies()
		for _, v := range vacancies {
			for v.room > 0 {
				q := DueQuery{Kind: v.kind, Limit: v.atOnce(), NoCallbacks: w.j.cfg.Announcer == nil, Except: v.except()}
				due, now, err := w.j.store.DueTx(lasting, tx, q)
				if err != nil {
					return err
				}
				for _, r := range due {
					if t := w.j.goesOn(r); t != nil {
						r.Due = now.Add(w.j.cfg.Lease)
						if err := w.j.store.UpdateTx(lasting, tx, r); err != nil {
							return err
						}
						t.look()
						continue
					}
					before = append(before, Record{Job: Job{ID: r.ID, Status: r.Status, Tries: r.Tries, StartedAt: r.StartedAt}, Due: r.Due})
					over := r.claim(w.j.kinds[v.kind].rules(), token, now, w.j.cfg.Lease)
					if err := w.j.store.UpdateTx(lasting, tx, r); err != nil {
						return err
					}
					all = append(all, claimed{r, over})
					v.take(r.Owner)
				}
				if len(due) < q.Limit && !v.nextRound() {
					break
				}
			}
			more = more || v.room == 0
		}
		return nil
	})
	if err != nil || ctx.Err() != nil {
		if len(before) > 0 {
			w.doubts = append(w.doubts, doubt{token, before, w.j.cfg.Now().Add(w.j.cfg.Lease)})
		}
		return false, err
	}
	for _, v := range vacancies {
		w.served[v.kind] = v.served
	}
	for _, c := range all {
		w.begin(soft, hard, c, from)
	}
	return more, nil
}

func (w *worker[Tx]) begin(soft, hard context.Context, c claimed, from time.Time) {
	w.count(c.r.Job, 1)
	w.attempts.Go(func() {
		defer func() {
			w.count(c.r.Job, -1)
			select {
			case w.freed <- struct{}{}:
			default:
			}
		}()
		newAttempt(w.j, w.j.kinds[c.r.Kind], c.r, from).run(soft, hard, c.over)
	})
}
