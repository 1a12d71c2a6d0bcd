package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/hourly"
)

const (
	selectHourRollups = `SELECT hour, rollup FROM surehook_hour_rollups WHERE hour >= $1 AND hour < $2 ORDER BY hour`
	// selectUnmerged is the first minute behind the hours that are merged.
	selectUnmerged = `SELECT minute FROM surehook_rollups WHERE minute >= coalesce((SELECT hour + interval '1 hour' FROM surehook_hour_rollups ORDER BY hour DESC LIMIT 1), '-infinity')
		AND minute < $1 ORDER BY minute LIMIT 1`
	// insertHourRollup need not outlast a crash of the server, as upsertRollups: its minutes
	// are merged again.
	insertHourRollup = `INSERT INTO surehook_hour_rollups (hour, rollup) SELECT $1, $2 WHERE set_config('synchronous_commit', 'off', true) <> '' ON CONFLICT DO NOTHING`
)

// HourRollups implements history.Store.
func (c *core) HourRollups(ctx context.Context, from, to time.Time) (all []history.Rollup, err error) {
	here := c.rollups.here(from, to)
	var hours []string
	var stored []storedMinute
	err = c.read(ctx, func(w *work) error {
		err := w.each(func(rows rows) (bool, error) {
			var hour timestamp
			var text string
			err := rows.Scan(&hour, &text)
			hours = append(hours, text)
			from = hour.time().Add(time.Hour) // hours are merged in their order
			return true, err
		}, selectHourRollups, timestampOf(from), timestampOf(to))
		if err == nil {
			stored, err = w.minutes(from, to)
		}
		return err
	})
	if err != nil {
		return nil, fail("reading rollups of hours", err)
	}
	all = make([]history.Rollup, len(hours))
	for i, text := range hours {
		if err := json.Unmarshal([]byte(text), &all[i]); err != nil {
			return nil, fail("reading rollups of hours", err)
		}
	}
	minutes, err := rollupsOf(stored, from, here)
	if err != nil {
		return nil, fail("reading rollups of hours", err)
	}
	return append(all, hourly.Merge(minutes)...), nil
}

// mergeHours stores the rollups of hours that are over.
func (c *core) mergeHours(ctx context.Context, now time.Time) error {
	before, due := c.merged.Due(now)
	for n := 0; due && n < hourly.MergeMost; n++ {
		hour, err := c.unmergedHour(ctx, before)
		if err == nil && !hour.IsZero() {
			err = c.mergeHour(ctx, hour)
		} else if err == nil {
			c.merged.Found(before)
			return nil
		}
		if err != nil {
			return fail("merging rollups", err)
		}
	}
	return nil
}

// unmergedHour is the first hour before a time that is not merged and in which something
// happened; zero if there is none.
func (c *core) unmergedHour(ctx context.Context, before time.Time) (hour time.Time, err error) {
	err = c.dispatching().read(ctx, func(w *work) error {
		return w.each(func(rows rows) (bool, error) {
			var minute timestamp
			err := rows.Scan(&minute)
			hour = minute.time().Truncate(time.Hour)
			return true, err
		}, selectUnmerged, timestampOf(before))
	})
	return hour, err
}

// mergeHour has no need of a lock: whoever else merges the hour comes to the same figures.
func (c *core) mergeHour(ctx context.Context, hour time.Time) error {
	return c.dispatching().writeAs(ctx, work{dates: true}, func(w *work) error {
		stored, err := w.minutes(hour, hour.Add(time.Hour))
		if err != nil {
			return err
		}
		minutes, err := rollupsOf(stored, hour, nil)
		if err != nil {
			return err
		}
		for _, r := range hourly.Merge(minutes) {
			text, err := json.Marshal(&r)
			if err != nil {
				return err
			}
			if err := w.execs(insertHourRollup, timestampOf(r.Minute), string(text)); err != nil {
				return err
			}
		}
		return nil
	})
}
