package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/hourly"
)

const (
	selectHourRollups = `SELECT rollup FROM surehook_hour_rollups WHERE hour >= ? AND hour < ? ORDER BY hour`
	// selectUnmerged is the first minute behind the hours that are merged.
	selectUnmerged   = `SELECT min(minute) FROM surehook_rollups WHERE minute >= (SELECT coalesce(max(hour) + 3600000000, 0) FROM surehook_hour_rollups)`
	insertHourRollup = `INSERT INTO surehook_hour_rollups (hour, rollup) VALUES (?, ?) ON CONFLICT DO NOTHING`
)

// HourRollups implements history.Store.
func (s *Store) HourRollups(ctx context.Context, from, to time.Time) (all []history.Rollup, err error) {
	err = s.read(ctx, func(w *work) error {
		if all, err = w.rollups(selectHourRollups, micros(from), micros(to)); err != nil {
			return err
		}
		if n := len(all); n > 0 { // hours are merged in their order
			from = all[n-1].Minute.Add(time.Hour)
		}
		minutes, err := w.rollups(selectRollups, micros(from), micros(to))
		all = append(all, hourly.Merge(minutes)...)
		return err
	})
	if err != nil {
		return nil, fail("reading rollups of hours", err)
	}
	return all, nil
}

// mergeHours stores the rollups of hours that are over.
func (s *Store) mergeHours(ctx context.Context) error {
	before, due := s.merged.Due(timeOf(s.now()))
	for n := 0; due && n < hourly.MergeMost; n++ {
		hour, err := s.unmergedHour(ctx)
		if err == nil && hour.Before(before) {
			err = s.mergeHour(ctx, hour)
		} else if err == nil {
			s.merged.Found(before)
			return nil
		}
		if err != nil {
			return fail("merging rollups", err)
		}
	}
	return nil
}

// unmergedHour is the first hour that is not merged and in which something happened; far
// beyond all if there is none.
func (s *Store) unmergedHour(ctx context.Context) (hour time.Time, err error) {
	err = s.read(ctx, func(w *work) error {
		minute, err := w.least(selectUnmerged)
		hour = timeOf(minute).Truncate(time.Hour)
		return err
	})
	return hour, err
}

func (s *Store) mergeHour(ctx context.Context, hour time.Time) error {
	return s.write(ctx, func(w *work) error {
		minutes, err := w.rollups(selectRollups, micros(hour), micros(hour.Add(time.Hour)))
		if err != nil {
			return err
		}
		for _, r := range hourly.Merge(minutes) {
			text, err := json.Marshal(&r)
			if err != nil {
				return err
			}
			if err := w.execs(insertHourRollup, micros(r.Minute), string(text)); err != nil {
				return err
			}
		}
		return nil
	})
}
