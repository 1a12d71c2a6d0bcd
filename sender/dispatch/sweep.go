package dispatch

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	// A batch takes some ten milliseconds. On a database with one writer, the application's
	// own commits wait for it.
	sweepBatch = 2000
	// Between two batches others have the database for this many times as long.
	sweepPause = 4
)

// SweepParams bound a Sweep.
type SweepParams struct {
	// Limit is how many deliveries it ends at most. With 0 it ends nothing, and writes all of
	// its counts.
	Limit int

	// NotBefore is the earliest time of publishing of an event whose delivery may go on after
	// a dead letter has held it back. Zero: every one may.
	NotBefore time.Time

	// Announce is like Batch.Announce.
	Announce func(n sender.Notice) (sender.Draft, bool)
}

// Cancels is how many deliveries a Sweep ends at most that read as cancelled. lines tells
// that some lines wait for the sweep too. Then a part of the limit is left to them: a
// subscription that is deleted with a large backlog must not hold others up until it is gone.
func (p SweepParams) Cancels(lines bool) int {
	if lines {
		return p.Limit - p.Limit/4
	}
	return p.Limit
}

// Swept tells what a Sweep did.
type Swept struct {
	Ended   int             // deliveries
	Freed   int             // dead letters that hold back nothing any more
	Notices []sender.Notice // they were stored
}

// sweep reports whether it has ended deliveries, or let some go on.
func (u *upkeep) sweep(ctx context.Context) (busy bool, err error) {
	began := u.p.d.now()
	bounded, end := u.p.d.within(ctx)
	p := SweepParams{Limit: sweepBatch, NotBefore: u.p.d.cfg.Retention.NotBefore(u.p.databaseTime(began)), Announce: sender.Notice.Draft}
	done, err := u.p.d.store.Sweep(bounded, p)
	end()
	for _, n := range done.Notices { // also beside an error
		u.p.notice(ctx, n)
	}
	if err != nil {
		return false, err
	}
	now := u.p.d.now()
	u.sweeps.at = now.Add(u.every())
	if done.Ended >= p.Cancels(true) { // there may be more
		u.sweeps.at = now.Add(sweepPause * now.Sub(began))
	}
	return done.Ended+done.Freed > 0, nil
}

// databaseTime is the database's time at a time of the local clock. Before the first step
// it is the local clock's.
func (p *pump) databaseTime(local time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spare.clock.there.IsZero() {
		return local
	}
	return p.spare.clock.at(local)
}
