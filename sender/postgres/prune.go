package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	selectOldNotices = `SELECT no FROM surehook_notices WHERE acknowledged_at IS NOT NULL AND acknowledged_at < $1 ORDER BY acknowledged_at LIMIT $2`
	deleteNotices    = `DELETE FROM surehook_notices WHERE no = ANY($1)`

	selectOldRollups = `SELECT minute, shard FROM surehook_rollups WHERE minute < $1 ORDER BY minute, shard LIMIT $2`
	deleteRollups    = `DELETE FROM surehook_rollups r USING unnest($1::timestamptz[], $2::bigint[]) AS u(minute, shard)
		WHERE r.minute = u.minute AND r.shard = u.shard`
)

// pruneCursor is how far a pass is: in one of its steps, after a delivery or an event.
type pruneCursor struct {
	step                int
	event, subscription int64
}

func (c pruneCursor) String() string { return fmt.Sprintf("%d.%d.%d", c.step, c.event, c.subscription) }

func parsePruneCursor(text string) (c pruneCursor, err error) {
	if text == "" {
		return c, nil
	}
	_, err = fmt.Sscanf(text, "%d.%d.%d", &c.step, &c.event, &c.subscription)
	if err != nil || c.String() != text || c.step < 0 || c.step >= len(pruneSteps) || c.event < 0 || c.subscription < 0 {
		return c, fmt.Errorf("%w cursor: it must be one that a batch before came with", sender.ErrInvalid)
	}
	return c, nil
}

// pruning is one Prune at work.
type pruning struct {
	*core
	ctx context.Context
	sender.PruneParams
	at  pruneCursor
	out sender.Pruned
}

// pruneSteps are a pass. Each removes what it finds first after p.at, if anything was
// before its time, and returns whether it may have left some. Those of deliveries come
// before that of their events.
var pruneSteps = []struct {
	before func(p *sender.PruneParams) time.Time
	run    func(p *pruning, before moment) (more bool, err error)
}{
	{func(p *sender.PruneParams) time.Time { return p.DeadLetters }, (*pruning).deadLetters},
	{func(p *sender.PruneParams) time.Time { return p.Delivered }, (*pruning).cancelled},
	{func(p *sender.PruneParams) time.Time { return p.Delivered }, (*pruning).delivered},
	{func(p *sender.PruneParams) time.Time { return p.Events }, (*pruning).events},
	{func(p *sender.PruneParams) time.Time { return p.Notices }, (*pruning).notices},
	{func(p *sender.PruneParams) time.Time { return p.Rollups }, (*pruning).rollups},
}

// Prune implements sender.RetentionStore. It looks for what is to go in a transaction
// that only reads and locks nothing, and removes it in another one. What it frees is
// used again once it is vacuumed; the tables do not shrink.
func (c *core) Prune(ctx context.Context, params sender.PruneParams) (sender.Pruned, error) {
	if params.Limit < 1 {
		return sender.Pruned{}, fmt.Errorf("%w limit %d: it must be at least 1", sender.ErrInvalid, params.Limit)
	}
	at, err := parsePruneCursor(params.Cursor)
	if err != nil {
		return sender.Pruned{}, err
	}
	p := &pruning{core: c, ctx: ctx, PruneParams: params, at: at}
	for ; p.at.step < len(pruneSteps); p.at = (pruneCursor{step: p.at.step + 1}) {
		step := pruneSteps[p.at.step]
		before := step.before(&params)
		if before.IsZero() {
			continue
		}
		more, err := step.run(p, momentOf(before))
		if err != nil {
			return sender.Pruned{}, fail("pruning", err)
		}
		if more {
			p.out.Cursor = p.at.String()
			break
		}
		if done := p.out.Deliveries + p.out.DeadLetters + p.out.Events + p.out.Notices + p.out.Rollups; done > 0 && p.at.step+1 < len(pruneSteps) {
			p.out.Cursor = pruneCursor{step: p.at.step + 1}.String()
			break
		}
	}
	return p.out, nil
}

// look is read under the settings of the store's own transactions: so it never reads
// whole tables.
func (c *core) look(ctx context.Context, fn func(w *work) error) error {
	return c.read(ctx, func(w *work) error {
		if err := w.execs(own); err != nil {
			return err
		}
		return fn(w)
	})
}

// remove deletes rows by their numbers, and returns how many were still there.
func (p *pruning) remove(query string, args ...any) (n int, err error) {
	err = p.write(p.ctx, func(w *work) error {
		removed, err := w.exec(query, args...)
		n = int(removed)
		return err
	})
	return n, err
}

func (p *pruning) notices(before moment) (more bool, err error) {
	var all []int64
	err = p.look(p.ctx, func(w *work) (err error) {
		all, err = w.numbers(selectOldNotices, before, p.Limit)
		return err
	})
	if err != nil || len(all) == 0 {
		return false, err
	}
	n, err := p.remove(deleteNotices, all)
	p.out.Notices += n
	return len(all) == p.Limit, err
}

func (p *pruning) rollups(before moment) (more bool, err error) {
	var minutes []moment
	var shards []int64
	err = p.look(p.ctx, func(w *work) error {
		return w.each(func(r rows) (bool, error) {
			var minute moment
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
	p.out.Rollups += n
	return len(minutes) == p.Limit, err
}
