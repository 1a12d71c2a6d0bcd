package receiver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/internal/dberr"
	"github.com/surehook/surehook/receiver"
)

// Run removes what is older than the retention, at once and each hour, also after a
// failure.
func TestRunRemovesOldMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, log := onMemory(), new(buffer)
		var fails atomic.Bool
		fails.Store(true)
		inTx := func(ctx context.Context, fn func(*memory.Tx) error) error {
			if fails.Load() {
				return errors.New("the database is away")
			}
			return b.inTx(ctx, fn)
		}
		rcv := newReceiver(t, inTx, b.store, &receiver.Config{Reach: time.Hour, Horizon: time.Hour, Retention: 26 * time.Hour, Logger: log.logger()})
		mark := func() (fresh bool) {
			require.NoError(t, b.inTx(t.Context(), func(tx *memory.Tx) (err error) {
				fresh, err = b.store.Mark(t.Context(), tx, "another", "evt_1", time.Now())
				return err
			}))
			return fresh
		}
		require.True(t, mark())
		time.Sleep(26 * time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- rcv.Run(ctx) }()
		synctest.Wait()
		require.False(t, mark(), "the database was away")
		require.Contains(t, log.String(), "old markers could not be removed; it is tried again")
		fails.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.True(t, mark(), "a minute later it was not")
		time.Sleep(25*time.Hour + 59*time.Minute)
		synctest.Wait()
		require.False(t, mark(), "it is not older than the retention yet")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.True(t, mark(), "and each hour")
		cancel()
		require.NoError(t, <-ended)
	})
}

// pruned is a store whose Prune returns these errors, and then nil.
type pruned struct {
	letterStore[*memory.Tx]
	errs []error
}

func (p *pruned) Prune(context.Context, *memory.Tx, time.Time, int) (int, error) {
	if len(p.errs) == 0 {
		return 0, nil
	}
	err := p.errs[0]
	p.errs = p.errs[1:]
	return 0, err
}

// Run refuses tables that are not migrated, for nothing else would say it before the first
// event. If they go away later, it waits for them.
func TestRunNeedsTables(t *testing.T) {
	missing := fmt.Errorf("pruning: %w", dberr.ErrUnmigrated)
	for _, c := range []struct {
		errs    []error
		refused bool
	}{
		{[]error{missing}, true},
		{[]error{errors.New("the database is away"), missing}, true},
		{[]error{nil, missing, missing}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := onMemory()
			store := &pruned{b.store, c.errs}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
			defer cancel()
			err := newReceiver(t, b.inTx, store, nil).Run(ctx)
			require.Empty(t, store.errs)
			if c.refused {
				require.ErrorContains(t, err, "call Migrate before")
				require.NoError(t, ctx.Err())
			} else {
				require.NoError(t, err)
			}
		})
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "empty.db"))
	require.NoError(t, err)
	defer db.Close()
	require.ErrorContains(t, newReceiver(t, receiver.SQL(db, nil), sqlite.New(), nil).Run(t.Context()), "call Migrate before")
}

// A receiver that nobody prunes says so once, after an hour. One that only records leaves
// no markers.
func TestMissingRunIsReported(t *testing.T) {
	for _, a := range []struct{ runs, records bool }{{false, false}, {true, false}, {false, true}} {
		synctest.Test(t, func(t *testing.T) {
			b, log := onMemory(), new(buffer)
			rcv := b.receiver(t, &receiver.Config{Logger: log.logger()})
			h, snd := rcv.Handler(receiver.State(b.effect)), newSender(t)
			if a.records {
				h = rcv.RecordHandler(func(context.Context, *memory.Tx, receiver.Event) (fresh bool, err error) { return true, nil })
			}
			if a.runs {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				require.NoError(t, rcv.Run(ctx))
			}
			const said = "Run was never called"
			time.Sleep(2 * time.Hour) // without any event
			for _, c := range []struct {
				after time.Duration
				times int
			}{{0, 0}, {time.Hour, 0}, {time.Second, 1}, {5 * time.Hour, 1}} {
				time.Sleep(c.after)
				require.Equal(t, 200, snd.Request(newEvent(1)).Serve(h).Status)
				if a.runs || a.records {
					c.times = 0
				}
				require.Equal(t, c.times, strings.Count(log.String(), said), c.after)
			}
		})
	}
}
