package inbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
)

// neverApplied: an event that was recorded under other settings, or by another version, can
// no longer be applied. It becomes a dead letter, and the events behind it go on.
func neverApplied[Tx any](t *testing.T, open base[Tx]) {
	b := newBedUnder(t, open, receiver.Config{MaxBodyBytes: 2000}, nil, inbox.Config{Ordered: true})
	large := receivertest.NewEvent("thing", "large", 1)
	large.Data = strings.Repeat("x", 4000)
	early := inbox.Record{Scope: "default", ID: "evt_early", Line: "object/thing/early", Type: "thing.made", Version: 1, Body: []byte(`{"id":"evt_early"}`)}
	other := receivertest.NewEvent("thing", "other", 1)
	kept := inbox.Record{Scope: "default", ID: "sha256-other", Line: "object/thing/other", Type: "pushed", Version: 1, Body: b.sender.Request(other).Message().Body}
	noJSON := inbox.Record{Scope: "default", ID: "sha256-form", Line: "event/sha256-form", Type: "pushed", Body: []byte("a=\x00\xff")}
	record(t, open, inbox.Record{
		Scope: "default", ID: large.ID, Line: "object/thing/large", Type: large.Type, Version: 1, Body: b.sender.Request(large).Message().Body,
	}, early, kept, noJSON)
	behind := []string{}
	for _, object := range []string{"large", "early", "other"} {
		ev := receivertest.NewEvent("thing", object, 2)
		require.Equal(t, 200, b.post(ev).Status)
		behind = append(behind, ev.ID)
	}
	b.run(func() bool { return b.ends.all() == 4+3 })
	require.ElementsMatch(t, behind, b.effects(t))
	require.Zero(t, b.status().Events)
	for id, reason := range map[string]string{
		large.ID: "MaxBodyBytes", early.ID: "missing: type, object, version", kept.ID: "not the one by which the event was kept", noJSON.ID: "UTF-8",
	} {
		require.Contains(t, b.letter(id).Reason, reason)
	}
	letter := b.letter(large.ID)
	require.Equal(t, dedup.Object{Type: "thing", ID: "large"}, letter.Object)
	require.Equal(t, noJSON.Body, b.letter(noJSON.ID).Body)
}

func record[Tx any](t *testing.T, b base[Tx], records ...inbox.Record) {
	t.Helper()
	require.NoError(t, b.inTx(t.Context(), func(tx Tx) error {
		for _, r := range records {
			if _, err := b.store.RecordTx(t.Context(), tx, r); err != nil {
				return err
			}
		}
		return nil
	}))
}

// An error of a sender's Read may pass with another version of Read. So the event is tried
// as often as others, and then becomes a dead letter, too.
func TestReadThatPanicsIsGivenUp(t *testing.T) {
	for most, said := range map[int]string{1: "1 attempt", 3: "3 attempts"} {
		open := onSQLite(t)
		b := newBedUnder(t, open, receiver.Config{Envelope: &receiver.Envelope{Read: func(*receiver.Event) error { panic("no") }}}, nil, inbox.Config{MaxAttempts: most})
		record(t, open, inbox.Record{Scope: "default", ID: "evt_1", Line: "event/evt_1", Type: "pushed", Body: []byte(`{}`)})
		b.run(func() bool { return b.ends.of(receiver.DeadLettered) == 1 })
		require.Equal(t, "given up after "+said+": receiver: panic: Envelope.Read: panic with a string", b.letter("evt_1").Reason)
		require.Equal(t, "pushed", b.letter("evt_1").Type)
		require.Zero(t, b.status().Events)
	}
}

// moody is a schedule that panics after the first attempt.
type moody struct{ backoff.Schedule }

func (m moody) Delay(attempt int) time.Duration {
	if attempt == 1 {
		panic("no")
	}
	return m.Schedule.Delay(attempt)
}

// A panic in the application's own Schedule would end the process, and then each other one
// that takes the event over.
func TestScheduleThatPanics(t *testing.T) {
	t.Parallel()
	open := onSQLite(t)
	var log bytes.Buffer
	policy := at1ms
	policy.Schedule = moody{policy.Schedule}
	var failed atomic.Int64
	b := newBed(t, open, func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if failed.Add(1) <= 2 {
			return errors.New("not now")
		}
		return open.effect(ctx, tx, ev)
	}, inbox.Config{Policy: policy, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ev := receivertest.NewEvent("thing", "a", 1)
	require.Equal(t, 200, b.post(ev).Status)
	b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
	require.Equal(t, []string{ev.ID}, b.effects(t))
	require.Contains(t, log.String(), "the Policy's Schedule panicked")
}

// shaky is a store that panics as it claims first, and as it puts the first event back.
type shaky[Tx any] struct {
	inbox.Store[Tx]
	claimed, putBack *atomic.Bool
}

func (s shaky[Tx]) ClaimTx(ctx context.Context, tx Tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
	if !s.claimed.Swap(true) {
		panic("no")
	}
	return s.Store.ClaimTx(ctx, tx, scope, limit, lease)
}

func (s shaky[Tx]) RetryTx(ctx context.Context, tx Tx, c inbox.Claim, after time.Duration, reason string) error {
	if !s.putBack.Swap(true) {
		panic("no")
	}
	return s.Store.RetryTx(ctx, tx, c, after, reason)
}

// A panic in the application's own InTx, or in a store, is a failure that is tried again, as it
// is in a receiver.
func TestTransactionThatPanics(t *testing.T) {
	t.Parallel()
	open := onSQLite(t)
	store := shaky[*sql.Tx]{open.store, new(atomic.Bool), new(atomic.Bool)}
	open.store = store
	var failed atomic.Bool
	b := newBed(t, open, func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if !failed.Swap(true) {
			return errors.New("not now")
		}
		return open.effect(ctx, tx, ev)
	}, inbox.Config{Timeout: time.Second, Lease: time.Second + time.Millisecond})
	ev := receivertest.NewEvent("thing", "a", 1)
	require.Equal(t, 200, b.post(ev).Status)
	b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
	require.Equal(t, []string{ev.ID}, b.effects(t))
	require.True(t, store.claimed.Load() && store.putBack.Load())
}

// An event for which no transaction could be begun is not at fault: it is not given up for its
// age, which may be that of an outage.
func TestNoTransactionCouldBeBegun(t *testing.T) {
	t.Parallel()
	const timeout = 100 * time.Millisecond
	open := onSQLite(t)
	begin := open.inTx
	var waited atomic.Int64
	open.inTx = func(ctx context.Context, fn func(*sql.Tx) error) error {
		if ends, _ := ctx.Deadline(); time.Until(ends) <= timeout && waited.Add(1) <= 2 { // of an attempt
			<-ctx.Done()
			return ctx.Err()
		}
		return begin(ctx, fn)
	}
	policy := at1ms
	policy.Horizon = time.Millisecond
	b := newBed(t, open, nil, inbox.Config{Policy: policy, Timeout: timeout})
	ev := receivertest.NewEvent("thing", "a", 1)
	require.Equal(t, 200, b.post(ev).Status)
	b.run(func() bool { return b.ends.all() == 1 })
	require.Equal(t, []string{ev.ID}, b.effects(t))
}

// dead is a store whose connection is dead without a word when it looks for what others leave.
type dead struct{ inbox.Store[*memory.Tx] }

func (dead) ClaimTx(context.Context, *memory.Tx, string, int, time.Duration) ([]inbox.Claim, error) {
	return nil, nil
}

func (dead) OverdueTx(ctx context.Context, _ *memory.Tx, _ string, _ time.Duration) (inbox.Overdue, error) {
	<-ctx.Done()
	return inbox.Overdue{}, ctx.Err()
}

// The look for events that nobody claims does not keep a connection for ever.
func TestLookOnADeadConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		markers := memory.New()
		open := base[*memory.Tx]{inTx: markers.InTx, dedup: markers, store: dead{}, effect: func(context.Context, *memory.Tx, receiver.Event) error { return nil }}
		var log bytes.Buffer
		b := newBed(t, open, nil, inbox.Config{Poll: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, b.in.Run(ctx))
		require.Contains(t, log.String(), "looking for events that nobody claims failed")
	})
}

// alone is a store that keeps no dead letters.
type alone[Tx any] struct{ dedup.Store[Tx] }

// If no dead letter can be kept, the event must not get lost, because it was acknowledged.
// It stays, which is reported, and everything else goes on.
func TestNeverAppliedAndNeverKept(t *testing.T) {
	open := onSQLite(t)
	open.dedup = alone[*sql.Tx]{open.dedup}
	var mu sync.Mutex
	var log bytes.Buffer
	tried, enough := 0, make(chan struct{})
	b := newBed(t, open, nil, inbox.Config{
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})),
		Hooks: inbox.Hooks{Retry: func(_ context.Context, c inbox.Claim, err error, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if c.ID != "evt_early" || !errors.Is(err, receiver.ErrNotKept) {
				t.Errorf("%s: %v", c.ID, err)
			}
			if tried++; tried == 3 {
				close(enough)
			}
		}},
	})
	record(t, open, inbox.Record{Scope: "default", ID: "evt_early", Line: "event/evt_early", Type: "thing.made", Body: []byte(`{"id":"evt_early","data":"secret"}`)})
	ev := receivertest.NewEvent("thing", "a", 1)
	b.post(ev)
	b.run(func() bool {
		select {
		case <-enough:
			return b.ends.of(receiver.Applied) == 1
		default:
			return false
		}
	})
	require.Equal(t, []string{ev.ID}, b.effects(t))
	require.Equal(t, 1, b.status().Events)
	require.Contains(t, log.String(), "event_id=evt_early")
	require.Contains(t, log.String(), "missing: type, object, version")
	require.NotContains(t, log.String(), "secret")
}
