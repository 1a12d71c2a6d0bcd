package simulation

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/storetest"
)

const manyEvents = 400

// Config says what to simulate. Zero fields mean the defaults.
type Config struct {
	// Seed decides everything. Seeds also differ in the kinds and the number of
	// faults, and in the time that a run takes.
	Seed uint64

	// Events is the number of published events. The default is 400, which make some
	// 2,000 attempts.
	Events int

	// NoFaults leaves the faults out, so that posts and attempts must be equal.
	NoFaults bool

	// Watch, if not nil, gets every line of the trace.
	Watch func(line string)
}

// Database is the database that the processes of a simulation share. Each run needs an
// empty one of its own.
type Database[Tx any] interface {
	// Open returns a store for a process that begins. now is the time of its rows,
	// which never falls; local is the process's own clock, which can be off.
	Open(ctx context.Context, now, local func() time.Time) (storetest.Store[Tx], error)
}

// Report has the figures of a run.
type Report struct {
	Seed       uint64
	Events     int // committed
	Deliveries int
	Attempts   int // POSTs
	Steps      int // in which something happened, the invariants being checked after each
	Virtual    time.Duration
	Hash       string         // over all that happened: always the same for the same seed
	Counts     map[string]int // of events in the simulation, by their names
}

// Violation is an invariant that did not hold.
type Violation struct {
	Seed      uint64
	Invariant string // as I5
	Text      string
	At        time.Duration // of virtual time
	Trace     []string      // the last that happened before
}

// Error implements error.
func (v *Violation) Error() string {
	text := fmt.Sprintf("seed %d, after %v: %s does not hold: %s\nThe last that happened:", v.Seed, v.At, v.Invariant, v.Text)
	for _, line := range v.Trace {
		text += "\n  " + line
	}
	return text
}

// Run simulates one seed. The error is a *Violation, or says why the seed could not be
// run.
func Run[Tx any](ctx context.Context, db Database[Tx], cfg Config) (Report, error) {
	if cfg.Events == 0 {
		cfg.Events = manyEvents
	}
	w := newWorld(ctx, cfg)
	if err := serve(w, db); err != nil {
		return Report{}, err
	}
	if err := w.build(); err != nil {
		return Report{}, err
	}
	w.live()
	w.settle()
	r := Report{
		Seed: cfg.Seed, Events: w.committed, Deliveries: len(w.deliveries), Attempts: w.attempts, Steps: w.steps,
		Virtual: w.now.Sub(begins), Hash: hex.EncodeToString(w.trace.hash.Sum(nil)), Counts: w.counts,
	}
	if w.broken != nil {
		w.broken.Seed = cfg.Seed
		return r, w.broken
	}
	return r, w.failed
}

// serve gives the world its parts that depend on the type of a transaction.
func serve[Tx any](w *world, db Database[Tx]) error {
	store, err := db.Open(w.ctx, w.clock, w.clock)
	if err != nil {
		return err
	}
	w.receiving = inMemoryReceiving
	if own, ok := any(db).(receivers); ok {
		w.receiving = own.receiving
	}
	w.links, _ = any(db).(breaker)
	_, w.countsMayBeLost = any(db).(counting)
	pub, err := sender.NewPublisher[Tx](store, &sender.PublisherConfig{Now: w.clock})
	if err != nil {
		return err
	}
	if w.registry, err = sender.NewRegistry(store, w.keys, &sender.RegistryConfig{Now: w.clock, PayloadVersion: newerVersion, OwnPolicies: ownPolicies(longestHorizon)}); err != nil {
		return err
	}
	if w.history, err = history.New(store, &history.Config{Now: w.clock}); err != nil {
		return err
	}
	if w.near, err = history.New(store, &history.Config{Now: w.clock, Retention: sender.Retention{Reach: nearReach}}); err != nil {
		return err
	}
	if w.replays, err = replay.New(fewCounted{store}, &replay.Config{Now: w.clock}); err != nil {
		return err
	}
	w.open = func(local func() time.Time) (dispatch.Store, error) { return db.Open(w.ctx, w.clock, local) }
	w.woken = store.Woken()
	w.publish = func(e sender.Event, rollBack bool, open time.Duration) (ref sender.Ref, err error) {
		err = pub.InTx(w.ctx, func(tx Tx) (err error) {
			ref, err = pub.PublishTx(w.ctx, tx, e)
			if open > 0 {
				w.meanwhile(open)
			}
			if err == nil && rollBack {
				err = errRolledBack
			}
			return err
		})
		return ref, err
	}
	return nil
}
