package postgres

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/hourly"
	"github.com/surehook/surehook/sender/rules"
)

const (
	// upsertHours need not outlast a crash of the server, as upsertRollups.
	upsertHours = `INSERT INTO surehook_subscription_rollups (subscription, hour, shard, rollup)
		SELECT u.subscription, u.hour, u.shard, u.rollup FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::text[]) AS u(subscription, hour, shard, rollup)
		WHERE set_config('synchronous_commit', 'off', true) <> ''
		ON CONFLICT (subscription, hour, shard) DO UPDATE SET rollup = excluded.rollup`
	// selectHours goes by the primary key, one subscription after another.
	selectHours = `SELECT u.subscription, r.hour, r.shard, r.rollup FROM unnest($1::bigint[]) AS u(subscription) CROSS JOIN LATERAL (
		SELECT hour, shard, rollup FROM surehook_subscription_rollups WHERE subscription = u.subscription AND hour >= $2 AND hour < $3 OFFSET 0) r`
	selectNumbersOf = `SELECT s.no, s.id FROM unnest($1::text[]) WITH ORDINALITY AS u(id, place) JOIN surehook_subscriptions s ON s.id = u.id ORDER BY u.place`
)

// countHours counts what the batch did in the hours of the subscriptions, once it is
// committed.
func (b *batch) countHours() {
	done, made := b.done, b.madeFor
	b.done, b.madeFor = nil, nil
	if len(done)+len(made) == 0 {
		return
	}
	b.after(func(committed bool) {
		if !committed {
			return
		}
		b.hours.Add(b.now.time(), func(of func(int64) *history.SubscriptionRollup) {
			for subscription, n := range made {
				of(subscription).Deliveries += int64(n)
			}
			for _, e := range done {
				rules.CountSubscriptionAttempt(of(e.Result.Key.Subscription), e)
			}
		})
	})
}

// storeHours writes the figures of subscriptions that are to be written, or all.
func (c *core) storeHours(ctx context.Context, now time.Time, all bool) error {
	rows, err := c.hours.Unwritten(now, all)
	if err != nil || len(rows) == 0 {
		return err
	}
	err = c.dispatching().writeAs(ctx, work{dates: true}, func(w *work) error {
		return w.execs(upsertHours,
			column(rows, func(r hourly.Row) int64 { return r.Subscription }),
			column(rows, func(r hourly.Row) timestamp { return timestampOf(r.Hour) }),
			column(rows, func(r hourly.Row) int64 { return r.Shard }),
			column(rows, func(r hourly.Row) string { return string(r.Text) }))
	})
	if err != nil {
		return fail("storing the figures of subscriptions", err)
	}
	c.hours.Wrote(rows, now)
	return nil
}

// storedHour is a row of surehook_subscription_rollups: see storedMinute.
type storedHour struct {
	hourly.Key
	shard int64
	text  string
}

// SubscriptionRollups implements history.Store.
func (c *core) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) (all []history.SubscriptionRollup, err error) {
	nos, known := []int64{}, []string{}
	var reading *hourly.Reading
	var stored []storedHour
	err = c.read(ctx, func(w *work) error {
		err := w.each(func(r rows) (bool, error) {
			nos, known = append(nos, 0), append(known, "")
			return true, r.Scan(&nos[len(nos)-1], &known[len(known)-1])
		}, selectNumbersOf, ids)
		if err != nil {
			return err
		}
		reading = c.hours.Read(nos, from, to)
		return w.each(func(r rows) (bool, error) {
			var h storedHour
			var hour timestamp
			err := r.Scan(&h.Subscription, &hour, &h.shard, &h.text)
			h.Hour = hour.time()
			stored = append(stored, h)
			return true, err
		}, selectHours, nos, timestampOf(from), timestampOf(to))
	})
	for i := 0; err == nil && i < len(stored); i++ {
		err = reading.Stored(stored[i].Key, stored[i].shard, []byte(stored[i].text))
	}
	if err != nil {
		return nil, fail("reading the figures of subscriptions", err)
	}
	return reading.Rollups(nos, known), nil
}
