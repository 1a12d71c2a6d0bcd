package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/hourly"
)

// tally adds to the rollup of the present minute, which beginMinute has begun.
func (tx *Tx) tally(add *history.Rollup) {
	tx.changeRollup(tx.store.minute, func(r *history.Rollup) { r.Merge(add) })
}

// beginMinute ends the last minute, if it is over, and begins the present one. It must
// run before the counts change.
func (tx *Tx) beginMinute(now time.Time) {
	s := tx.store
	minute := now.Truncate(time.Minute)
	if s.minute.Equal(minute) {
		return
	}
	c := s.counts(now)
	if s.rollups[s.minute] != nil {
		tx.changeRollup(s.minute, func(r *history.Rollup) { r.Waits(&c) })
	}
	set(tx, &s.minute, minute)
	set(tx, &s.began, c)
}

// changeRollup replaces a rollup with a changed copy, so that a roll-back has the old
// one.
func (tx *Tx) changeRollup(minute time.Time, change func(*history.Rollup)) {
	r := history.Rollup{Minute: minute}
	r.Waits(&tx.store.began)
	if old := tx.store.rollups[minute]; old != nil {
		r = *old
		r.Failures = maps.Clone(r.Failures)
	}
	change(&r)
	setKey(tx, tx.store.rollups, minute, &r)
}

// Rollups implements history.Store.
func (s *Store) Rollups(ctx context.Context, from, to time.Time) (all []history.Rollup, err error) {
	err = s.inTx(ctx, func(*Tx) error {
		for minute, r := range s.rollups {
			if !minute.Before(from) && minute.Before(to) {
				shown := *r
				shown.Failures = maps.Clone(r.Failures)
				all = append(all, shown)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b history.Rollup) int { return a.Minute.Compare(b.Minute) })
	return all, err
}

// HourRollups implements history.Store.
func (s *Store) HourRollups(ctx context.Context, from, to time.Time) ([]history.Rollup, error) {
	minutes, err := s.Rollups(ctx, from, to)
	return hourly.Merge(minutes), err
}
