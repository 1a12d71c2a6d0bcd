package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/surehook/surehook/internal/sqlitetx"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/damage"
	"github.com/surehook/surehook/sender/internal/hourly"
	"github.com/surehook/surehook/sender/internal/inside"
	"github.com/surehook/surehook/sender/internal/processes"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

// Config adjusts a Store. A nil config and zero fields mean the defaults.
type Config struct {
	// Now is the database's clock: by it deliveries become due and leases end.
	// All processes on one database must agree on it; they are on one machine. The
	// default is time.Now.
	Now func() time.Time

	// Logger gets messages about damaged rows, which cause no error. The default is
	// slog.Default().
	Logger *slog.Logger
}

// Store is a sender.Store in an SQLite database. It is safe for concurrent use,
// by any number of processes on one machine. Use one Store for a *sql.DB: its
// transactions take turns with each other.
type Store struct {
	db      *sql.DB
	clock   func() time.Time
	file    sqlitetx.File
	writing *semaphore.Weighted // first come, first served
	inTx    inside.Calls        // of InTx, whose function must not wait for a turn
	woken   chan struct{}

	othersWroteAt atomic.Int64 // when somebody other than a dispatcher wrote last, or was about to
	published     atomic.Bool  // something was, since the last time that InTx committed
	prepared      atomic.Pointer[map[string]*sql.Stmt]
	turns         atomic.Int64 // the last turn that was given, to a subscriber, a subscription or a replay
	shard         int64        // of this store's rollups
	damage        *damage.Log
	processes     processes.Known
	hours         hourly.Counts
	undecided     atomic.Pointer[undecided] // left by the last expansion

	// These belong to whoever has the turn to write and holds the write lock.
	registryCache registryCache
	filtersAsk    bool          // about most bodies, as the last expansion found: then these are read with their events
	filtered      []byte        // the bodies that an expansion asks filters about
	merged        hourly.Merged // the hours whose rollups are
	deadLooked    deadLooked
	rollup        *history.Rollup // of the last minute in which something happened
	// These are reused for each claim, and empty between claims.
	found  []dueDelivery    // an array for the deliveries that it finds
	bodies map[int64][]byte // of events
	bytes  rules.Bytes
}

var (
	_ sender.Store[*sql.Tx]  = (*Store)(nil)
	_ sender.Reader[*sql.Tx] = (*Store)(nil)
	_ dispatch.Store         = (*Store)(nil)
	_ dispatch.ReplayPauses  = (*Store)(nil)
	_ history.Store          = (*Store)(nil)
	_ replay.Store           = (*Store)(nil)
	_ feed.Store             = (*Store)(nil)
)

// New returns a store in db. The tables must be there before it is used: see
// [Store.Migrate].
func New(db *sql.DB, cfg *Config) (*Store, error) {
	if db == nil {
		return nil, errors.New("sqlite: New needs a *sql.DB")
	}
	s := &Store{db: db, clock: time.Now, writing: semaphore.NewWeighted(1), woken: make(chan struct{}, 1), bodies: map[int64][]byte{}}
	logger := slog.Default()
	if cfg != nil {
		logger = cmp.Or(cfg.Logger, logger)
		if cfg.Now != nil {
			s.clock = cfg.Now
		}
	}
	s.damage = damage.NewLog(logger)
	// Turns order what is due at the same time. Those of other processes are about as
	// high.
	s.turns.Store(time.Now().UnixNano())
	s.shard = rand.Int64()
	return s, nil
}

// WaitToWrite waits until all who asked before have had their turn at writing, and returns
// a function that ends this one. It is for transactions of the application that do not go
// through InTx. Begin one after WaitToWrite, and call done once it has ended. done may be
// called more than once. The error is ctx's, or matches sender.ErrInvalid if it is called
// inside the function of InTx.
func (s *Store) WaitToWrite(ctx context.Context) (done func(), err error) {
	s.othersWroteAt.Store(s.now())
	return s.waitToWrite(ctx)
}

func (s *Store) waitToWrite(ctx context.Context) (done func(), err error) {
	if ctx.Err() != nil || !s.writing.TryAcquire(1) { // others have the turn, or ask for it
		if s.inTx.Called() {
			return nil, inside.ErrInTx
		}
		if err := s.writing.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("sqlite: waiting for a turn to write: %w", err)
		}
	}
	var ended atomic.Bool
	return func() {
		if !ended.Swap(true) {
			s.writing.Release(1)
		}
	}, nil
}

// Wake implements sender.Outbox.
func (s *Store) Wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// Woken implements dispatch.Store.
func (s *Store) Woken() <-chan struct{} { return s.woken }

// now is in microseconds since 1970, as are all times in the tables.
func (s *Store) now() int64 { return s.clock().UnixMicro() }

// micros returns a time in microseconds since 1970; 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// microsFrom is the first microsecond that is not before a time. The times that are stored
// have no finer parts, so they are before the one if they are before the other.
func microsFrom(t time.Time) int64 {
	at := micros(t)
	if t.Nanosecond()%1000 != 0 {
		at++
	}
	return at
}

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
