package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/surehook/surehook/sender"
)

const (
	// A batch is a few milliseconds' work. On a database with one writer, the application's
	// own commits wait for it.
	pruneBatch = 100
	// Between two batches a dispatcher leaves the database alone for this many times as
	// long as the first batch took.
	prunePause = 4
	// A dispatcher passes over everything this often: see betweenPasses.
	pruneEvery = time.Hour
	// After a pass with an error a dispatcher begins a new one after this pause. If a part of
	// that one fails, too, the next comes after pruneEvery: because of one record that cannot
	// be removed, all the others must not be looked at each minute.
	pruneAgain = time.Minute
)

// Prune removes all records that are past their time by Config.Retention. It works in short
// transactions, and leaves the database to others for half of the time. It returns the
// numbers of removed records, also beside an error. If one kind of record fails, the others
// are removed all the same, and the error says which have failed. Run does the same now and
// then: Prune is for schedulers, and for users of RunOnce. Both may run at once.
func (d *Dispatcher) Prune(ctx context.Context) (Pruned, error) {
	defer open(d.store)()
	bounded, end := d.within(ctx)
	err := d.store.Check(bounded)
	end()
	if err != nil {
		return Pruned{}, err
	}
	var pass pruning
	for {
		began := time.Now()
		over, err := pass.batch(ctx, d)
		if err != nil || over {
			return pass.sum, err
		}
		sleep(ctx, time.Since(began))
		if err := ctx.Err(); err != nil {
			return pass.sum, err
		}
	}
}

// pruning is a pass, and the time to go on with it.
type pruning struct {
	params PruneParams
	sum    Pruned
	began  bool
	errs   []error   // of kinds of records
	worked bool      // a batch did
	failed bool      // the pass before had errors
	next   time.Time // when to go on, or to begin the next pass
}

// batch does a part of a pass. It begins a pass if there is none. An error ends the pass: those
// of single kinds of records are kept until the others are done.
func (g *pruning) batch(ctx context.Context, d *Dispatcher) (over bool, err error) {
	if !g.began {
		g.errs, g.worked = nil, false
		bounded, end := d.within(ctx)
		_, claims, err := d.store.Step(bounded, ExpandParams{}, Batch{}) // for the database's time
		end()
		if err != nil {
			return false, err
		}
		g.params, g.sum, g.began = past(d.cfg.Retention, claims.Now), Pruned{}, true
		g.params.Limit = pruneBatch
	}
	bounded, end := d.within(ctx)
	done, err := d.store.Prune(bounded, g.params)
	end()
	switch {
	case ctx.Err() != nil && err != nil:
		return false, err
	case err != nil:
		g.errs = append(g.errs, err)
	default:
		g.worked = true
	}
	g.sum, g.params.Cursor = g.sum.plus(done), done.Cursor
	if done.Cursor != "" {
		return false, nil
	}
	g.began = false
	d.cfg.Logger.DebugContext(ctx, "pruned", "deliveries", g.sum.Deliveries, "dead_letters", g.sum.DeadLetters,
		"events", g.sum.Events, "notices", g.sum.Notices, "rollups", g.sum.Rollups, "subscription_rollups", g.sum.SubscriptionRollups, "subscriptions", g.sum.Subscriptions, "replays", g.sum.Replays, "objects", g.sum.Objects)
	if hook := d.cfg.Hooks.Pruned; hook != nil && g.worked {
		d.guarded(ctx, "Pruned", func() { hook(ctx, g.sum) })
	}
	return true, errors.Join(g.errs...)
}

// pause is for how long to leave the database alone after a batch with an error, which has
// ended the pass.
func (g *pruning) pause() time.Duration {
	if g.failed && g.worked {
		return pruneEvery
	}
	g.failed = true
	return pruneAgain
}

// betweenPasses is how long a dispatcher waits from one pass to the next: no longer than anything
// is kept, so that what is kept for minutes does not stay for an hour.
func betweenPasses(r sender.Retention) time.Duration {
	wait := pruneEvery
	for _, kept := range []time.Duration{r.Delivered, r.Events, r.DeadLetters, r.Notices, r.Rollups, r.SubscriptionRollups} {
		if kept >= 0 { // else for ever
			wait = min(wait, kept)
		}
	}
	return max(wait, time.Second)
}

// past returns the times before which records go now, by a retention.
func past(r sender.Retention, now time.Time) PruneParams {
	p := PruneParams{
		Delivered: now.Add(-r.Delivered), Events: now.Add(-r.Events), Notices: now.Add(-r.Notices), Rollups: now.Add(-r.Rollups),
		SubscriptionRollups: now.Add(-r.SubscriptionRollups),
	}
	if r.DeadLetters >= 0 {
		p.DeadLetters = now.Add(-r.DeadLetters)
	}
	if r.Objects > 0 {
		p.Objects = now.Add(-r.Objects)
	}
	return p
}

// PruneParams says which records go, by times of the database's clock, and bounds one
// batch.
type PruneParams struct {
	Delivered   time.Time
	DeadLetters time.Time
	Events      time.Time
	Notices     time.Time
	Rollups     time.Time
	Objects     time.Time

	SubscriptionRollups time.Time

	Cursor string // of the batch before; "": a pass begins
	Limit  int    // at least 1
}

// Pruned counts the removed records.
type Pruned struct {
	Deliveries  int // records of delivered and cancelled deliveries
	DeadLetters int
	Events      int
	Notices     int
	Rollups     int // minutes, each once for every process that did something in it

	SubscriptionRollups int // hours of subscriptions, each once for every process

	Subscriptions int
	Replays       int
	Objects       int // objects whose last versions are forgotten

	Cursor string // of the batch that follows; "": the pass is over
}

func (p Pruned) plus(q Pruned) Pruned {
	return Pruned{
		Deliveries: p.Deliveries + q.Deliveries, DeadLetters: p.DeadLetters + q.DeadLetters, Events: p.Events + q.Events,
		Notices: p.Notices + q.Notices, Rollups: p.Rollups + q.Rollups, SubscriptionRollups: p.SubscriptionRollups + q.SubscriptionRollups, Subscriptions: p.Subscriptions + q.Subscriptions,
		Replays: p.Replays + q.Replays, Objects: p.Objects + q.Objects, Cursor: q.Cursor,
	}
}
