package simulation

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/signing"
)

var begins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// quiet discards logs.
var quiet = slog.New(slog.DiscardHandler)

// registry is a sender.Registry of any transaction type.
type registry interface {
	CreateSubscriber(ctx context.Context, n sender.NewSubscriber) (sender.Subscriber, signing.Secret, error)
	Subscribe(ctx context.Context, n sender.NewSubscription) (sender.Subscription, error)
	Subscription(ctx context.Context, id string) (sender.Subscription, error)
	Update(ctx context.Context, id string, change sender.SubscriptionChange) (sender.Subscription, error)
	Pause(ctx context.Context, id string) error
	Disable(ctx context.Context, id, reason string) error
	Resume(ctx context.Context, id string, take sender.Resume) error
	RotateSecret(ctx context.Context, subscriber string, r *sender.Rotation) (signing.Secret, time.Time, error)
	RetireSecret(ctx context.Context, subscriber string) error
}

// world has everything of a run. Everything in it happens in one goroutine.
type world struct {
	cfg   Config
	ctx   context.Context
	rand  *rand.Rand
	now   time.Time // the database's
	queue queue
	depth int // of the events during a call of the database
	trace trace

	odds   [kinds]float64
	calm   bool // faults have stopped
	counts map[string]int

	// The service.
	keys     *sender.Keys
	open     func(local func() time.Time) (dispatch.Store, error)
	links    breaker // nil: there are none
	woken    <-chan struct{}
	publish  func(e sender.Event, rollBack bool, open time.Duration) (sender.Ref, error)
	registry registry
	history  *history.History
	near     *history.History // it reaches back for nearReach alone

	countsMayBeLost bool
	replays         *replay.Replays
	receiving       func() receiving // the database of an application that begins
	config          dispatch.Config
	lasts           time.Duration // until the faults stop
	whole           int           // events with more deliveries are large
	floods          bool          // many versions of an object come at once
	away            time.Time     // until when the database is
	down            time.Time     // until when the processes' network is

	owners    []*owner
	subs      []*subscription
	processes []*process
	producer  producer

	// The records against which the invariants are checked.
	records

	steps, attempts, committed int
	broken                     *Violation
	failed                     error // an unexpected error
}

func newWorld(ctx context.Context, cfg Config) *world {
	w := &world{
		cfg: cfg, ctx: context.WithValue(ctx, planned{}, true), now: begins, rand: rand.New(rand.NewPCG(cfg.Seed, 0)), trace: newTrace(cfg.Watch),
		counts: map[string]int{}, records: newRecords(),
	}
	w.keys, w.failed = sender.NewKeys(sender.SealingKey{ID: "k", Key: bytes.Repeat([]byte{1}, 32)})
	return w
}

func (w *world) clock() time.Time { return w.now }

// build makes the service, its subscribers and their endpoints.
func (w *world) build() error {
	w.drawFaults()
	timeout := w.between(50*time.Millisecond, 5*time.Second)
	w.lasts = w.between(time.Minute, 10*24*time.Hour)
	horizon := []time.Duration{time.Hour, 12 * time.Hour, longestHorizon}[w.rand.IntN(3)]
	w.config = dispatch.Config{
		Policy:  dispatch.Policy{Backoff: backoff.Policy{Horizon: horizon}, FastAnswer: timeout / 5, DisableAfter: max(w.lasts/30, time.Minute), Own: ownPolicies(horizon)},
		Timeout: timeout, Lease: 3*timeout + w.between(time.Millisecond, time.Minute),
		Slots: 4 << w.rand.IntN(6), PerSubscription: 1 << w.rand.IntN(6),
		MaxIdle: min(max(w.lasts/time.Duration(min(100+w.cfg.Events, 500)), 100*time.Millisecond), 5*time.Minute),
		Logger:  quiet, Chance: w.rand.Float64, Fence: w.rand.Int64,
		Retention: w.drawRetention(horizon),
	}
	for i := range 3 + w.rand.IntN(2) { // three at least for an outage of our own network
		if err := w.addOwner(fmt.Sprintf("sub_%d", i)); err != nil {
			return err
		}
	}
	for i := range 4 + w.rand.IntN(5) {
		if err := w.addSubscription(i); err != nil {
			return err
		}
	}
	for i := range 2 + w.rand.IntN(3) {
		p := &process{w: w, no: i}
		w.processes = append(w.processes, p)
		w.at(0, p.start)
	}
	w.whole, w.floods = 1+w.rand.IntN(4), w.rand.IntN(12) == 0 && w.cfg.Events >= manyEvents
	w.producer = newProducer(w)
	return nil
}

// at plans a call of fn after a while.
func (w *world) at(after time.Duration, do func()) {
	w.queue.add(w.now.Add(max(after, 0).Truncate(time.Microsecond)), do)
}

// run runs the planned events until a time.
func (w *world) run(until time.Time) {
	for w.broken == nil && w.failed == nil {
		h, ok := w.queue.next(until)
		if !ok {
			w.advance(until)
			return
		}
		w.advance(h.at)
		h.do()
		w.steps++
		if w.steps%4096 == 0 && w.ctx.Err() != nil {
			w.fail(w.ctx.Err())
		}
	}
}

func (w *world) advance(to time.Time) {
	if to.After(w.now) {
		w.now = to
	}
}

// meanwhile lets others go on while a caller waits within a call.
func (w *world) meanwhile(d time.Duration) {
	if w.depth < 3 {
		w.depth++
		w.run(w.now.Add(d))
		w.depth--
	}
}

// fail notes an unexpected error.
func (w *world) fail(err error) {
	if err != nil && w.failed == nil {
		w.failed = err
	}
}

// violated notes a violation of an invariant.
func (w *world) violated(invariant, format string, args ...any) {
	if w.broken == nil {
		w.broken = &Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...), At: w.now.Sub(begins), Trace: w.trace.lines()}
	}
}

// live is the time of the faults.
func (w *world) live() {
	w.producer.begin()
	w.at(w.lasts/1000, w.weather)
	w.run(begins.Add(w.lasts))
}

// weather begins troubles that last for a while.
func (w *world) weather() {
	if w.calm {
		return
	}
	w.at(w.between(w.lasts/10000, w.lasts/100), w.weather)
	if w.fault(databaseAway) {
		w.away = w.now.Add(w.between(10*time.Millisecond, w.lasts/20))
	}
	if w.fault(networkDown) {
		w.down = w.now.Add(w.between(time.Second, w.lasts/10))
	}
	for _, p := range w.processes {
		p.weather()
	}
	for _, s := range w.subs {
		s.weather()
	}
	w.operate()
}
