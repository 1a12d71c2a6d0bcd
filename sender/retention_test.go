package sender_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

const day = 24 * time.Hour

// docs/defaults.md says these.
func TestRetentionDefaults(t *testing.T) {
	require.Equal(t, sender.Retention{
		Reach: 28 * day, Receivers: 32 * day, Delivered: 30 * day, Events: 30 * day, DeadLetters: 365 * day,
		Notices: 90 * day, Rollups: 90 * day, SubscriptionRollups: 35 * day,
	}, sender.Retention{}.WithDefaults())
	own := sender.Retention{Reach: 1, Receivers: 2, Delivered: 3, Events: 4, DeadLetters: 5, Notices: 6, Rollups: 7, SubscriptionRollups: 8}
	require.Equal(t, own, own.WithDefaults())
}

// The error lists all invalid values at once, with valid ones.
func TestRetentionProblems(t *testing.T) {
	for name, c := range map[string]struct {
		is      sender.Retention
		horizon time.Duration
		want    []string
	}{
		"the defaults":   {},
		"all longer":     {is: sender.Retention{Reach: 100 * day, Receivers: 104 * day, Delivered: 100 * day, Events: 100 * day, DeadLetters: -1, Objects: day}},
		"negative":       {is: sender.Retention{Reach: -1, Rollups: -1}, want: []string{"Retention.Reach is -1ns: it must be positive", "Retention.Rollups is -1ns: it must be positive"}},
		"horizon":        {horizon: 40 * day, want: []string{"Retention.Reach is 672h0m0s: it must be at least the horizon of the retries, 960h0m0s", "a horizon of 960h0m0s: it must be at least 1656h0m0s"}},
		"long horizon":   {horizon: 4 * day, want: []string{"Retention.Receivers for Retention.Reach", "a horizon of 96h0m0s: it must be at least 792h0m0s"}},
		"short horizon":  {is: sender.Retention{Receivers: 30 * day}, horizon: day},
		"receivers":      {is: sender.Retention{Receivers: 28 * day}, want: []string{"Retention.Receivers for Retention.Reach", "it must be at least 768h0m0s (the reach, the horizon and a margin"}},
		"records":        {is: sender.Retention{Delivered: 27 * day}, want: []string{"Retention.Delivered is 648h0m0s: it must be at least Reach, 672h0m0s"}},
		"events":         {is: sender.Retention{Delivered: 31 * day}, want: []string{"Retention.Events is 720h0m0s: it must be at least Delivered, 744h0m0s"}},
		"dead letters":   {is: sender.Retention{DeadLetters: day}, want: []string{"Retention.DeadLetters is 24h0m0s: it must be at least Reach, 672h0m0s"}},
		"objects":        {is: sender.Retention{Objects: day - 1}, want: []string{"Retention.Objects is 23h59m59.999999999s: it must be at least 24h0m0s, or zero"}},
		"several at one": {is: sender.Retention{Reach: 60 * day}, want: []string{"Retention.Receivers for", "Retention.Delivered is"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bedtest.New(t)
			policy := dispatch.Policy{Backoff: backoff.Policy{Horizon: c.horizon}}
			_, err := dispatch.New(b.Store, b.Keys, &dispatch.Config{Retention: c.is, Policy: policy})
			if len(c.want) == 0 {
				require.NoError(t, err)
			}
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			_, err = sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Retention: c.is})
			require.Equal(t, len(c.want) > 0 && c.horizon == 0, err != nil, "the registry knows of no horizon: %v", err)
		})
	}
}

// Resuming does not send what receivers may have forgotten, unless it is told to.
func TestResumeReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		s, _ := b.Subscribe("sub_1", "https://endpoint.test/")
		require.NoError(t, b.Registry.Pause(t.Context(), s.ID))
		b.Publish("sub_1")
		_, err := b.Dispatcher(dispatch.Config{}).RunOnce(t.Context())
		require.NoError(t, err)
		time.Sleep(28*day - time.Second)
		require.NoError(t, b.Registry.Resume(t.Context(), s.ID, sender.Resume{}))
		require.NoError(t, b.Registry.Pause(t.Context(), s.ID))
		time.Sleep(2 * time.Second)
		var refused *sender.RetentionError
		require.ErrorAs(t, b.Registry.Resume(t.Context(), s.ID, sender.Resume{}), &refused)
		require.WithinDuration(t, time.Now().Add(-28*day), refused.NotBefore, time.Microsecond)
		require.Equal(t, sender.StatusHeld, b.Delivery().Status)
		require.NoError(t, b.Registry.Resume(t.Context(), s.ID, sender.Resume{Force: true}))
		require.Equal(t, sender.StatusPending, b.Delivery().Status)
	})
}

// Run prunes beside its work, once an hour; RunOnce does not.
func TestDispatcherPrunes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_1", "https://endpoint.test/")
		endpoint := sendertest.NewRoundTripper()
		var log bedtest.LockedLog
		var passes bedtest.Noted[dispatch.Pruned]
		d := b.Dispatcher(dispatch.Config{
			UnguardedTransport: endpoint, MaxIdle: 10 * time.Minute, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Hooks: dispatch.Hooks{Pruned: func(_ context.Context, p dispatch.Pruned) { passes.Add(p) }},
		})
		const n = 700 // several batches
		for range n {
			b.Publish("sub_1")
		}
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		time.Sleep(31 * day)
		_, err = d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Empty(t, passes.List())

		stop := b.Start(d)
		time.Sleep(time.Minute)
		require.Equal(t, []dispatch.Pruned{{Deliveries: n, Events: n}}, passes.List())
		b.Publish("sub_1")
		time.Sleep(30*day + 90*time.Minute)
		require.NoError(t, stop())
		require.InDelta(t, 30*24+2, len(passes.List()), 2)
		total := 0
		for _, p := range passes.List() {
			total += p.Events
		}
		require.Equal(t, n+1, total)
		require.Contains(t, log.String(), "level=DEBUG msg=pruned deliveries=700 dead_letters=0 events=700")
	})
}

// A dispatcher that is never idle also prunes, with a batch every two seconds.
func TestDispatcherPrunesWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_1", "https://endpoint.test/")
		var noticed bedtest.Noted[time.Time]
		store := pruneStore{Store: b.Store, prune: func() error { noticed.Add(time.Now()); return nil }}
		endpoint := func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Millisecond)
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}, nil
		}
		d := b.DispatcherOn(store, dispatch.Config{UnguardedTransport: bedtest.TransportFunc(endpoint)})
		for range 1000 {
			b.Publish("sub_1")
		}
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		time.Sleep(31 * day)
		stop := b.Start(d)
		for range 16_000 {
			b.Publish("sub_1")
			time.Sleep(time.Millisecond / 2)
		}
		batches := noticed.List()
		require.Greater(t, len(batches), 2)
		for i := range batches[1:] {
			require.Less(t, batches[i+1].Sub(batches[i]), 3*time.Second)
		}
		require.NoError(t, stop())
	})
}

// An error of pruning is logged and tried again, and stops nothing.
func TestDispatcherPruneFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_1", "https://endpoint.test/")
		var calls bedtest.Noted[time.Time]
		var log bedtest.LockedLog
		store := pruneStore{Store: b.Store, prune: func() error {
			calls.Add(time.Now())
			return errors.New("the disk is full")
		}}
		d := b.DispatcherOn(store, dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		_, err := d.Prune(t.Context())
		require.ErrorContains(t, err, "the disk is full")
		stop := b.Start(d)
		b.Publish("sub_1")
		time.Sleep(3*time.Minute + time.Second)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
		require.NoError(t, stop())
		require.Len(t, calls.List(), 1+4, "once a minute")
		require.Equal(t, 4, strings.Count(log.String(), "pruning failed"))
	})
}

// If one kind of record cannot be removed, the others are removed all the same, and the pass
// ends with an error. After a second such pass the next one comes an hour later.
func TestDispatcherPrunesWhatDoesNotFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_1", "https://endpoint.test/")
		var passes bedtest.Noted[dispatch.Pruned]
		var log bedtest.LockedLog
		d := b.DispatcherOn(kindStore{b.Store}, dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Hooks: dispatch.Hooks{Pruned: func(_ context.Context, p dispatch.Pruned) { passes.Add(p) }},
		})
		for range 250 { // several batches
			b.Publish("sub_1")
		}
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		time.Sleep(31 * day)
		sum, err := d.Prune(t.Context())
		require.EqualError(t, err, "notices: a row is damaged")
		require.Equal(t, dispatch.Pruned{Deliveries: 250, Events: 250}, sum)
		stop := b.Start(d)
		time.Sleep(2*time.Hour + 2*time.Minute)
		require.NoError(t, stop())
		require.Len(t, passes.List(), 1+4, "at once, after a minute, and then each hour")
		require.Equal(t, 4, strings.Count(log.String(), "pruning failed"))
		require.Contains(t, log.String(), "notices: a row is damaged")
	})
}

// kindStore is a store where one kind of record cannot be removed.
type kindStore struct{ *memory.Store }

func (s kindStore) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	if p.Cursor == "" {
		return dispatch.Pruned{Cursor: "1."}, errors.New("notices: a row is damaged")
	}
	return s.Store.Prune(ctx, p)
}

// pruneStore is a store whose Prune calls something first.
type pruneStore struct {
	*memory.Store
	prune func() error
}

func (s pruneStore) Prune(ctx context.Context, p dispatch.PruneParams) (dispatch.Pruned, error) {
	if err := s.prune(); err != nil {
		return dispatch.Pruned{}, err
	}
	return s.Store.Prune(ctx, p)
}

func TestDispatcherPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		b.Subscribe("sub_1", "https://endpoint.test/")
		var busy time.Duration // of the database
		store := pruneStore{Store: b.Store, prune: func() error {
			time.Sleep(time.Second)
			busy += time.Second
			return nil
		}}
		d := b.DispatcherOn(store, dispatch.Config{
			UnguardedTransport: sendertest.NewRoundTripper(),
			Retention:          sender.Retention{Reach: 10 * day, Delivered: 10 * day, Events: 20 * day},
		})
		for range 500 {
			b.Publish("sub_1")
		}
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		for _, c := range []struct {
			after time.Duration
			want  dispatch.Pruned
		}{{10*day - time.Hour, dispatch.Pruned{}}, {2 * time.Hour, dispatch.Pruned{Deliveries: 500}}, {10 * day, dispatch.Pruned{Events: 500}}} {
			time.Sleep(c.after)
			began := time.Now()
			busy = 0
			got, err := d.Prune(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, 2*busy-time.Second, time.Since(began), "between two batches the database is left alone for as long")
		}
	})
}

func TestRedact(t *testing.T) {
	b := bedtest.New(t)
	s, _ := b.Subscribe("sub_1", "https://endpoint.test/")
	require.NoError(t, b.Registry.Pause(t.Context(), s.ID))
	const n = 250 // several batches
	for range n {
		b.PublishOn(sender.Object{Type: "thing", ID: "1"}, "sub_1")
	}
	for _, r := range []history.Redaction{{}, {Subscriber: "sub_1", Object: sender.Object{Type: "thing", ID: "1"}}} {
		_, err := b.History.Redact(t.Context(), r)
		require.ErrorIs(t, err, sender.ErrInvalid)
	}
	_, err := b.History.Redact(t.Context(), history.Redaction{Subscriber: "sub_2"})
	require.ErrorIs(t, err, sender.ErrNotFound)
	events, err := b.History.Redact(t.Context(), history.Redaction{Object: sender.Object{Type: "thing", ID: "1"}})
	require.NoError(t, err)
	require.Equal(t, n, events)
	events, err = b.History.Redact(t.Context(), history.Redaction{Subscriber: "sub_1"})
	require.NoError(t, err)
	require.Zero(t, events)
}
