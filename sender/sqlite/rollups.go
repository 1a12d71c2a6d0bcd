package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/surehook/surehook/sender/history"
)

const (
	selectRollup  = `SELECT rollup FROM surehook_rollups WHERE minute = ? AND shard = ?`
	upsertRollup  = `INSERT INTO surehook_rollups (minute, shard, rollup) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET rollup = excluded.rollup`
	selectRollups = `SELECT rollup FROM surehook_rollups WHERE minute >= ? AND minute < ? ORDER BY minute`
)

// tally adds to the rollup of the present minute. The store remembers its rollup from one
// transaction to the next: nobody else writes its shard.
func (s *Store) tally(w *work, now int64, add *history.Rollup) error {
	if err := s.beginMinute(w, now); err != nil {
		return err
	}
	r := *s.rollup // the old one stays as it is, for a roll-back
	r.Failures = maps.Clone(r.Failures)
	r.Merge(add)
	s.rollup = &r
	return s.writeRollup(w, &r)
}

// beginMinute ends the last minute, if it is over, and begins the present one. It must
// run before the counts change.
func (s *Store) beginMinute(w *work, now int64) error {
	minute := timeOf(now).Truncate(time.Minute)
	if s.rollup != nil && s.rollup.Minute.Equal(minute) {
		return nil
	}
	c, err := w.counts(now)
	if err != nil {
		return err
	}
	if s.rollup != nil && s.rollup.Minute.Before(minute) {
		last := *s.rollup
		last.Waits(&c)
		if last.Attempts()+last.Published+last.Deliveries > 0 {
			if err := s.writeRollup(w, &last); err != nil {
				return err
			}
		}
	}
	var text []byte
	err = w.row(selectRollup, micros(minute), s.shard).Scan(&text)
	s.rollup = &history.Rollup{Minute: minute}
	s.rollup.Waits(&c)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, s.rollup)
}

func (s *Store) writeRollup(w *work, r *history.Rollup) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return w.execs(upsertRollup, micros(r.Minute), s.shard, string(text))
}

// Rollups implements history.Store.
func (s *Store) Rollups(ctx context.Context, from, to time.Time) (all []history.Rollup, err error) {
	err = s.read(ctx, func(w *work) error {
		all, err = w.rollups(selectRollups, micros(from), micros(to))
		return err
	})
	if err != nil {
		return nil, fail("reading rollups", err)
	}
	return all, nil
}

// rollups are those that a query selects, those of one time merged.
func (w *work) rollups(query string, args ...any) (all []history.Rollup, err error) {
	err = w.each(func(rows *sql.Rows) (bool, error) {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return false, err
		}
		var r history.Rollup
		if err := json.Unmarshal(text, &r); err != nil {
			return false, err
		}
		if n := len(all); n > 0 && all[n-1].Minute.Equal(r.Minute) {
			all[n-1].Merge(&r)
		} else {
			all = append(all, r)
		}
		return true, nil
	}, query, args...)
	return all, err
}
