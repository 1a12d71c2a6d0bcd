package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/internal/dberr"
)

const (
	pruneEvery = time.Hour
	pruneAgain = time.Minute // after a failure of the database
)

// Run removes markers that are older than Config.Retention, at once and then every hour,
// until ctx ends; then it returns nil. A failure of the database is logged, and it is
// tried again a minute later. Tables that are not migrated are an error at once, unless they
// were there before. It works in batches of dedup.DefaultPruneBatch, each in a transaction of
// its own. Several processes may run.
//
// It goes by Config.Now, which is this process's clock. One that is far ahead removes markers
// that are still needed, and what is sent again then is applied again. The clock of a process
// that applies events and is far behind does the same harm: others remove its markers at once.
//
// Without Run markers stay for ever, unless something else removes them. A receiver that
// has taken events for more than an hour without Run says so in the log, once, unless it only
// records them (RecordHandler): that makes no markers.
func (r *Receiver[Tx]) Run(ctx context.Context) error {
	r.pruning.ran.Store(true)
	began := false // later, tables may be away while somebody restores them
	for {
		wait := pruneEvery
		_, err := dedup.Prune(ctx, r.inTx, r.store, r.cfg.Now().Add(-r.cfg.Retention), dedup.DefaultPruneBatch)
		if !began && errors.Is(err, dberr.ErrUnmigrated) {
			return fmt.Errorf("receiver: removing old markers: %w", err)
		}
		began = began || err == nil
		if err != nil && ctx.Err() == nil {
			wait = pruneAgain
			r.log().LogAttrs(ctx, slog.LevelWarn, "receiver: old markers could not be removed; it is tried again", slog.Any("error", err), slog.Duration("in", wait))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// pruning is what is known about the removal of old markers.
type pruning struct {
	ran   atomic.Bool  // Run was called, or its absence was reported
	since atomic.Int64 // when the first event came, in ns since 1970; 0: none has
}

// missRun reports once that nobody has called Run. Each event asks that may leave a marker.
func (r *Receiver[Tx]) missRun(ctx context.Context) {
	p := &r.pruning
	if p.ran.Load() {
		return
	}
	now := r.cfg.Now().UnixNano()
	since := p.since.Load()
	if since == 0 {
		p.since.CompareAndSwap(0, now)
		return
	}
	if now-since <= int64(pruneEvery) || p.ran.Swap(true) {
		return
	}
	r.log().LogAttrs(ctx, slog.LevelWarn, "receiver: events have been taken for more than an hour, and Run was never called: nothing removes markers that are older than the Retention, unless dedup.Prune is called elsewhere; call Receiver.Run beside the server")
}
