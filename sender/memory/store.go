// Package memory keeps a sender's events, registry and deliveries in the process. It is
// for tests and for simulations. It honours the whole contract of sender.Store, real
// transactions included. But all that it keeps is gone when the process ends, so no
// promise of durability holds.
//
// One transaction is open at a time. The others, and every other method that reads or
// writes, wait for it in the order of their calls, and give up when their context ends.
// So a function that runs inside InTx must not call a method of the same store that does
// not take its transaction: it would wait for itself.
//
// The same calls in the same order, under the same clock, have the same results, except
// for the ids of notices. All waiting is on channels, so a store made inside a
// testing/synctest bubble works there.
package memory

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/hourly"
	"github.com/surehook/surehook/sender/internal/inside"
	"github.com/surehook/surehook/sender/replay"
)

// Config adjusts a Store. A nil config and zero fields mean the defaults.
type Config struct {
	// Now is the store's clock: by it deliveries become due and leases end. It
	// must not go back. The default is time.Now.
	Now func() time.Time
}

// Store is a sender.Store in memory. It is safe for concurrent use.
type Store struct {
	clock  func() time.Time
	open   *semaphore.Weighted // held by the transaction that is open
	nested inside.Calls        // of InTx, whose function must not begin another one
	woken  chan struct{}

	// The rest belongs to the transaction that is open. It is changed only in ways that
	// Tx can undo.

	begun         int64 // transactions so far, which is also the order of their commits
	events        []*event
	last          int64 // the number of the last event, which may be pruned
	pruned        int64 // the highest number of a pruned event
	eventByID     map[string]*event
	versions      map[sender.Object]int64
	floor         int64 // the next version of each object is above it
	forgettable   []forgettable
	published     map[key]published
	expanding     int // index of the first event that is not expanded whole
	waiting       int // how many events have waited for others in the last expansion: a hint
	subscribers   []*subscriber
	subscriber    map[string]*subscriber
	subscriptions []*subscription
	subscription  map[string]*subscription
	closing       []*subscription
	deleted       []*subscription // the deleted ones that have live deliveries
	ending        []*subscription // the deleted ones that were not swept
	swept         []*subscription // the swept ones that were not pruned
	dropped       []*delivery     // skipped by a resume while they were leased
	stopped       []*delivery     // dead letters that hold back others, or did so lately
	halted        []*delivery     // the firsts of lines that halt, or did so since the last sweep
	deliveries    map[dispatch.DeliveryKey]*delivery
	lanes         [sender.Lanes]queue[*head]
	served        int64        // turns taken in claims
	ends          int64        // of deliveries so far
	replays       []*replayRow // the oldest first
	lastReplay    int64        // the number of the last one that was made
	notices       []*notice
	noticed       int64                         // the number of the last of them
	rollups       map[time.Time]*history.Rollup // by minute
	hours         map[hourly.Key]*history.SubscriptionRollup
	minute        time.Time            // the one in which something was done last
	began         history.Counts       // as they were when it began
	notifying     map[string]notifying // by the ids of notices that were claimed
	processes     map[int64]int64      // the beat of each
}

var (
	_ sender.Store[*Tx] = (*Store)(nil)
	_ dispatch.Store    = (*Store)(nil)
	_ history.Store     = (*Store)(nil)
	_ replay.Store      = (*Store)(nil)
	_ feed.Store        = (*Store)(nil)
)

// New returns an empty store. The error is always nil today.
func New(cfg *Config) (*Store, error) {
	s := &Store{
		clock:        time.Now,
		open:         semaphore.NewWeighted(1),
		woken:        make(chan struct{}, 1),
		eventByID:    map[string]*event{},
		versions:     map[sender.Object]int64{},
		published:    map[key]published{},
		subscriber:   map[string]*subscriber{},
		subscription: map[string]*subscription{},
		deliveries:   map[dispatch.DeliveryKey]*delivery{},
		rollups:      map[time.Time]*history.Rollup{},
		hours:        map[hourly.Key]*history.SubscriptionRollup{},
		notifying:    map[string]notifying{},
		processes:    map[int64]int64{},
	}
	if cfg != nil && cfg.Now != nil {
		s.clock = cfg.Now
	}
	return s, nil
}

// now is in UTC, and without a monotonic reading, so that equal times are equal
// values.
func (s *Store) now() time.Time { return s.clock().UTC() }

// Check implements dispatch.Store. A store in memory is always fit.
func (s *Store) Check(ctx context.Context) error { return ctx.Err() }

// Wake implements sender.Outbox.
func (s *Store) Wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// Woken implements dispatch.Store.
func (s *Store) Woken() <-chan struct{} { return s.woken }
