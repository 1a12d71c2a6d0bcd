package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender/dispatch"
)

const (
	storeBeat = `INSERT INTO surehook_processes (no, beat, seen) VALUES ($1, $2, {now}) ON CONFLICT (no) DO UPDATE SET beat = excluded.beat, seen = excluded.seen`
	present   = `SELECT coalesce(array_agg(no), '{}'), coalesce(array_agg(beat), '{}') FROM surehook_processes`
	// storeBeatAndRead reads the processes as they were before.
	storeBeatAndRead = `WITH b AS (` + storeBeat + `) ` + present
	deleteProcess    = `DELETE FROM surehook_processes WHERE no = $1 AND beat = $2`

	// selectHeldBy finds the subscriptions that a process has leases of. There are as many
	// leases as attempts in flight.
	selectHeldBy = `SELECT DISTINCT subscription FROM surehook_leases WHERE owner = $1 AND until > $2 ORDER BY subscription LIMIT $3`
	// lockBeat locks after the heads, as a claim does.
	lockBeat    = `SELECT 1 FROM surehook_processes WHERE no = $1 AND beat = $2 FOR UPDATE`
	endLeasesOf = `UPDATE surehook_leases SET until = $2 WHERE owner = $1 AND subscription = ANY($3) AND until > $2`
)

// takeOverBatch is how many subscriptions of a process are locked at a time while it is
// taken over.
const takeOverBatch = 256

// Beat implements dispatch.Store. It is one statement, on a connection that nothing else uses.
func (c *core) Beat(ctx context.Context, p dispatch.Presence) ([]dispatch.Presence, error) {
	var nos, beats []int64
	err := c.beating().writeAs(ctx, work{dates: true}, func(w *work) error {
		w.pipeline.queue(w.query(storeBeatAndRead, p.Process, p.Beat).rows(func(r rows) error { return r.Scan(&nos, &beats) }))
		return nil
	})
	known := presences(nos, beats)
	c.processes.Know(known, err)
	return known, fail("storing that the process lives", err)
}

// Present implements dispatch.Store.
func (c *core) Present(ctx context.Context) ([]dispatch.Presence, error) {
	var nos, beats []int64
	err := c.beating().readOne(ctx, present, nil, &nos, &beats)
	known := presences(nos, beats)
	c.processes.Know(known, err)
	return known, fail("reading the processes", err)
}

func presences(nos, beats []int64) []dispatch.Presence {
	known := make([]dispatch.Presence, len(nos))
	for i, no := range nos {
		known[i] = dispatch.Presence{Process: no, Beat: beats[i]}
	}
	return known
}

// TakeOver implements dispatch.Store.
func (c *core) TakeOver(ctx context.Context, p dispatch.Presence) (ended int, err error) {
	for over := false; !over && err == nil; {
		var n int
		err = c.dispatching().batch(ctx, dispatch.Batch{}, func(b *batch) (err error) {
			n, over, err = b.takeOver(p)
			return fail("taking over", err)
		})
		if err == nil {
			ended += n
		}
	}
	if ended > 0 {
		c.Wake()
	}
	return ended, err
}

// takeOver ends the leases of some subscriptions. over: the process lives, or it has no
// more leases.
func (b *batch) takeOver(p dispatch.Presence) (ended int, over bool, err error) {
	subscriptions, err := b.numbers(selectHeldBy, p.Process, b.now, takeOverBatch)
	if err != nil {
		return 0, false, err
	}
	if err := b.lock(subscriptions); err != nil {
		return 0, false, err
	}
	if err := b.standIn(subscriptions); err != nil {
		return 0, false, err
	}
	var one int
	err = b.row(lockBeat, p.Process, p.Beat).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	if len(subscriptions) == 0 {
		return 0, true, b.execs(deleteProcess, p.Process, p.Beat)
	}
	n, err := b.exec(endLeasesOf, p.Process, b.now, subscriptions)
	if err != nil {
		return 0, false, err
	}
	for _, no := range subscriptions {
		h := b.heads.by[no]
		if h.leased > 0 && h.leasesEnd != none {
			h.leasesEnd = min(h.leasesEnd, b.now)
		}
		if h.owner == p.Process {
			h.owner = 0
		}
		h.lower(b.now)
	}
	return int(n), false, nil
}

// Leave implements dispatch.Store.
func (c *core) Leave(ctx context.Context, p dispatch.Presence) error {
	return fail("leaving", c.dispatching().writeLater(ctx, func(w *work) error { return w.execs(deleteProcess, p.Process, p.Beat) }))
}
