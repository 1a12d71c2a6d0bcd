package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/hourly"
	"github.com/surehook/surehook/sender/rules"
)

const (
	upsertHour = `INSERT INTO surehook_subscription_rollups (subscription, hour, shard, rollup) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET rollup = excluded.rollup`
	selectHours = `SELECT r.subscription, r.hour, r.shard, r.rollup FROM json_each(?1) j CROSS JOIN surehook_subscription_rollups r
		WHERE r.subscription = j.value AND r.hour >= ?2 AND r.hour < ?3`
	selectNumberOf = `SELECT no FROM surehook_subscriptions WHERE id = ?`
)

// countHours counts what the batch did in the hours of the subscriptions, once it is
// committed.
func (b *batch) countHours() {
	ended, made, now, hours := b.ended, b.madeFor, timeOf(b.now), &b.store.hours
	b.ended, b.madeFor = nil, nil
	if len(ended)+len(made) == 0 {
		return
	}
	b.committed = append(b.committed, func() {
		hours.Add(now, func(of func(int64) *history.SubscriptionRollup) {
			for subscription, n := range made {
				of(subscription).Deliveries += int64(n)
			}
			for _, e := range ended {
				rules.CountSubscriptionAttempt(of(e.Result.Key.Subscription), e)
			}
		})
	})
}

// storeHours writes the figures of subscriptions that are to be written, or all.
func (s *Store) storeHours(ctx context.Context, all bool) error {
	now := timeOf(s.now())
	rows, err := s.hours.Unwritten(now, all)
	if err != nil || len(rows) == 0 {
		return err
	}
	err = s.write(ctx, func(w *work) error {
		for _, r := range rows {
			if err := w.execs(upsertHour, r.Subscription, micros(r.Hour), r.Shard, string(r.Text)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fail("storing the figures of subscriptions", err)
	}
	s.hours.Wrote(rows, now)
	return nil
}

// SubscriptionRollups implements history.Store.
func (s *Store) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) (all []history.SubscriptionRollup, err error) {
	err = s.read(ctx, func(w *work) error {
		var nos []int64
		var known []string
		for _, id := range ids {
			var no int64
			switch err := w.row(selectNumberOf, id).Scan(&no); {
			case errors.Is(err, sql.ErrNoRows):
			case err != nil:
				return err
			default:
				nos, known = append(nos, no), append(known, id)
			}
		}
		reading := s.hours.Read(nos, from, to)
		err := w.each(func(rows *sql.Rows) (bool, error) {
			var k hourly.Key
			var hour, shard int64
			var text []byte
			if err := rows.Scan(&k.Subscription, &hour, &shard, &text); err != nil {
				return false, err
			}
			k.Hour = timeOf(hour)
			return true, reading.Stored(k, shard, text)
		}, selectHours, list(nos), micros(from), micros(to))
		all = reading.Rollups(nos, known)
		return err
	})
	if err != nil {
		return nil, fail("reading the figures of subscriptions", err)
	}
	return all, nil
}
