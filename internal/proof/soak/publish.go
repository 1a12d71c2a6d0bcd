package soak

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
)

const publishers = 4

var kinds = []string{"a.x", "a.y", "b.x", "b.y"}

// publisher publishes at its share of the rate until ctx ends.
type publisher struct {
	*cycle
	n     int
	rng   *rand.Rand
	given map[string]int64 // the versions that this publisher gives to objects of its own
}

var errUndo = errors.New("soak: this transaction rolls back")

func (c *cycle) publish(ctx context.Context, n int) error {
	p := &publisher{cycle: c, n: n, rng: c.cfg.rng(fmt.Sprint("publisher ", n)), given: map[string]int64{}}
	pace := time.NewTicker(time.Duration(float64(publishers) / c.cfg.Rate * float64(time.Second)))
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		if c.backlog.Load() > maxBacklog {
			c.w.count("publishes put off, because of the backlog")
			continue
		}
		p.one(ctx)
	}
}

// fresh draws an event.
func (p *publisher) fresh() (*event, sender.Event) {
	e := &event{kind: kinds[p.rng.IntN(len(kinds))], object: sender.Object{Type: "thing", ID: fmt.Sprint(p.rng.IntN(p.cfg.objects()))}}
	if p.rng.IntN(4) == 0 {
		owners := p.owners
		e.to = owners[p.rng.IntN(len(owners))].id
	}
	p.w.begin(e)
	return e, e.published(p.rng.IntN(2000))
}

// published returns the event for the library, with some ballast.
func (e *event) published(ballast int) sender.Event {
	data := map[string]any{"nonce": e.nonce, "for": canary, "ballast": strings.Repeat("x", ballast)}
	return sender.Event{Type: e.kind, Object: e.object, Data: data, Subscriber: e.to}
}

// one publishes once, in one of the possible ways.
func (p *publisher) one(ctx context.Context) {
	p.w.count("publishes")
	switch n := p.rng.IntN(100); {
	case n < 10:
		p.undone(ctx)
	case n < 25:
		p.repeated(ctx)
	case n < 40:
		p.versioned(ctx)
	case n < 45:
		p.many(ctx)
	case n < 52:
		p.hasty(ctx)
	default:
		e, ev := p.fresh()
		ref, err := p.inTx(ctx, e, ev, nil)
		p.acknowledged(ctx, e, ref, err)
	}
}

// inTx publishes with a change of the application's own, and fails with the given
// error after both.
func (p *publisher) inTx(ctx context.Context, e *event, ev sender.Event, fail error) (ref sender.Ref, err error) {
	p.w.mu.Lock()
	e.changes = true
	p.w.mu.Unlock()
	err = p.pub.InTx(ctx, func(tx *sql.Tx) error {
		if err := p.db.exec(ctx, tx, "INSERT INTO soak_things VALUES ($1)", int64(e.nonce)); err != nil {
			return err
		}
		if ref, err = p.pub.PublishTx(ctx, tx, ev); err != nil {
			return err
		}
		return fail
	})
	return ref, err
}

func (p *publisher) acknowledged(ctx context.Context, e *event, ref sender.Ref, err error) {
	if err != nil { // ctx ended: it may have committed
		p.w.count("publishes whose end is not known")
		p.failed(ctx, err)
		p.w.end(e, unknown, ref)
		return
	}
	p.w.count("events acknowledged")
	p.first.Do(func() { close(p.loaded) })
	p.w.end(e, committed, ref)
}

// failed notes that a publish failed. There is no reason for that: nothing stands
// between publishers and their database.
func (p *publisher) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		p.w.add("publish", "a publish failed: %v", err)
	}
}

// undone publishes and rolls back.
func (p *publisher) undone(ctx context.Context) {
	e, ev := p.fresh()
	ref, err := p.inTx(ctx, e, ev, errUndo)
	if !errors.Is(err, errUndo) {
		p.acknowledged(ctx, e, ref, err)
		if err == nil {
			p.w.add("I2", "a transaction whose function failed was committed")
		}
		return
	}
	p.w.count("publishes rolled back")
	p.w.end(e, undone, ref)
}

// repeated publishes twice under one idempotency key, and then something else.
func (p *publisher) repeated(ctx context.Context) {
	e, ev := p.fresh()
	ev.IdempotencyKey, ev.KeyScope = fmt.Sprint(e.nonce), p.scope()
	first, err := p.pub.Publish(ctx, ev)
	p.acknowledged(ctx, e, first, err)
	if err != nil {
		return
	}
	again, err := p.pub.Publish(ctx, ev)
	if err != nil {
		p.failed(ctx, err)
	} else if !again.Duplicate || again.ID != first.ID || again.Version != first.Version {
		p.w.add("I1", "a repeated publish under one key made %s, version %d, of what was %s, version %d", again.ID, again.Version, first.ID, first.Version)
	}
	ev.Data = json.RawMessage(`"another"`)
	switch _, err := p.pub.Publish(ctx, ev); {
	case err == nil:
		p.w.add("I1", "another content was published under a key that was in use")
	case !errors.Is(err, sender.ErrIdempotencyKey):
		p.failed(ctx, err)
	}
	p.w.count("publishes repeated under their keys")
}

func (p *publisher) scope() string { return fmt.Sprint("publisher-", p.n) }

// versioned gives the version itself, and now and then an old one.
func (p *publisher) versioned(ctx context.Context) {
	e, _ := p.fresh()
	e.object = sender.Object{Type: "given", ID: fmt.Sprint(p.n, "-", p.rng.IntN(3), "-", p.number)}
	ev := e.published(10)
	last := p.given[e.object.ID]
	ev.Version = last + 1 + p.rng.Int64N(3)
	if last > 0 && p.rng.IntN(5) == 0 {
		ev.Version = 1 + p.rng.Int64N(last)
		ref, err := p.inTx(ctx, e, ev, nil)
		switch {
		case errors.Is(err, sender.ErrVersion):
			p.w.end(e, undone, ref)
			p.w.count("old versions refused")
		case err == nil:
			p.w.add("I10", "version %d was published over version %d", ev.Version, last)
			p.w.end(e, committed, ref)
		default:
			p.acknowledged(ctx, e, ref, err)
		}
		return
	}
	p.given[e.object.ID] = ev.Version // it may have committed, whatever the answer
	ref, err := p.inTx(ctx, e, ev, nil)
	p.acknowledged(ctx, e, ref, err)
}

// many publishes three at once.
func (p *publisher) many(ctx context.Context) {
	var es [3]*event
	var evs [3]sender.Event
	for i := range es {
		es[i], evs[i] = p.fresh()
	}
	refs, err := p.pub.PublishMany(ctx, evs[:])
	if err != nil {
		refs = make([]sender.Ref, len(es))
	}
	for i, e := range es {
		p.acknowledged(ctx, e, refs[i], err)
	}
}

// patient bounds a publish whose outcome must be known.
const patient = time.Minute

// hasty gives up before it has an answer, and publishes again under the same key until
// it has one.
func (p *publisher) hasty(ctx context.Context) {
	e, ev := p.fresh()
	ev.IdempotencyKey, ev.KeyScope = fmt.Sprint(e.nonce), p.scope()
	for patience := time.Duration(p.rng.IntN(4)) * time.Millisecond; ; patience = patient {
		hasty, cancel := context.WithTimeout(ctx, patience)
		ref, err := p.pub.Publish(hasty, ev)
		late := hasty.Err() != nil
		cancel()
		if err == nil || ctx.Err() != nil {
			p.acknowledged(ctx, e, ref, err)
			return
		}
		if !late || patience == patient {
			p.failed(ctx, err)
		}
		p.w.count("publishes asked for again, because their end was not known")
	}
}
