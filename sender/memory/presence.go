package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/surehook/surehook/sender/dispatch"
)

// Beat implements dispatch.Store.
func (s *Store) Beat(ctx context.Context, p dispatch.Presence) (present []dispatch.Presence, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		present = s.present()
		setKey(tx, s.processes, p.Process, p.Beat)
		return nil
	})
	return present, err
}

// Present implements dispatch.Store.
func (s *Store) Present(ctx context.Context) (present []dispatch.Presence, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		present = s.present()
		return nil
	})
	return present, err
}

// present returns the processes that are known, by their numbers.
func (s *Store) present() (present []dispatch.Presence) {
	for process, beat := range s.processes {
		present = append(present, dispatch.Presence{Process: process, Beat: beat})
	}
	slices.SortFunc(present, func(a, b dispatch.Presence) int { return cmp.Compare(a.Process, b.Process) })
	return present
}

// TakeOver implements dispatch.Store.
func (s *Store) TakeOver(ctx context.Context, p dispatch.Presence) (ended int, err error) {
	err = s.inTx(ctx, func(tx *Tx) error {
		ended = 0
		if beat, there := s.processes[p.Process]; !there || beat != p.Beat {
			return nil
		}
		now := s.now()
		for _, sub := range s.subscriptions {
			for d := range sub.leased {
				if d.live.by == p.Process && d.live.due.After(now) {
					row := *d.live
					row.due = now
					tx.setLive(d, &row)
					ended++
				}
			}
		}
		deleteKey(tx, s.processes, p.Process)
		tx.wake = tx.wake || ended > 0
		return nil
	})
	if err != nil {
		return 0, err
	}
	return ended, nil
}

// Leave implements dispatch.Store.
func (s *Store) Leave(ctx context.Context, p dispatch.Presence) error {
	return s.inTx(ctx, func(tx *Tx) error {
		if s.processes[p.Process] == p.Beat {
			deleteKey(tx, s.processes, p.Process)
		}
		return nil
	})
}
