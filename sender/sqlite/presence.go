package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/surehook/surehook/sender/dispatch"
)

const (
	storeBeat     = `INSERT INTO surehook_processes (no, beat) VALUES (?, ?) ON CONFLICT (no) DO UPDATE SET beat = excluded.beat`
	selectPresent = `SELECT no, beat FROM surehook_processes`
	selectBeat    = `SELECT beat FROM surehook_processes WHERE no = ?`
	deleteProcess = `DELETE FROM surehook_processes WHERE no = ? AND beat = ?`
	// selectHeldBy reads all leases: they are as many as there are attempts in flight.
	selectHeldBy = `SELECT DISTINCT subscription FROM surehook_leases WHERE owner = ? AND until > ?`
	endLeasesOf  = `UPDATE surehook_leases SET until = ?2 WHERE owner = ?1 AND until > ?2`
)

// Beat implements dispatch.Store.
func (s *Store) Beat(ctx context.Context, p dispatch.Presence) (present []dispatch.Presence, err error) {
	err = s.write(ctx, func(w *work) (err error) {
		if present, err = w.present(); err != nil {
			return fail("reading the processes", err)
		}
		return fail("storing that the process lives", w.execs(storeBeat, p.Process, p.Beat))
	})
	s.processes.Know(present, err)
	return present, err
}

// Present implements dispatch.Store.
func (s *Store) Present(ctx context.Context) (present []dispatch.Presence, err error) {
	err = s.read(ctx, func(w *work) error {
		present, err = w.present()
		return fail("reading the processes", err)
	})
	s.processes.Know(present, err)
	return present, err
}

func (w *work) present() (present []dispatch.Presence, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var p dispatch.Presence
		err := rows.Scan(&p.Process, &p.Beat)
		present = append(present, p)
		return true, err
	}, selectPresent)
	return present, err
}

// TakeOver implements dispatch.Store. It is one transaction: with a single writer
// there are not many leases.
func (s *Store) TakeOver(ctx context.Context, p dispatch.Presence) (ended int, err error) {
	err = s.write(ctx, func(w *work) (err error) {
		b := batch{work: w, store: s, now: s.now(), heads: newHeads(w)}
		ended, err = b.takeOver(p)
		return fail("taking over", err)
	})
	if err != nil {
		return 0, err
	}
	if ended > 0 {
		s.Wake()
	}
	return ended, nil
}

func (b *batch) takeOver(p dispatch.Presence) (ended int, err error) {
	var beat int64
	err = b.row(selectBeat, p.Process).Scan(&beat)
	if errors.Is(err, sql.ErrNoRows) || err == nil && beat != p.Beat {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	subscriptions, err := b.numbers(selectHeldBy, p.Process, b.now)
	if err != nil {
		return 0, err
	}
	if err := b.heads.load(subscriptions); err != nil {
		return 0, err
	}
	changed, err := b.exec(endLeasesOf, p.Process, b.now)
	if err != nil {
		return 0, err
	}
	n, err := changed.RowsAffected()
	if err != nil {
		return 0, err
	}
	for _, no := range subscriptions {
		h := b.heads.by[no]
		h.leasesEnd = min(h.leasesEnd, b.now)
		if h.owner == p.Process {
			h.owner = 0
		}
		h.lower(b.now)
	}
	if err := b.heads.store(); err != nil {
		return 0, err
	}
	return int(n), b.execs(deleteProcess, p.Process, p.Beat)
}

// Leave implements dispatch.Store.
func (s *Store) Leave(ctx context.Context, p dispatch.Presence) error {
	return s.write(ctx, func(w *work) error { return fail("leaving", w.execs(deleteProcess, p.Process, p.Beat)) })
}
