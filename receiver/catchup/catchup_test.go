package catchup_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursors "github.com/surehook/surehook/receiver/catchup/sqlite"
	"github.com/surehook/surehook/sender/feed"
	"github.com/surehook/surehook/signing"
)

var errBroken = errors.New("broken")

func TestRunFollows(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(7)
	c := b.catchup(effect, catchup.Config{Limit: 3})
	b.run(c, func() bool { return len(b.feed.asks) == 3 })
	require.Equal(t, ids, b.effects(), "in the feed's order")
	require.Equal(t, "at 7", b.cursor())
	require.Equal(t, []ask{{"", 3, 30 * time.Second}, {"at 3", 3, 30 * time.Second}, {"at 6", 3, 30 * time.Second}, {"at 7", 3, 30 * time.Second}}, b.feed.asks)

	// Another process goes on where the first process was.
	more := b.feed.add(1)
	b.feed.asks = nil
	b.run(b.catchup(effect, catchup.Config{}), func() bool { return len(b.feed.asks) == 1 })
	require.Equal(t, "at 7", b.feed.asks[0].after)
	require.Equal(t, slices.Concat(ids, more), b.effects())
}

// A failure stops everything behind it, is tried again, and leaves the cursor before
// it.
func TestFailureIsNotPassedOver(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(4)
	var tries atomic.Int64
	var told []string
	var at []string
	h := func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if ev.ID == ids[3] && tries.Add(1) < 4 {
			return errBroken
		}
		return effect(ctx, tx, ev)
	}
	b.feed.fail = []error{errBroken, &catchup.StatusError{Status: 503}}
	c := b.catchup(h, catchup.Config{Limit: 2, Hooks: catchup.Hooks{Retry: func(_ context.Context, event string, err error, pause time.Duration) {
		told = append(told, event)
		at = append(at, b.cursor())
		require.Positive(t, pause)
		if event != "" {
			require.ErrorIs(t, err, errBroken)
		}
	}}})
	b.run(c, func() bool { return b.cursor() == "at 4" })
	require.Equal(t, []string{"", "", ids[3], ids[3], ids[3]}, told)
	require.Equal(t, []string{"", "", "at 2", "at 2", "at 2"}, at)
	require.Equal(t, ids, b.effects())
}

// told is a log that calls a function with the level of each record.
type told func(level slog.Level, text string)

func (told) Enabled(context.Context, slog.Level) bool { return true }
func (f told) Handle(_ context.Context, r slog.Record) error {
	f(r.Level, r.Message)
	return nil
}
func (f told) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f told) WithGroup(string) slog.Handler      { return f }

// An event that a post is applying just then is waited for, and is no failure.
func TestInWorkIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(1)
	entered, leave := make(chan struct{}), make(chan struct{})
	posted := make(chan error, 1)
	go func() {
		_, err := b.rcv.Apply(t.Context(), receiver.Trusted[*sql.Tx]{Body: b.feed.events[0]}, receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
			close(entered)
			<-leave
			return effect(ctx, tx, ev)
		}))
		posted <- err
	}()
	<-entered
	free := sync.OnceFunc(func() { close(leave) })
	defer free()
	log := slog.New(told(func(level slog.Level, text string) {
		free() // it has met the event in work
		if level != slog.LevelDebug {
			t.Error(level, text)
		}
	}))
	report, err := b.catchup(effect, catchup.Config{Logger: log, Hooks: catchup.Hooks{Retry: func(_ context.Context, _ string, err error, _ time.Duration) {
		t.Error("no failure:", err)
	}}}).Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, <-posted)
	require.Equal(t, catchup.Report{Seen: 1, Duplicates: 1, Next: "at 1"}, report)
	require.Equal(t, ids, b.effects())
}

// An event with an error that is called permanent stops nothing, whatever the error looks
// like.
func TestPermanentIsPassed(t *testing.T) {
	t.Parallel()
	for _, poison := range []error{errBroken, io.ErrUnexpectedEOF, &net.DNSError{Err: "no such host"}, errors.New("their database is locked")} {
		b := newBed(t)
		ids := b.feed.add(3)
		h := func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
			if ev.ID == ids[1] {
				return receiver.Permanent(poison)
			}
			return effect(ctx, tx, ev)
		}
		b.run(b.catchup(h, catchup.Config{}), func() bool { return b.cursor() == "at 3" })
		require.Equal(t, []string{ids[0], ids[2]}, b.effects(), poison)
		require.Equal(t, ids[1:2], column(t, b.db, "SELECT id FROM surehook_dedup_dead_letters"))
	}
}

// The cursor is committed with the last effect, or neither is committed.
func TestCursorIsInTheTransaction(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.feed.add(2)
	_, err := b.db.Exec("CREATE TRIGGER refuse BEFORE INSERT ON surehook_catchup_cursors BEGIN SELECT RAISE(ABORT, 'no cursor'); END")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := b.catchup(effect, catchup.Config{Hooks: catchup.Hooks{Retry: func(_ context.Context, event string, _ error, _ time.Duration) {
		if event == "evt_002" {
			cancel()
		}
	}}})
	require.NoError(t, c.Run(ctx))
	require.Equal(t, []string{"evt_001"}, b.effects(), "the last effect waits for its cursor")
	require.Empty(t, b.cursor())
}

func TestWhatBecomesOfEvents(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	put := func(id string, version int, more string) {
		kind, _, _ := strings.Cut(id[len("evt_"):], "_")
		b.feed.put(fmt.Sprintf(`{"id":"%s","type":"thing.%s","object":{"type":"thing","id":"1"},"version":%d%s}`, id, kind, version, more))
	}
	put("evt_new", 5, "")
	put("evt_new", 5, "")
	put("evt_new_late", 4, "")
	put("evt_bad", 6, "")
	put("evt_unknown", 7, "")
	put("evt_gone", 8, `,"redacted":true`)
	routes, err := receiver.Router(
		receiver.OnState("thing.new", func(ctx context.Context, tx *sql.Tx, ev receiver.Typed[any]) error { return effect(ctx, tx, ev.Event) }),
		receiver.OnState("thing.bad", func(context.Context, *sql.Tx, receiver.Typed[any]) error { return receiver.Permanent(errBroken) }),
	)
	require.NoError(t, err)
	want := catchup.Report{
		Seen: 6, Applied: 1, Duplicates: 1, Stale: 1, DeadLettered: 1, Ignored: 1, Redacted: 1,
		Missed: []string{"evt_new", "evt_bad"}, Next: "at 6",
	}
	c := b.catchupBy(routes, catchup.Config{})
	got, err := c.Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Empty(t, b.cursor(), "Reconcile moves no cursor")
	require.Equal(t, []string{"evt_new"}, b.effects())
	require.Equal(t, []string{"evt_bad"}, column(t, b.db, "SELECT id FROM surehook_dedup_dead_letters"))
	require.Equal(t, []string{"evt_bad", "evt_new", "evt_new_late"}, column(t, b.db, "SELECT id FROM surehook_dedup_markers ORDER BY id"))

	again, err := c.Reconcile(t.Context(), "at 3")
	require.NoError(t, err)
	require.Equal(t, catchup.Report{Seen: 3, Duplicates: 1, Ignored: 1, Redacted: 1, Next: "at 6"}, again)
	b.run(c, func() bool { return b.cursor() == "at 6" }) // its last event is left alone
}

func TestGap(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(5)
	var gaps []catchup.Gap
	cfg := catchup.Config{Limit: 1, Hooks: catchup.Hooks{Gap: func(_ context.Context, g catchup.Gap) { gaps = append(gaps, g) }}}
	b.feed.fail = []error{nil, &catchup.ExpiredError{Next: "at 3"}, nil, nil, &catchup.ExpiredError{}}
	b.run(b.catchup(effect, cfg), func() bool { return len(gaps) == 2 && len(b.feed.asks) > 10 })
	require.Equal(t, []catchup.Gap{{"at 1", "at 3"}, {"at 5", ""}}, gaps)
	require.Equal(t, []string{ids[0], ids[3], ids[4], ids[1], ids[2]}, b.effects(), "from the beginning, once")

	b.feed.fail = []error{&catchup.ExpiredError{Next: "at 2"}}
	r, err := b.catchup(effect, catchup.Config{}).Reconcile(t.Context(), "at 1")
	require.NoError(t, err)
	require.Equal(t, []catchup.Gap{{"at 1", "at 2"}}, r.Gaps)
	require.Equal(t, 3, r.Seen)
	// A sender that sends us back to our own cursor is not asked without a pause.
	b.feed.asks, b.feed.fail = nil, slices.Repeat([]error{&catchup.ExpiredError{Next: "at 1"}}, 5)
	paused := 0
	_, err = b.catchup(effect, catchup.Config{Hooks: catchup.Hooks{Retry: func(context.Context, string, error, time.Duration) { paused++ }}}).Reconcile(t.Context(), "at 1")
	require.NoError(t, err)
	require.Equal(t, 5, paused)
	// Neither is one that sends us to and fro,
	paused, b.feed.fail = 0, nil
	for i := range 6 {
		b.feed.fail = append(b.feed.fail, &catchup.ExpiredError{Next: fmt.Sprint("at ", 2+i%2)})
	}
	r, err = b.catchup(effect, catchup.Config{Hooks: catchup.Hooks{Retry: func(context.Context, string, error, time.Duration) { paused++ }}}).Reconcile(t.Context(), "at 1")
	require.NoError(t, err)
	require.Len(t, r.Gaps, 6)
	require.Equal(t, 5, paused)
	// or does so with pages in between.
	paused, b.feed.fail = 0, []error{&catchup.ExpiredError{}, nil, &catchup.ExpiredError{}, nil, &catchup.ExpiredError{}}
	r, err = b.catchup(effect, catchup.Config{Limit: 1, Hooks: catchup.Hooks{Retry: func(context.Context, string, error, time.Duration) { paused++ }}}).Reconcile(t.Context(), "at 1")
	require.NoError(t, err)
	require.Len(t, r.Gaps, 3)
	require.Equal(t, 2, paused)
	// A cursor that no store would keep leads nowhere.
	b.feed.fail = []error{&catchup.ExpiredError{Next: strings.Repeat("x", 4097)}}
	r, err = b.catchup(effect, catchup.Config{}).Reconcile(t.Context(), "at 1")
	require.NoError(t, err)
	require.Empty(t, r.Gaps)
	require.Equal(t, 4, r.Seen)
}

func TestPageTooLarge(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(3)
	b.feed.fail = []error{catchup.ErrPageTooLarge, fmt.Errorf("it is: %w", catchup.ErrPageTooLarge)}
	_, err := b.catchup(effect, catchup.Config{Limit: 8}).Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, ids, b.effects())
	var limits []int
	for _, a := range b.feed.asks {
		limits = append(limits, a.limit)
	}
	require.Equal(t, []int{8, 4, 2, 3, 4}, limits)
}

func TestReconcileEvery(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(2)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var reports []catchup.Report
	c := b.catchup(effect, catchup.Config{Every: time.Millisecond, Hooks: catchup.Hooks{Reconciled: func(_ context.Context, r catchup.Report) {
		reports = append(reports, r)
		switch len(reports) {
		case 1:
			require.Equal(t, "at 2", b.cursor())
			ids = append(ids, b.feed.add(1)...)
		case 2:
			cancel()
		}
	}}})
	require.NoError(t, c.Run(ctx))
	require.Equal(t, []catchup.Report{{Seen: 2, Applied: 2, Missed: ids[:2], Next: "at 2"}, {Seen: 1, Applied: 1, Missed: ids[2:], Next: "at 3"}}, reports)
	require.Equal(t, "at 3", b.cursor())
	for _, a := range b.feed.asks {
		require.Zero(t, a.wait)
	}
}

// Events that come faster than they are read do not keep a reconciliation from ending, and
// an event with an odd time does not end it.
func TestReconcileOfABusyFeedEnds(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	occurred := time.Now().Add(-time.Hour)
	publish := func(at time.Time) {
		n := len(b.feed.events) + 1
		b.feed.events = append(b.feed.events, fmt.Appendf(nil, `{"id":"evt_%d","type":"thing.made","occurred_at":%q,"object":{"type":"thing","id":"%d"},"version":1}`,
			n, at.Format(time.RFC3339Nano), n))
	}
	publish(occurred)
	publish(time.Now().AddDate(1, 0, 0))
	b.feed.onAsked(func(string) { // each page takes a minute
		occurred = occurred.Add(time.Minute)
		publish(occurred)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	report, err := b.catchup(effect, catchup.Config{}).Reconcile(ctx, "")
	require.NoError(t, err)
	require.InDelta(t, 60+2, report.Seen, 3)
	require.Equal(t, report.Seen, report.Applied)
	require.Equal(t, fmt.Sprint("at ", report.Seen), report.Next)
}

func TestReconcileEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(2)
	ctx, cancel := context.WithCancel(t.Context())
	h := func(hctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if ev.ID == ids[1] {
			cancel()
			return errBroken
		}
		return effect(hctx, tx, ev)
	}
	r, err := b.catchup(h, catchup.Config{}).Reconcile(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, ids[:1], r.Missed)
	require.Empty(t, r.Next, "the page is not done")
}

func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.feed.add(catchup.MaxMissed + 3)
	r, err := b.catchup(func(context.Context, *sql.Tx, receiver.Event) error { return nil }, catchup.Config{Limit: 200}).Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, r.Missed, catchup.MaxMissed)
	require.Equal(t, catchup.MaxMissed+3, r.Applied)
}

func TestRunTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := b.catchup(effect, catchup.Config{})
	b.run(c, func() bool {
		require.ErrorIs(t, c.Run(t.Context()), catchup.ErrRunning)
		return true
	})
}

// An older fact behind a newer one is applied, once, and one that is older than markers are
// kept is set aside.
func TestFacts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for i, id := range []string{"evt_2", "evt_1", "evt_2"} {
		b.feed.put(fmt.Sprintf(`{"id":%q,"type":"a.b","object":{"type":"thing","id":"1"},"version":%d}`, id, 3-i))
	}
	b.feed.put(`{"id":"evt_0","type":"a.b","object":{"type":"thing","id":"1"},"version":9,"occurred_at":"2001-02-03T04:05:06Z"}`)
	report, err := b.catchupBy(receiver.Fact(effect), catchup.Config{}).Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, catchup.Report{Seen: 4, Applied: 2, Duplicates: 1, DeadLettered: 1, Missed: []string{"evt_2", "evt_1", "evt_0"}, Next: "at 4"}, report)
	require.Equal(t, []string{"evt_2", "evt_1"}, b.effects())
}

// A hook that panics changes nothing.
func TestHooksThatPanic(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.feed.put(`{"type":"no.id"}`)
	ids := b.feed.add(1)
	b.feed.fail = []error{errBroken, &catchup.ExpiredError{Next: "at 0"}}
	var called []string
	panics := func(name string) {
		called = append(called, name)
		panic(name)
	}
	c := b.catchup(effect, catchup.Config{Every: time.Millisecond, Hooks: catchup.Hooks{
		Retry:      func(context.Context, string, error, time.Duration) { panics("Retry") },
		Gap:        func(context.Context, catchup.Gap) { panics("Gap") },
		Refused:    func(context.Context, catchup.Refusal) { panics("Refused") },
		Reconciled: func(context.Context, catchup.Report) { panics("Reconciled") },
	}})
	b.run(c, func() bool { return slices.Contains(called, "Reconciled") })
	require.Equal(t, []string{"Retry", "Gap", "Refused", "Reconciled"}, called[:4])
	require.Equal(t, ids, b.effects())
}

// A panic in a Source of the application's own, or in a Token or a Transport of a Client, would
// end the process.
func TestSourceThatPanics(t *testing.T) {
	b := newBed(t)
	ids := b.feed.add(2)
	asked := 0
	b.feed.onAsked(func(string) {
		if asked++; asked == 1 {
			panic("no")
		}
	})
	var failures []error
	c := b.catchup(effect, catchup.Config{Hooks: catchup.Hooks{Retry: func(_ context.Context, _ string, err error, _ time.Duration) { failures = append(failures, err) }}})
	report, err := c.Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, 2, report.Applied)
	require.Equal(t, ids, b.effects())
	require.Len(t, failures, 1)
	require.ErrorContains(t, failures[0], "panicked with a string")
}

// The feeds of two senders have a cursor each, without a name being given.
func TestFeedsOfTwoSenders(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, scope := range []string{"billing", "shipping"} {
		b.rcv, b.feed = newReceiverOf(t, b.db, dedup.New(), scope, receiver.Config{}), &fakeFeed{}
		b.feed.add(3)
		b.run(b.catchup(effect, catchup.Config{}), func() bool { return len(b.feed.asks) == 1 })
		require.Empty(t, b.feed.asks[0].after, scope)
	}
	require.Len(t, b.effects(), 6)
	require.Equal(t, []string{"billing", "shipping"}, column(t, b.db, "SELECT name FROM surehook_catchup_cursors ORDER BY name"))
}

// Run refuses a table that is not migrated, for nothing else would say it.
func TestRunNeedsTheTable(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, err := b.db.Exec("DROP TABLE surehook_catchup_cursors")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err = b.catchup(effect, catchup.Config{Hooks: catchup.Hooks{Retry: func(context.Context, string, error, time.Duration) { cancel() }}}).Run(ctx)
	require.ErrorContains(t, err, "call Migrate before")
	require.NoError(t, ctx.Err(), "it was tried again")
}

// A cursor of the name that every feed had before is neither passed over nor taken for
// whatever feed comes first.
func TestFormerName(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.feed.add(3)
	b.run(b.catchup(effect, catchup.Config{}), func() bool { return b.cursor() == "at 3" })
	b.rcv = newReceiverOf(t, b.db, dedup.New(), "billing", receiver.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.feed.onAsked(func(string) { cancel() })
	err := b.catchup(effect, catchup.Config{}).Run(ctx)
	require.ErrorIs(t, err, catchup.ErrFormerName)
	require.ErrorContains(t, err, `set Config.Name to "default" if it is this feed's, or to "billing"`)
	for _, c := range []struct{ name, after string }{{"default", "at 3"}, {"billing", ""}, {"", "at 3"}} {
		b.feed.asks = nil
		b.run(b.catchup(effect, catchup.Config{Name: c.name}), func() bool { return len(b.feed.asks) == 1 })
		require.Equal(t, c.after, b.feed.asks[0].after, "Name %q", c.name)
	}
}

// A scope under which the receiver takes nothing is refused at the start: each event would
// be tried again for ever.
func TestScope(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	shared := newReceiverOf(t, b.db, dedup.New(), "", receiver.Config{ScopeOf: func(v signing.Verified) string { return v.KeyID }})
	for _, c := range []struct {
		rcv           *receiver.Receiver[*sql.Tx]
		scope, refuse string
	}{
		{shared, "", "Config.Scope is empty"},
		{shared, "\x00", "Config.Scope: "},
		{shared, "billing", ""},
		{b.rcv, "billing", `Config.Scope is "billing", and the receiver's is "default"`},
		{b.rcv, "default", ""},
	} {
		_, err := catchup.New(b.feed, c.rcv, receiver.SQL(b.db, nil), cursors.New(), receiver.State(effect), &catchup.Config{Scope: c.scope})
		if c.refuse == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.refuse)
		require.NotContains(t, err.Error(), "invalid name", "one problem is one error")
	}
}

func TestNew(t *testing.T) {
	_, err := catchup.New(nil, nil, nil, nil, receiver.Work[*sql.Tx]{}, &catchup.Config{Name: "\x00", Limit: 201, Wait: -1, RetryMin: 2, RetryMax: 1})
	for _, part := range []string{"source", "receiver", "InTx", "cursor store", "function", "name", "Limit", "Wait", "RetryMin"} {
		require.ErrorContains(t, err, part)
	}
	for wait, taken := range map[time.Duration]bool{time.Second: true, feed.MaxWait: true, time.Second - 1: false, feed.MaxWait + 1: false} {
		_, err := catchup.New(nil, nil, nil, nil, receiver.Work[*sql.Tx]{}, &catchup.Config{Wait: wait})
		require.Equal(t, !taken, strings.Contains(err.Error(), fmt.Sprintf("Wait is %v: it must be from 1s to 30s", wait)), "%v", wait)
	}
}
