package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/surehook/surehook/sender"
)

// A filled database has 50 subscribers with ten subscriptions each, and a month of events,
// each with one delivery. Half of the deliveries are those of the first subscription, and
// a quarter of the events are about one object.
const (
	pagesOwners = 50
	pagesEach   = 10
	pagesOrder  = 9 // of each subscriber's subscriptions: the one that has an order
	pagesPaused = 7 // the one that is paused
)

// pagesOwner is the id of a subscriber.
func pagesOwner(i int) string { return fmt.Sprintf("owner_%d", i) }

// pagesEvent is the id of the ith event.
func pagesEvent(i int) string { return fmt.Sprintf("evt_%026d", i) }

// pagesSubscription is the number of the subscription that has the ith event's delivery, in
// SQL: by the last two digits of i.
const pagesSubscription = `CASE WHEN i % 100 IN (11, 12) THEN 10 * (i / 100 % 50) + 7 WHEN i % 100 = 13 THEN 10 * (i / 100 % 50) + 9
	WHEN i % 2 = 0 THEN 1 ELSE i / 2 % 500 + 1 END`

// pagesRows fill the tables with n deliveries ($1), as a dispatcher would have left them. By
// the last two digits of an event's number its delivery is dead-lettered (0 to 4), waits
// for a retry (5 to 7), superseded (8, 9), pending and due (10), held (11, 12), behind
// another version of its object (13), cancelled (14), delivered by the second attempt
// (15 to 19), or delivered by the first.
var pagesRows = []struct{ text, of string }{
	{`INSERT INTO surehook_events (no, id, type, object_type, object_id, version, subscriber, subscription, created_at, notice, body)
		SELECT i, 'evt_' || lpad(i::text, 26, '0'), CASE i % 3 WHEN 0 THEN 'invoice.paid' ELSE 'invoice.sent' END, 'invoice', CASE i % 4 WHEN 2 THEN 'hot' ELSE 'in_' || i END, i, 0, 0,
			{at}, false, convert_to('{"id":"evt_' || lpad(i::text, 26, '0') || '","type":"invoice.paid","version":' || i || ',"data":{"note":"' || repeat('x', 300) || '"}}', 'UTF8')`, ""},
	{`INSERT INTO surehook_feed (position, event, newest, late) SELECT i, i, {at}, false`, ""},
	{`INSERT INTO surehook_attempts (event, subscription, number, status_code, started_at, duration, next_at, class, error, snippet)
		SELECT i, {to}, a, CASE WHEN last AND i % 100 > 14 THEN 204 ELSE 503 END, {at} + a * interval '1 minute', 20000,
			CASE WHEN NOT last THEN {at} + (a + 1) * interval '1 minute' END, CASE WHEN last AND i % 100 > 14 THEN '' ELSE 'status' END, '', CASE WHEN last AND i % 100 > 14 THEN NULL ELSE 'it is down'::bytea END`,
		`, LATERAL (SELECT CASE WHEN i % 100 < 5 THEN 3 WHEN i % 100 < 8 THEN 1 WHEN i % 100 < 15 THEN 0 WHEN i % 100 < 20 THEN 2 ELSE 1 END AS most) m,
			LATERAL (SELECT a, a = most AS last FROM generate_series(1, most) a) x`},
	{`INSERT INTO surehook_ended (subscription, event, status, class, ended_at)
		SELECT {to}, i, CASE WHEN i % 100 < 5 THEN 'dead_lettered' WHEN i % 100 < 10 THEN 'superseded' ELSE 'cancelled' END, CASE WHEN i % 100 < 5 THEN 'status' ELSE '' END, {at}`,
		` WHERE i % 100 < 5 OR i % 100 IN (8, 9, 14)`},
	{`INSERT INTO surehook_waiting (subscription, event, due, first_at, number, tries, stood, epoch, replay, rank, single, notice, bytes)
		SELECT {to}, i, now() + (i % 1000) * interval '1 second', {at}, 1, 1, 0, 0, 0, 0, false, false, 380`, ` WHERE i % 100 IN (5, 6, 7)`},
	{`INSERT INTO surehook_pending (subscription, event, no, due, notice, bytes) SELECT {to}, i, i, {at}, false, 380`, ` WHERE i % 100 IN (10, 11, 12)`},
	{`INSERT INTO surehook_lines (subscription, object, event, place, no, notice, bytes, due, number, tries, stood, epoch, replay, rank, single, spared)
		SELECT {to}, 'invoice in_' || i, i, 1, i, false, 380, {at}, 0, 0, 0, 0, 0, 0, false, false`, ` WHERE i % 100 = 13`},
	{`INSERT INTO surehook_objects (type, id, version) SELECT 'invoice', 'in_' || i, i`, ` WHERE i % 4 <> 2 UNION ALL SELECT 'invoice', 'hot', $1`},
	{`INSERT INTO surehook_notices (id, kind, subscriber, subscription, delivery, replay, detail, percent, created_at, notify_due)
		SELECT 'ntc_' || i, 'delivery.dead_lettered', 'owner_' || ({to} - 1) / 10, (SELECT id FROM surehook_subscriptions WHERE no = {to}), '', '', 'it is not attempted any more', 0, {at}, 'infinity'`, ` WHERE i % 100 < 5`},
}

// pagesFigures fill in the figures of subscriptions, minutes and hours. The first subscriber's
// subscriptions have all hours that are kept. The others have those of the last {days} days.
var pagesFigures = []string{
	`UPDATE surehook_feed_head SET position = (SELECT max(position) FROM surehook_feed), newest = now()`,
	`SELECT setval('surehook_outbox_seq_seq', (SELECT max(no) FROM surehook_events))`,
	`UPDATE surehook_heads h SET pending = p.n, waiting = w.n, behind = l.n, lined = l.n, dead = e.n, next_due = CASE WHEN open AND p.n + w.n > 0 THEN now() ELSE 'infinity' END,
			waiting_from = '-infinity', lane = h.subscription % 3, failing_since = CASE h.subscription % 7 WHEN 3 THEN now() - h.subscription * interval '1 minute' END, streak = h.subscription % 7
		FROM (SELECT s.no, (SELECT count(*) FROM surehook_pending x WHERE x.subscription = s.no) AS n FROM surehook_subscriptions s) p,
			LATERAL (SELECT count(*) AS n FROM surehook_waiting x WHERE x.subscription = p.no) w,
			LATERAL (SELECT count(*) AS n FROM surehook_lines x WHERE x.subscription = p.no) l,
			LATERAL (SELECT count(*) AS n FROM surehook_ended x WHERE x.subscription = p.no AND x.status = 'dead_lettered') e
		WHERE h.subscription = p.no`,
	`UPDATE surehook_turns t SET next_due = now(), low = now()
		WHERE EXISTS (SELECT 1 FROM surehook_heads h WHERE h.lane = t.lane AND h.subscriber = t.subscriber AND h.next_due < 'infinity')`,
	`INSERT INTO surehook_rollups (minute, shard, rollup) SELECT m, shard, '{"Minute":"' || to_char(m AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:00Z') ||
			'","Published":230,"Deliveries":230,"Delivered":220,"Failed":20,"Failures":{"status":20},"Succeeded":220,"FirstTry":200,"FirstAttempt":{"longest_ns":1000000000,"buckets":[[3,200],[8,20]]}}'
		FROM generate_series(date_trunc('minute', now()) - interval '31 days', now(), interval '1 minute') m, generate_series(1, 3) shard`,
	`INSERT INTO surehook_hour_rollups (hour, rollup) SELECT minute, rollup FROM surehook_rollups WHERE shard = 1 AND minute = date_trunc('hour', minute) AND minute < now() - interval '2 hours'`,
	`INSERT INTO surehook_subscription_rollups (subscription, hour, shard, rollup) SELECT s.no, hour, shard, '{"Deliveries":28,"Delivered":27,"Failed":2,"Failures":{"status":2},"Succeeded":27}'
		FROM surehook_subscriptions s, generate_series(date_trunc('hour', now()) - interval '35 days', now(), interval '1 hour') hour, generate_series(1, 2) shard
		WHERE s.no <= {first} OR hour > now() - {days} * interval '1 day'`,
	`INSERT INTO surehook_replays (id, filter, status_of, subscriber, subscription, rate, asked_by, reason, status, boundary, at, at_subscription, next_at, turn, matched, created_at)
		SELECT 'rpl_' || i, CASE i % 2 WHEN 0 THEN '{"Subscriber":"owner_0"}' ELSE '{}' END, 'dead_lettered', CASE i % 2 WHEN 0 THEN '' ELSE 'owner_0' END, 0, 0, 'grace', '', 'finished', 0, 0, 0, now(), 0, 10, now() - i * interval '1 minute' FROM generate_series(1, 500) i`,
}

// registerPages registers the subscribers and their subscriptions, whose numbers are 1 to
// 500 in the order of the subscribers.
func registerPages(ctx context.Context, p *place[pgx.Tx]) error {
	registry, err := sender.NewRegistry(p.store, p.keys, &sender.RegistryConfig{Network: network()})
	if err != nil {
		return err
	}
	return p.store.InTx(ctx, func(tx pgx.Tx) error {
		for owner := range pagesOwners {
			if _, _, err := registry.CreateSubscriberTx(ctx, tx, sender.NewSubscriber{ID: pagesOwner(owner)}); err != nil {
				return err
			}
			for i := range pagesEach {
				n := sender.NewSubscription{Subscriber: pagesOwner(owner), URL: nowhere(owner*pagesEach + i), EventTypes: []string{"invoice.*"}}
				if i+1 == pagesOrder {
					n.Settings.Order = sender.OrderObject
				}
				s, err := registry.SubscribeTx(ctx, tx, n)
				if err != nil {
					return err
				}
				if i+1 == pagesPaused {
					if err := p.store.HoldSubscriptionTx(ctx, tx, s.ID, sender.SubscriptionPaused, ""); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// fillPages fills an empty database with n deliveries, a table at a time. Each subscription
// gets hourly figures of the last days: see pagesFigures. It calls told after each table.
func fillPages(ctx context.Context, p *place[pgx.Tx], n, days int, told func(what string)) error {
	if err := registerPages(ctx, p); err != nil {
		return err
	}
	for _, rows := range pagesRows {
		text := strings.NewReplacer("{at}", `(now() - interval '30 days' + (i::float8 / $1::bigint) * interval '30 days')`, "{to}", "("+pagesSubscription+")").
			Replace(rows.text + ` FROM generate_series(1, $1::bigint) i` + rows.of)
		if _, err := p.pool.Exec(ctx, text, n); err != nil {
			return fmt.Errorf("filling by %s: %w", rows.text, err)
		}
		told(rows.text)
	}
	figures := strings.NewReplacer("{first}", fmt.Sprint(pagesEach), "{days}", fmt.Sprint(days))
	for _, text := range pagesFigures {
		if _, err := p.pool.Exec(ctx, figures.Replace(text)); err != nil {
			return fmt.Errorf("filling by %s: %w", text, err)
		}
	}
	err := p.settle(ctx)
	told("settled")
	return err
}
