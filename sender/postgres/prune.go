package postgres

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

const (
	selectOldNotices = `SELECT no FROM surehook_notices WHERE acknowledged_at IS NOT NULL AND acknowledged_at < $1 ORDER BY acknowledged_at LIMIT $2`
	deleteNotices    = `DELETE FROM surehook_notices WHERE no = ANY($1)`

	selectOldReplays = `SELECT no FROM surehook_replays WHERE ended_at IS NOT NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2`
	deleteReplays    = `DELETE FROM surehook_replays WHERE no = ANY($1)`

	selectOldRollups = `SELECT minute, shard FROM surehook_rollups WHERE minute < $1 ORDER BY minute, shard LIMIT $2`
	deleteRollups    = `DELETE FROM surehook_rollups r USING unnest($1::timestamptz[], $2::bigint[]) AS u(minute, shard)
		WHERE r.minute = u.minute AND r.shard = u.shard`

	// An hour goes after its minutes, so with some of them, or with those of a later one.
	deleteHourRollups = `DELETE FROM surehook_hour_rollups WHERE hour IN (SELECT hour FROM surehook_hour_rollups WHERE hour <= $1::timestamptz - interval '1 hour' ORDER BY hour LIMIT $2)`

	selectOldHours = `SELECT subscription, hour, shard FROM surehook_subscription_rollups WHERE hour < $1 ORDER BY hour LIMIT $2`
	deleteHours    = `DELETE FROM surehook_subscription_rollups r USING unnest($1::bigint[], $2::timestamptz[], $3::bigint[]) AS u(subscription, hour, shard)
		WHERE r.subscription = u.subscription AND r.hour = u.hour AND r.shard = u.shard`
)

// pruning is a call of Prune at work.
type pruning struct {
	*core
	ctx context.Context
	*rules.PrunePass
}

// Prune implements dispatch.Store. It looks for what can go in a transaction that
// only reads and locks nothing, and removes it in another one. The space that it frees is
// used again after a vacuum; the tables do not shrink.
func (c *core) Prune(ctx context.Context, params dispatch.PruneParams) (dispatch.Pruned, error) {
	batch, err := rules.NewPrunePass(params)
	if err != nil {
		return dispatch.Pruned{}, err
	}
	p := &pruning{core: c, ctx: ctx, PrunePass: batch}
	at := func(step func(before timestamp) (bool, error)) rules.PruneStep {
		return func(before time.Time) (bool, error) { return step(timestampOf(before)) }
	}
	out, err := p.Run(rules.PruneSteps{
		DeadLetters: at(p.deadLetters), Cancelled: at(p.cancelled), Delivered: at(p.delivered),
		Events: at(p.events), Notices: at(p.notices), Replays: at(p.replays), Rollups: at(p.rollups), SubscriptionRollups: at(p.hours), Subscriptions: at(p.subscriptions), Objects: at(p.objects),
	})
	return out, fail("pruning", err)
}

// remove deletes rows by their numbers, and returns how many were still there.
func (p *pruning) remove(query string, args ...any) (n int, err error) {
	err = p.dispatching().write(p.ctx, func(w *work) error {
		removed, err := w.exec(query, args...)
		n = int(removed)
		return err
	})
	return n, err
}

func (p *pruning) notices(before timestamp) (more bool, err error) {
	return p.numbered(selectOldNotices, deleteNotices, before, &p.Out.Notices)
}

func (p *pruning) replays(before timestamp) (more bool, err error) {
	return p.numbered(selectOldReplays, deleteReplays, before, &p.Out.Replays)
}

// numbered removes rows by their numbers. Those that are old cannot become anything else.
func (p *pruning) numbered(selectOld, deleteThem string, before timestamp, removed *int) (more bool, err error) {
	var all []int64
	err = p.dispatching().read(p.ctx, func(w *work) (err error) {
		all, err = w.numbers(selectOld, before, p.Limit)
		return err
	})
	if err != nil || len(all) == 0 {
		return false, err
	}
	n, err := p.remove(deleteThem, all)
	*removed += n
	return len(all) == p.Limit, err
}

func (p *pruning) rollups(before timestamp) (more bool, err error) {
	var minutes []timestamp
	var shards []int64
	err = p.dispatching().read(p.ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var minute timestamp
			var shard int64
			err := r.Scan(&minute, &shard)
			minutes, shards = append(minutes, minute), append(shards, shard)
			return true, err
		}, selectOldRollups, before, p.Limit)
	})
	if err != nil || len(minutes) == 0 {
		return false, err
	}
	n, err := p.remove(deleteRollups, minutes, shards)
	p.Out.Rollups += n
	if err == nil {
		_, err = p.remove(deleteHourRollups, before, p.Limit)
	}
	return len(minutes) == p.Limit, err
}

// hours removes figures of subscriptions.
func (p *pruning) hours(before timestamp) (more bool, err error) {
	var subscriptions, shards []int64
	var hours []timestamp
	err = p.dispatching().read(p.ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var subscription, shard int64
			var hour timestamp
			err := r.Scan(&subscription, &hour, &shard)
			subscriptions, hours, shards = append(subscriptions, subscription), append(hours, hour), append(shards, shard)
			return true, err
		}, selectOldHours, before, p.Limit)
	})
	if err != nil || len(hours) == 0 {
		return false, err
	}
	n, err := p.remove(deleteHours, subscriptions, hours, shards)
	p.Out.SubscriptionRollups += n
	return len(hours) == p.Limit, err
}
