package inbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/receivertest"
)

func TestInbox(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { promises(t, onSQLite) })
	t.Run("pgx", func(t *testing.T) { promises(t, onPgx) })
	t.Run("postgres by database/sql", func(t *testing.T) { promises(t, onPostgresSQL) })
}

// promises tests the promises that hold on every store.
func promises[Tx any](t *testing.T, open func(testing.TB) base[Tx]) {
	t.Parallel()
	t.Run("acknowledged first, applied afterwards", func(t *testing.T) { recordsThenApplies(t, open(t)) })
	t.Run("an empty body", func(t *testing.T) { emptyBody(t, open(t)) })
	t.Run("duplicates in any order have one effect", func(t *testing.T) { oneEffect(t, open(t)) })
	t.Run("facts in any order have one effect each", func(t *testing.T) { oneEffectOfFacts(t, open(t)) })
	t.Run("lower versions first", func(t *testing.T) { keepsOrder(t, open(t)) })
	t.Run("without order nothing is held up", func(t *testing.T) { poisonAlone(t, open(t)) })
	t.Run("with order the object is held up", func(t *testing.T) { poisonInOrder(t, open(t)) })
	t.Run("a lease that has ended", func(t *testing.T) { leaseEnds(t, open(t)) })
	t.Run("a transaction that its function ends", func(t *testing.T) { endsItself(t, open(t)) })
	t.Run("permanent errors", func(t *testing.T) { permanent(t, open(t)) })
	t.Run("events that can never be applied", func(t *testing.T) { neverApplied(t, open(t)) })
	t.Run("the inboxes of two senders", func(t *testing.T) { twoSenders(t, open(t)) })
	t.Run("a clock that was ahead", func(t *testing.T) { clockWasAhead(t, open(t)) })
	t.Run("events that nobody claims", func(t *testing.T) { nobodyClaims(t, open(t)) })
}

func recordsThenApplies[Tx any](t *testing.T, open base[Tx]) {
	b := newBed(t, open, nil, inbox.Config{})
	ev := receivertest.NewEvent("thing", "a", 1)
	a := b.post(ev)
	require.Equal(t, 200, a.Status)
	require.Equal(t, receiver.Recorded, a.Result)
	require.Equal(t, receiver.Duplicate, b.post(ev).Result)
	require.Equal(t, 401, b.sender.Request(ev).WrongSecret().Serve(b.handler).Status)
	require.Empty(t, b.effects(t), "nothing is applied before Run")
	s := b.status()
	require.Equal(t, 1, s.Events)
	require.Zero(t, s.Failing)
	require.WithinDuration(t, time.Now(), s.Oldest, time.Hour)
	b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
	require.Equal(t, []string{ev.ID}, b.effects(t))
	require.Equal(t, inbox.Status{}, b.status(), "it has left")

	require.Equal(t, receiver.Recorded, b.post(ev).Result, "the inbox has forgotten it, the marker has not")
	other := receivertest.NewEvent("thing", "b", 1)
	b.post(other)
	b.run(func() bool { return b.ends.of(receiver.Applied) == 2 && b.status().Events == 0 })
	require.Equal(t, []string{ev.ID, other.ID}, b.effects(t))
	require.Empty(t, column(t, b.db, "SELECT line FROM surehook_inbox_lines"))
}

// Run refuses tables that are not migrated, for nothing else would say it. If they go away
// later, it waits for them.
func TestRunNeedsTables(t *testing.T) {
	open, failed := onSQLite(t), make(written, 1)
	b := newBed(t, open, nil, inbox.Config{Logger: slog.New(slog.NewTextHandler(failed, nil))})
	rename := func(from, to string) {
		_, err := open.db.Exec("ALTER TABLE " + from + " RENAME TO " + to)
		require.NoError(t, err)
	}
	rename("surehook_inbox_lines", "away")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.ErrorContains(t, b.in.Run(ctx), "call Migrate before")
	rename("away", "surehook_inbox_lines")
	rename("surehook_inbox_events", "away")
	_, err := b.in.Status(ctx)
	require.Error(t, err, "that is not an empty inbox")
	rename("away", "surehook_inbox_events")

	b.post(receivertest.NewEvent("thing", "a", 1))
	gone := false
	b.run(func() bool {
		if !gone && b.ends.of(receiver.Applied) == 1 {
			gone = true
			rename("surehook_inbox_lines", "away")
			<-failed
			rename("away", "surehook_inbox_lines")
			b.post(receivertest.NewEvent("thing", "b", 1))
		}
		return b.ends.of(receiver.Applied) == 2
	})
}

// written is a log that says when something was written to it.
type written chan struct{}

func (w written) Write(p []byte) (int, error) {
	select {
	case w <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Two processes share the inbox while copies arrive in disorder.
func oneEffect[Tx any](t *testing.T, open base[Tx]) {
	hasOneEffect(t, open, receiver.State(open.effect), false)
}

// No fact is skipped, whatever its version.
func oneEffectOfFacts[Tx any](t *testing.T, open base[Tx]) {
	hasOneEffect(t, open, receiver.Fact(open.effect), true)
}

func hasOneEffect[Tx any](t *testing.T, open base[Tx], work receiver.Work[Tx], facts bool) {
	const objects, versions = 8, 6
	one := newBedOf(t, open, receiver.Config{}, work, inbox.Config{})
	two := newBedOf(t, open, receiver.Config{}, work, inbox.Config{Workers: 3})
	var events []receivertest.Event
	for o := range objects {
		for v := range versions {
			events = append(events, receivertest.NewEvent("thing", fmt.Sprint(o), int64(v+1)))
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	var running sync.WaitGroup
	for _, b := range []*bed[Tx]{one, two} {
		running.Go(func() { _ = b.in.Run(ctx) })
	}
	for _, ev := range receivertest.Shuffled(1, 3, events...) {
		require.Equal(t, 200, one.post(ev).Status)
	}
	for one.status().Events > 0 {
		select {
		case <-one.ends.change:
		case <-two.ends.change:
		case <-time.After(10 * time.Millisecond): // a duplicate is no change
		}
		require.NoError(t, ctx.Err())
	}
	stop()
	running.Wait()
	effects := one.effects(t)
	slices.Sort(effects)
	require.Equal(t, slices.Compact(slices.Clone(effects)), effects, "an event had two effects")
	require.Equal(t, objects*versions, one.ends.all()+two.ends.all(), "each event ends once, all others are duplicates")
	require.Equal(t, len(effects), one.ends.of(receiver.Applied)+two.ends.of(receiver.Applied))
	for i, ev := range events {
		if facts || i%versions == versions-1 {
			require.Contains(t, effects, ev.ID, "a fact or the newest version was not applied")
		}
	}
}

// counting is a store that counts claims.
type counting[Tx any] struct {
	inbox.Store[Tx]
	claims *atomic.Int64
}

func (c counting[Tx]) ClaimTx(ctx context.Context, tx Tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
	defer c.claims.Add(1)
	return c.Store.ClaimTx(ctx, tx, scope, limit, lease)
}

// An event wakes the workers after its commit, although another one was recorded later and
// committed earlier.
func TestEachEventWakes(t *testing.T) {
	t.Parallel()
	open := onPgx(t) // SQLite has one writer
	claims := new(atomic.Int64)
	open.store = counting[pgx.Tx]{open.store, claims}
	recorded, held := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	inTx := open.inTx
	open.inTx = func(ctx context.Context, fn func(pgx.Tx) error) error {
		return inTx(ctx, func(tx pgx.Tx) error {
			err := fn(tx)
			if !first.Swap(true) {
				close(recorded)
				<-held
			}
			return err
		})
	}
	b := newBed(t, open, nil, inbox.Config{Poll: time.Hour})
	slow, quick := receivertest.NewEvent("thing", "a", 1), receivertest.NewEvent("thing", "b", 1)
	posted := make(chan int, 1)
	go func() { posted <- b.post(slow).Status }()
	<-recorded
	require.Equal(t, 200, b.post(quick).Status)
	committed := false
	b.run(func() bool {
		// The first claim finds the quick one, and the second one is due to its signal.
		if !committed && claims.Load() >= 2 && b.ends.of(receiver.Applied) == 1 {
			committed = true
			close(held)
			require.Equal(t, 200, <-posted)
		}
		return b.ends.of(receiver.Applied) == 2
	})
	require.Equal(t, []string{quick.ID, slow.ID}, b.effects(t))
}

func keepsOrder[Tx any](t *testing.T, open base[Tx]) {
	const objects, versions = 5, 12
	b := newBed(t, open, nil, inbox.Config{Ordered: true})
	want := map[string][]string{}
	var events []receivertest.Event
	of := map[string]string{}
	for o := range objects {
		for v := range versions {
			ev := receivertest.NewEvent("thing", fmt.Sprint(o), int64(v+1))
			events = append(events, ev)
			want[ev.Object.ID] = append(want[ev.Object.ID], ev.ID)
			of[ev.ID] = ev.Object.ID
		}
	}
	for _, ev := range receivertest.Shuffled(2, 2, events...) {
		require.Equal(t, 200, b.post(ev).Status)
	}
	b.run(func() bool { return b.ends.all() == len(events) })
	got := map[string][]string{}
	for _, id := range b.effects(t) {
		got[of[id]] = append(got[of[id]], id)
	}
	require.Equal(t, want, got, "none is stale, and each object's are in the order of their versions")
}

var errPoison = errors.New("it cannot be applied")

// poison fails for the events of an object that are in it.
type poison struct {
	mu     sync.Mutex
	events map[string]bool
	tries  map[string]int
}

func poisoned[Tx any](p *poison, h receiver.HandlerFunc[Tx]) receiver.HandlerFunc[Tx] {
	return func(ctx context.Context, tx Tx, ev receiver.Event) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tries[ev.ID]++
		if err := h(ctx, tx, ev); err != nil {
			return err
		}
		if p.events[ev.ID] {
			return errPoison
		}
		return nil
	}
}

func poisonAlone[Tx any](t *testing.T, open base[Tx]) {
	p := &poison{events: map[string]bool{}, tries: map[string]int{}}
	retried := 0
	var mu sync.Mutex
	b := newBed(t, open, poisoned(p, open.effect), inbox.Config{Workers: 1, Hooks: inbox.Hooks{
		Retry: func(_ context.Context, c inbox.Claim, err error, after time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			retried++
			if c.Attempt != retried || !errors.Is(err, errPoison) || after != time.Millisecond {
				t.Errorf("attempt %d after %d: %v, %v", c.Attempt, retried, err, after)
			}
			panic("a hook that panics changes nothing")
		},
	}})
	bad := receivertest.NewEvent("thing", "a", 1)
	p.events[bad.ID] = true
	b.post(bad)
	var good []string
	for v := range 5 {
		ev := receivertest.NewEvent("thing", string(rune('b'+v)), 1)
		b.post(ev)
		good = append(good, ev.ID)
	}
	b.run(func() bool { return b.ends.of(receiver.Applied) == len(good) })
	require.ElementsMatch(t, good, b.effects(t))
	s := b.status()
	require.Equal(t, 1, s.Events)
	require.Equal(t, 1, s.Failing)
	require.Positive(t, p.tries[bad.ID])
	newer := receivertest.NewEvent("thing", "a", 2)
	b.post(newer)
	good = append(good, newer.ID)
	b.run(func() bool { return b.ends.of(receiver.Stale) == 1 })
	require.ElementsMatch(t, good, b.effects(t), "it has become stale meanwhile")
	require.Zero(t, b.status().Events)
}

func poisonInOrder[Tx any](t *testing.T, open base[Tx]) {
	p := &poison{events: map[string]bool{}, tries: map[string]int{}}
	b := newBed(t, open, poisoned(p, open.effect), inbox.Config{Ordered: true, MaxAttempts: 7})
	bad, behind := receivertest.NewEvent("thing", "a", 1), receivertest.NewEvent("thing", "a", 2)
	other := receivertest.NewEvent("thing", "b", 1)
	p.events[bad.ID] = true
	for _, ev := range []receivertest.Event{behind, bad, other} {
		require.Equal(t, 200, b.post(ev).Status)
	}
	b.run(func() bool { return b.ends.all() == 3 })
	require.Equal(t, 7, p.tries[bad.ID])
	require.ElementsMatch(t, []string{other.ID, behind.ID}, b.effects(t), "the one behind it waits for its end, the other object does not")
	require.Equal(t, 1, b.ends.of(receiver.DeadLettered))
	letter := b.letter(bad.ID)
	require.Equal(t, "given up after 7 attempts: receiver: apply: it cannot be applied", letter.Reason)
	require.Equal(t, int64(1), letter.Version)
	require.Zero(t, b.status().Events)

	b.post(bad)
	last := receivertest.NewEvent("thing", "c", 1)
	b.post(last)
	b.run(func() bool { return b.ends.of(receiver.Applied) == 3 && b.status().Events == 0 })
	require.Equal(t, 7, p.tries[bad.ID], "a dead letter's duplicate is one")
}

func (b *bed[Tx]) letter(id string) (l dedup.DeadLetter) {
	b.t.Helper()
	require.NoError(b.t, b.inTx(b.t.Context(), func(tx Tx) (err error) {
		l, err = b.dedup.(dedup.DeadLetters[Tx]).DeadLetter(b.t.Context(), tx, "default", id)
		return err
	}))
	return l
}

// The event is claimed once more while it is being applied. The first attempt must have no
// effect, and the other one counts.
func leaseEnds[Tx any](t *testing.T, open base[Tx]) {
	ev := receivertest.NewEvent("thing", "a", 1)
	var b *bed[Tx]
	calls, lost := 0, 0
	var mu sync.Mutex
	stolen := make(chan struct{}, 8)
	open.store = hastyOnce[Tx]{Store: open.store, claimed: new(atomic.Bool)}
	b = newBed(t, open, func(ctx context.Context, tx Tx, ev receiver.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls == 1 {
			// This acts like the claim of another process, but within the transaction,
			// because SQLite has one writer.
			if err := stealLine(ctx, tx, b.store); err != nil {
				return err
			}
		}
		return b.effect(ctx, tx, ev)
	}, inbox.Config{Workers: 1, Hooks: inbox.Hooks{LeaseLost: func(context.Context, inbox.Claim) { // no other worker of ours claims it meanwhile
		mu.Lock()
		lost++
		mu.Unlock()
		stolen <- struct{}{}
		panic("a hook that panics changes nothing")
	}}})
	b.post(ev)
	b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
	<-stolen
	require.Equal(t, 1, lost)
	require.Equal(t, []string{ev.ID}, b.effects(t))
	require.Zero(t, b.status().Events)
}

// Nothing is wrong with an event that this process is applying already: it is looked at
// again, and no warning is logged.
func TestEventInWork(t *testing.T) {
	open := onSQLite(t)
	begun, refused := make(chan struct{}), make(chan struct{})
	open.store = hastyOnce[*sql.Tx]{open.store, new(atomic.Bool), begun}
	ev := receivertest.NewEvent("thing", "a", 1)
	var log bytes.Buffer
	var first, once sync.Once
	b := newBedOf(t, open, receiver.Config{}, receiver.Thin(
		func(ctx context.Context, ev receiver.Event) (receiver.Snapshot[string], error) { // outside of transactions: SQLite has one writer
			first.Do(func() { close(begun) })
			select {
			case <-refused:
			case <-ctx.Done():
			}
			return receiver.Snapshot[string]{Version: ev.Version}, ctx.Err()
		},
		func(ctx context.Context, tx *sql.Tx, ev receiver.Event, _ receiver.Snapshot[string]) error {
			return open.effect(ctx, tx, ev)
		},
	), inbox.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Hooks: inbox.Hooks{Retry: func(context.Context, inbox.Claim, error, time.Duration) {
			once.Do(func() { close(refused) })
		}},
	})
	b.post(ev)
	b.run(func() bool { return b.ends.of(receiver.Applied) == 1 })
	require.Equal(t, []string{ev.ID}, b.effects(t))
	require.Contains(t, log.String(), `level=INFO msg="inbox: an event is being applied already`)
	require.NotContains(t, log.String(), "could not be applied")
}

// stealLine claims a line as soon as its lease has ended.
func stealLine[Tx any](ctx context.Context, tx Tx, store inbox.Store[Tx]) error {
	for ctx.Err() == nil {
		claims, err := store.ClaimTx(ctx, tx, "default", 1, time.Millisecond)
		if err != nil || len(claims) == 1 {
			return err
		}
	}
	return ctx.Err()
}

// A statement ends the transaction under the function, which does not say so. SQLite ends
// it by itself, too, for instance if a statement is interrupted while it writes. The marker
// and the effect are rolled back, and what the store does after that is committed at once:
// the event must still be in the inbox.
func endsItself[Tx any](t *testing.T, open base[Tx]) {
	ev, behind := receivertest.NewEvent("thing", "a", 1), receivertest.NewEvent("thing", "a", 2)
	calls := map[string]int{}
	b := newBed(t, open, func(ctx context.Context, tx Tx, ev receiver.Event) error {
		if calls[ev.ID]++; calls[ev.ID] > 1 {
			return open.effect(ctx, tx, ev)
		}
		return errors.Join(open.effect(ctx, tx, ev), rollBack(ctx, tx))
	}, inbox.Config{Ordered: true, Workers: 1})
	b.post(ev)
	b.post(behind)
	b.run(func() bool { return b.status().Events == 0 })
	require.Equal(t, []string{ev.ID, behind.ID}, b.effects(t))
}

func rollBack(ctx context.Context, tx any) (err error) {
	switch tx := tx.(type) {
	case *sql.Tx:
		_, err = tx.ExecContext(ctx, "ROLLBACK")
	case pgx.Tx:
		_, err = tx.Exec(ctx, "ROLLBACK")
	}
	return err
}

func permanent[Tx any](t *testing.T, open base[Tx]) {
	reasons := []error{errPoison, io.ErrUnexpectedEOF, &net.DNSError{Err: "no such host"}, errors.New("their database is locked")}
	runs := map[string]int{}
	var mu sync.Mutex
	b := newBed(t, open, func(_ context.Context, _ Tx, ev receiver.Event) error {
		mu.Lock()
		defer mu.Unlock()
		runs[ev.ID]++
		return receiver.Permanent(reasons[ev.Version-1])
	}, inbox.Config{})
	want := map[string]int{}
	var events []receivertest.Event
	for i := range reasons {
		ev := receivertest.NewEvent("thing", fmt.Sprint(i), int64(i+1))
		b.post(ev)
		events, want[ev.ID] = append(events, ev), 1
	}
	b.run(func() bool { return b.ends.of(receiver.DeadLettered) == len(events) })
	require.Equal(t, want, runs, "each was tried once")
	for i, ev := range events {
		require.Equal(t, reasons[i].Error(), b.letter(ev.ID).Reason)
	}
	require.Zero(t, b.status().Events)
}
