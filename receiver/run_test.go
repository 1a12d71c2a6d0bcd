package receiver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
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
