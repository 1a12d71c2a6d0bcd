package catchup_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	"github.com/surehook/surehook/signing"
)

// inMemory is a consumer for tests of time.
type inMemory struct {
	store *memory.Store
	rcv   *receiver.Receiver[*memory.Tx]
	feed  *fakeFeed

	mu      sync.Mutex
	cursor  string
	stored  int // how often a cursor was stored
	silent  int // how often the connection is dead without a word
	panics  int // how often the store panics
	applied map[string]time.Time
}

func newInMemory(t *testing.T) *inMemory {
	b := &inMemory{store: memory.New(), feed: &fakeFeed{}, applied: map[string]time.Time{}}
	keys, err := signing.NewKeyring(signing.Key{ID: "1", Secret: signing.GenerateSecret()})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)
	b.rcv, err = receiver.New(verifier, b.store.InTx, b.store, "default", &receiver.Config{Logger: quiet})
	require.NoError(t, err)
	return b
}

func (b *inMemory) Cursor(ctx context.Context, _ *memory.Tx, _ string) (string, error) {
	if b.dead() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cursor, nil
}

func (b *inMemory) SetCursor(ctx context.Context, _ *memory.Tx, _, cursor string) error {
	if b.dead() {
		<-ctx.Done()
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cursor = cursor
	b.stored++
	return nil
}

func (b *inMemory) dead() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.panics--; b.panics >= 0 {
		panic("no")
	}
	b.silent--
	return b.silent >= 0
}

func (b *inMemory) apply(_ context.Context, _ *memory.Tx, ev receiver.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.applied[ev.ID] = time.Now()
	return nil
}

func (b *inMemory) catchup(t *testing.T, source catchup.Source, cfg catchup.Config) *catchup.Catchup[*memory.Tx] {
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	c, err := catchup.New(source, b.rcv, b.store.InTx, catchup.CursorStore[*memory.Tx](b), receiver.State(b.apply), &cfg)
	require.NoError(t, err)
	return c
}

func TestPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInMemory(t)
		b.feed.add(1)
		for range 12 {
			b.feed.fail = append(b.feed.fail, errBroken)
		}
		b.feed.fail = append(b.feed.fail, &catchup.StatusError{Status: 429, RetryAfter: 10 * time.Minute}, &catchup.StatusError{Status: 429, RetryAfter: 1000 * time.Hour})
		var pauses []time.Duration
		c := b.catchup(t, b.feed, catchup.Config{Hooks: catchup.Hooks{Retry: func(_ context.Context, _ string, _ error, d time.Duration) { pauses = append(pauses, d) }}})
		_, err := c.Reconcile(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, pauses, 14)
		for i, d := range pauses[:12] {
			most := min(500*time.Millisecond<<i, time.Minute)
			require.LessOrEqual(t, d, most, "pause %d", i)
			require.GreaterOrEqual(t, d, most/2, "pause %d", i)
		}
		require.Equal(t, []time.Duration{10 * time.Minute, time.Hour}, pauses[12:], "as the sender asks, within reason")
	})
}

// slow is a feed on a line that brings no more than a few events in time.
type slow struct {
	*fakeFeed
	most int
}

func (s slow) Page(ctx context.Context, after string, limit int, wait time.Duration) (catchup.Page, error) {
	page, err := s.fakeFeed.Page(ctx, after, limit, wait)
	if len(page.Events) > s.most {
		err = fmt.Errorf("reading the answer: %w", context.DeadlineExceeded)
	}
	return page, err
}

// A page that does not come in time is asked for with fewer events, and never as a whole again
// and again.
func TestSlowLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInMemory(t)
		b.feed.add(100)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		report, err := b.catchup(t, slow{b.feed, 7}, catchup.Config{}).Reconcile(ctx, "")
		require.NoError(t, err)
		require.Equal(t, 100, report.Applied)
		require.Less(t, len(b.feed.asks), 60, "after a success it does not begin anew")
	})
}

// standing is a feed whose last page leads to itself, as of a sender that takes a cursor for
// the first event that is to follow.
type standing struct{ *fakeFeed }

func (s standing) Page(ctx context.Context, after string, limit int, wait time.Duration) (catchup.Page, error) {
	page, err := s.fakeFeed.Page(ctx, "", limit, wait)
	page.Next = "here"
	return page, err
}

// A page that leads to itself is not asked for without a pause, and is the end of a
// reconciliation.
func TestPageThatLeadsToItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInMemory(t)
		b.feed.add(2)
		c := b.catchup(t, standing{b.feed}, catchup.Config{})
		report, err := c.Reconcile(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, catchup.Report{Seen: 4, Applied: 2, Duplicates: 2, Missed: report.Missed, Next: "here"}, report)
		b.feed.asks = nil
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, c.Run(ctx))
		require.InDelta(t, 60, len(b.feed.asks), 30)
	})
}

// A sender that answers every request at once is not asked all the time.
func TestEmptyAnswersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInMemory(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, b.catchup(t, b.feed, catchup.Config{}).Run(ctx))
		require.InDelta(t, 60, len(b.feed.asks), 30)
	})
}

// movingFeed has no events for us, and a cursor that moves.
type movingFeed struct{ asked int }

func (f *movingFeed) Page(ctx context.Context, _ string, _ int, wait time.Duration) (catchup.Page, error) {
	f.asked++
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return catchup.Page{}, ctx.Err()
	}
	return catchup.Page{Next: fmt.Sprint("at ", f.asked)}, nil
}

func TestCursorMovesWithoutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInMemory(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		f := &movingFeed{}
		require.NoError(t, b.catchup(t, f, catchup.Config{Wait: 5 * time.Second}).Run(ctx))
		require.InDelta(t, 120, f.asked, 2)
		require.InDelta(t, 10, b.stored, 1, "once a minute, and not with every answer")
	})
}

// A connection that is dead without a word keeps no cursor from being read or stored, and
// neither does a panic in the store.
func TestCursorOnADeadConnection(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		first, panics := i&1 == 0, i&2 == 0 // the connection that reads, or that stores
		synctest.Test(t, func(t *testing.T) {
			b := newInMemory(t)
			dies := func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				if b.silent = 1; panics {
					b.silent, b.panics = 0, 1
				}
			}
			if first {
				dies()
			} else {
				time.AfterFunc(time.Second, dies)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			require.NoError(t, b.catchup(t, &movingFeed{}, catchup.Config{Wait: 5 * time.Second}).Run(ctx))
			require.InDelta(t, 10, b.stored, 1)
		})
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInMemory(t)
		start := time.Now()
		for id, age := range map[string]time.Duration{"evt_old": time.Hour, "evt_young": 10 * time.Second, "evt_future": -time.Hour} {
			b.feed.events = append(b.feed.events, fmt.Appendf(nil, `{"id":"%s","type":"a","occurred_at":"%s","object":{"type":"a","id":"%s"},"version":1}`, id, start.Add(-age).UTC().Format(time.RFC3339Nano), id))
		}
		b.feed.add(1) // without a time
		_, err := b.catchup(t, b.feed, catchup.Config{Settle: time.Minute}).Reconcile(t.Context(), "")
		require.NoError(t, err)
		require.Len(t, b.applied, 4)
		require.GreaterOrEqual(t, b.applied["evt_young"].Sub(start), 50*time.Second)
		require.LessOrEqual(t, time.Since(start), 2*time.Minute, "by our own clock nothing waits longer than Settle")
		require.GreaterOrEqual(t, b.applied["evt_future"].Sub(start), time.Minute)
	})
}
