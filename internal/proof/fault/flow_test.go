package fault_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/internal/newid"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/signing"
)

// flow runs all operations on events: one service publishes and dispatches, another one
// receives.
type flow struct {
	fault             *fault
	faulty, sound     side // the sender's database, through calls that fail, and through sound ones
	receiver, applied side
	pass              func(d time.Duration)
	timeout           time.Duration // of an attempt
	realTime          bool          // it passes by itself
}

const (
	retry = 5 * time.Millisecond
	// One failure more than this disables.
	failures = 5
	tries    = 300
)

// endpoint is the receiver, called without a network.
type endpoint struct {
	mu     sync.Mutex
	refuse bool
	inner  http.Handler
	posts  map[string]int // by event
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.posts[r.Header.Get("Webhook-Id")]++
	refuse := e.refuse
	e.mu.Unlock()
	w := httptest.NewRecorder()
	if refuse && strings.HasSuffix(r.URL.Path, "failing") {
		w.WriteHeader(http.StatusInternalServerError)
	} else {
		e.inner.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

// world is a flow under way.
type world struct {
	flow
	name       string
	registry   *sender.Registry[*sql.Tx] // this never fails
	history    *history.History          // this never fails either
	publishers *sender.Publisher[*sql.Tx]
	operator   *sender.Registry[*sql.Tx]
	replays    *replay.Replays
	dispatcher *dispatch.Dispatcher
	endpoint   *endpoint
	events     map[string]string // by id, their types
}

func newWorld(t *testing.T, f flow) *world {
	w := &world{flow: f, name: newid.New("sub_", time.Now()), endpoint: &endpoint{refuse: true, posts: map[string]int{}}, events: map[string]string{}}
	network := sender.Network{AllowPrivateNetworks: true}
	var err error
	w.registry, err = sender.NewRegistry(f.sound.store, keys(t), &sender.RegistryConfig{Network: network})
	require.NoError(t, err)
	w.history, err = history.New(f.sound.store, nil)
	require.NoError(t, err)
	w.publishers, err = sender.NewPublisher[*sql.Tx](f.faulty.store, nil)
	require.NoError(t, err)
	w.operator, err = sender.NewRegistry(f.faulty.store, keys(t), &sender.RegistryConfig{Network: network})
	require.NoError(t, err)
	w.replays = f.faulty.replays(t)
	schedule, err := backoff.Fixed(retry)
	require.NoError(t, err)
	w.dispatcher, err = dispatch.New(f.faulty.store, keys(t), &dispatch.Config{
		Policy:  dispatch.Policy{Backoff: backoff.Policy{Schedule: schedule, Jitter: backoff.None(), Horizon: 4 * retry}, DisableAfter: retry, FastAnswer: time.Minute},
		Timeout: f.timeout, Lease: 3 * f.timeout, DrainTimeout: time.Minute, UnguardedTransport: w.endpoint, Logger: quiet,
	})
	require.NoError(t, err)

	_, secret, err := w.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: w.name})
	require.NoError(t, err)
	for _, kind := range []string{"made", "failing"} {
		_, err := w.registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: w.name, URL: "http://127.0.0.1/" + kind, EventTypes: []string{"thing." + kind}})
		require.NoError(t, err)
	}
	ring, err := signing.NewKeyring(signing.Key{ID: "1", Secret: secret})
	require.NoError(t, err)
	verifier, err := signing.NewVerifier(ring, nil)
	require.NoError(t, err)
	rcv, err := receiver.New(verifier, receiver.SQL(f.receiver.db, nil), f.receiver.dedup, w.name, &receiver.Config{Logger: quiet})
	require.NoError(t, err)
	w.endpoint.inner = rcv.Handler(receiver.State(func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects VALUES ('%s', '%s')", ev.ID, ev.Object.ID))
		return err
	}))
	return w
}

// again repeats a call until it succeeds, as callers do whose database may fail. It
// must succeed soon after the one fault.
func (w *world) again(t *testing.T, what string, do func(ctx context.Context) error) {
	t.Helper()
	for try := range 3 {
		ctx, cancel := w.fault.context(t.Context())
		err := do(ctx)
		cancel()
		if err == nil {
			return
		}
		require.True(t, w.fault.struck.Load(), "%s: failed without a fault: %v", what, err)
		require.Less(t, try, 2, "%s: goes on failing after the fault: %v", what, err)
	}
}

// publish commits a thing with its event, by the application's own transaction.
func (w *world) publish(ctx context.Context, kind, id string, undo bool) error {
	tx, err := w.faulty.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	ref, err := w.publishers.PublishTx(ctx, tx, sender.Event{
		Type: "thing." + kind, Subscriber: w.name, Object: sender.Object{Type: "thing", ID: id}, IdempotencyKey: id, KeyScope: w.name,
	})
	if err != nil {
		return err
	}
	if !ref.Duplicate {
		if _, err := tx.ExecContext(ctx, "INSERT INTO things VALUES ('"+id+"')"); err != nil {
			return err
		}
	}
	if undo {
		return tx.Rollback()
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	w.events[ref.ID] = kind
	return nil
}

// settle dispatches, and lets time pass, until something holds.
func (w *world) settle(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range tries {
		ctx, cancel := w.fault.context(t.Context())
		_, err := w.dispatcher.RunOnce(ctx)
		cancel()
		require.True(t, err == nil || w.fault.struck.Load(), "failed without a fault: %v", err)
		if holds() {
			return
		}
		w.pass(2 * retry)
		if w.fault.struck.Load() { // a lease may have to end
			w.pass(w.timeout)
		}
	}
	for _, d := range w.of(t, "") {
		d, err := w.history.Delivery(t.Context(), d.ID)
		t.Logf("%s %s, attempts %+v, %v", d.Event.Type, d.Status, d.Attempts, err)
	}
	require.Fail(t, "it never came to be", what)
}

func (w *world) of(t *testing.T, status sender.Status) []sender.Delivery {
	t.Helper()
	page, _, err := w.history.Deliveries(t.Context(), history.DeliveryQuery{Subscriber: w.name, Status: status, Limit: 200})
	require.NoError(t, err)
	return page
}

func (w *world) notices(t *testing.T, kind sender.NoticeKind) []sender.Notice {
	t.Helper()
	all, _, err := w.history.Notices(t.Context(), history.NoticeQuery{Subscriber: w.name, Kind: kind, Limit: 200})
	require.NoError(t, err)
	return all
}

func run(t *testing.T, f flow) {
	f.fault.log = t.Log
	w := newWorld(t, f)
	id := func(n int) string { return fmt.Sprintf("%s-%d", w.name, n) }
	w.again(t, "publishing", func(ctx context.Context) error { return w.publish(ctx, "made", id(0), false) })
	w.again(t, "rolling back", func(ctx context.Context) error { return w.publish(ctx, "made", "undone-"+id(0), true) })
	for n := range failures {
		w.again(t, "publishing", func(ctx context.Context) error { return w.publish(ctx, "failing", id(1+n), false) })
	}

	w.settle(t, "everything has ended, or is held", func() bool {
		return len(w.of(t, sender.StatusDelivered))+len(w.of(t, sender.StatusDeadLettered))+len(w.of(t, sender.StatusHeld)) == 1+failures
	})
	subscriptions, err := w.registry.Subscriptions(t.Context(), w.name, "", 10)
	require.NoError(t, err)
	failing := subscriptions[1]
	disabled := 0
	if failing.Status == sender.SubscriptionDisabled {
		disabled = 1
	}
	require.Len(t, w.notices(t, sender.NoticeDisabled), disabled, "it is told of once that a subscription is disabled")
	if !f.fault.struck.Load() {
		warned := len(w.notices(t, sender.NoticeFailing))
		require.Positive(t, warned, "nobody is disabled who was not warned")
		if !w.realTime { // on a busy machine the first failures alone can be enough to disable, or the second ones can be the last
			require.Equal(t, 1, disabled)
			require.NotEmpty(t, w.of(t, sender.StatusDeadLettered))
		}
	}
	for _, d := range w.of(t, sender.StatusDeadLettered) {
		told := 0
		for _, n := range w.notices(t, sender.NoticeDeadLettered) {
			if n.Delivery == d.ID {
				told++
			}
		}
		require.Equal(t, 1, told, "a dead letter is told of once")
	}

	w.endpoint.mu.Lock()
	w.endpoint.refuse = false
	w.endpoint.mu.Unlock()
	w.again(t, "resuming", func(ctx context.Context) error { return w.operator.Resume(ctx, failing.ID, sender.Resume{}) })
	w.again(t, "replaying", func(ctx context.Context) error {
		_, err := w.replays.Create(ctx, replay.Request{Filter: replay.Filter{Subscriber: w.name}})
		return err
	})
	told := len(w.notices(t, sender.NoticeDisabled))
	w.settle(t, "all is delivered", func() bool {
		delivered, dead := len(w.of(t, sender.StatusDelivered)), len(w.of(t, sender.StatusDeadLettered))
		if now := len(w.notices(t, sender.NoticeDisabled)); now > told { // again: on a busy machine its attempts were not answered in time
			told = now
			require.NoError(t, w.registry.Resume(t.Context(), failing.ID, sender.Resume{}))
		}
		if delivered+dead == 1+failures && dead > 0 { // likewise
			_, err := w.sound.replays(t).Create(t.Context(), replay.Request{Filter: replay.Filter{Subscriber: w.name}})
			require.NoError(t, err)
		}
		return delivered == 1+failures
	})
	w.check(t)
}

func (w *world) check(t *testing.T) {
	t.Helper()
	require.Len(t, w.events, 1+failures)
	require.Equal(t, 1+failures, count(t, w.sound.db, "SELECT count(*) FROM things WHERE id LIKE '"+w.name+"%'"), "each committed once")
	require.Zero(t, count(t, w.sound.db, "SELECT count(*) FROM things WHERE id LIKE 'undone%'"), "what was rolled back")
	require.Equal(t, 1+failures, count(t, w.applied.db, "SELECT count(*) FROM effects WHERE object LIKE '"+w.name+"%'"), "effects")
	require.Equal(t, 1+failures, count(t, w.applied.db, "SELECT count(DISTINCT event) FROM effects WHERE object LIKE '"+w.name+"%'"), "events with effects")
	require.Equal(t, 1+failures, count(t, w.applied.db, "SELECT count(*) FROM surehook_dedup_markers WHERE scope = '"+w.name+"'"), "markers")
	all := w.of(t, "")
	require.Len(t, all, 1+failures, "deliveries")
	for _, d := range all {
		d, err := w.history.Delivery(t.Context(), d.ID)
		require.NoError(t, err)
		require.Contains(t, w.events, d.Event.ID, "nothing is sent that was not acknowledged")
		for i, a := range d.Attempts {
			require.Equal(t, i+1, a.Number)
			require.Equal(t, i == len(d.Attempts)-1, a.Class == sender.ClassNone, "delivered by its last attempt, and by no other")
		}
		require.LessOrEqual(t, w.endpoint.posts[d.Event.ID], len(d.Attempts), "posts are at most the attempts recorded")
		require.NotZero(t, w.endpoint.posts[d.Event.ID])
	}
	require.Len(t, w.endpoint.posts, len(w.events), "nothing else was posted")
	require.Zero(t, w.faulty.db.Stats().InUse, "connections that were not given back")
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n), query)
	return n
}
