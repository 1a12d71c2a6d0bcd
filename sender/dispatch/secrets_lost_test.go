package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

// A deployment without its keys says so, and does nothing.
func TestKeysLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		b.Keys = bedtest.NewKeys(t, "2")
		lost := b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint})
		_, once := lost.RunOnce(t.Context())
		reg, err := sender.NewRegistry(b.Store, b.Keys, nil)
		require.NoError(t, err)
		require.ErrorIs(t, once, sender.ErrSealed)
		for _, err := range []error{once, lost.Run(t.Context()), reg.CheckKeys(t.Context())} {
			require.ErrorIs(t, err, sender.ErrSealed)
			require.ErrorContains(t, err, `not among those given: "1" (fingerprint 6819fe1d); give them to NewKeys as older keys (SenderConfig.OlderKeys of package surehook), and`)
		}
		expanded, _, err := b.Store.Step(t.Context(), dispatch.ExpandParams{Events: 9, Deliveries: 9}, dispatch.Batch{})
		require.NoError(t, err)
		require.Equal(t, 1, expanded.Deliveries, "nothing had been done")

		// The old key is given back, beside the new one.
		b.Keys = bedtest.NewKeys(t, "2", "1")
		_, err = b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}).RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
		require.Equal(t, 1, b.Delivery().Attempts[0].Number)
		require.Len(t, endpoint.Requests(), 1)
	})
}

// loads counts the keyrings that are read.
type loads struct {
	dispatch.Store
	n atomic.Int64
}

func (s *loads) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	s.n.Add(int64(len(subscribers)))
	return s.Store.Keyrings(ctx, subscribers)
}

// journal is a log that may be read while it is written.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Nothing is ever sent unsigned, our own faults are not charged to endpoints, and other
// subscribers are not affected.
func TestSecretThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		var log journal
		store := &loads{Store: b.Store}
		stop := b.Start(b.DispatcherOn(store, dispatch.Config{UnguardedTransport: endpoint, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		synctest.Wait()

		// While the dispatcher runs, another process registers with a key that the
		// dispatcher lacks.
		elsewhere, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2"), &sender.RegistryConfig{Network: bedtest.Private})
		require.NoError(t, err)
		for _, id := range []string{"sub_locked", "sub_revoked"} {
			_, _, err := elsewhere.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: id})
			require.NoError(t, err)
			b.Subscribe(id, "http://endpoint/"+id)
			for range 50 {
				b.Publish(id)
			}
		}
		b.Subscribe("sub_a", "http://endpoint/sub_a")
		for range 50 {
			b.Publish("sub_a")
		}
		time.Sleep(time.Second)
		to := func(path string) (n int) {
			for _, p := range endpoint.Requests() {
				if p.URL.Path == path {
					n++
				}
			}
			return n
		}
		told := func() int { return strings.Count(log.String(), "cannot be sent") }
		require.Equal(t, 50, to("/sub_a"), "others are not disturbed")
		require.Len(t, endpoint.Requests(), 50)
		require.Equal(t, 2, told(), "once for each subscriber")
		require.EqualValues(t, 3, store.n.Load(), "keyrings read")
		require.Contains(t, log.String(), `subscriber_id=sub_locked`)
		require.Contains(t, log.String(), `was sealed with the key \"2\"`)

		// A new secret helps, without a restart.
		_, err = b.Registry.RevokeSecret(t.Context(), "sub_revoked", signing.Secret{})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Equal(t, 50, to("/sub_revoked"))
		before := told()
		time.Sleep(9*time.Minute + 30*time.Second)
		require.InDelta(t, 9.5, told()-before, 1, "once a minute")
		require.Zero(t, to("/sub_locked"))
		require.NoError(t, stop())
		list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Limit: 200})
		require.NoError(t, err)
		require.Len(t, list, 150)
		waiting := 0
		for _, d := range list {
			if d.Status != sender.StatusDelivered {
				require.Zero(t, d.AttemptCount)
				waiting++
			}
		}
		require.Equal(t, 50, waiting)

		b.Keys = bedtest.NewKeys(t, "1", "2")
		b.Start(b.Dispatcher(dispatch.Config{UnguardedTransport: endpoint}))
		time.Sleep(2 * time.Minute)
		require.Equal(t, 50, to("/sub_locked"), "the key was given back")
		for _, p := range endpoint.Requests() {
			require.Equal(t, "1", p.Header.Get("Webhook-Attempt"))
			require.NotEmpty(t, p.Header.Get("Webhook-Signature"))
		}
	})
}

// hiccup is a database that once does not answer a read of keyrings.
type hiccup struct {
	dispatch.Store
	hangs bool // until no attempt waits any more
	asked atomic.Int64
}

func (s *hiccup) Keyrings(ctx context.Context, subscribers []int64) (map[int64]sender.SealedKeyring, error) {
	if s.asked.Add(1) == 1 {
		if s.hangs {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, errors.New("the connection broke")
	}
	return s.Store.Keyrings(ctx, subscribers)
}

// A secret that could not be read once holds up its deliveries for a moment.
func TestSecretThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		var putOff bedtest.Noted[dispatch.PutOff]
		b.Start(b.DispatcherOn(&hiccup{Store: b.Store}, dispatch.Config{
			UnguardedTransport: endpoint, Hooks: dispatch.Hooks{PutOff: func(_ context.Context, p dispatch.PutOff) { putOff.Add(p) }},
		}))
		time.Sleep(900 * time.Millisecond)
		require.Empty(t, endpoint.Requests())
		time.Sleep(time.Second)
		require.Len(t, endpoint.Requests(), 1)
		require.Equal(t, 1, b.Delivery().Attempts[0].Number, "nothing was attempted before")
		require.Len(t, putOff.List(), 1)
		told := putOff.List()[0]
		require.Equal(t, []any{dispatch.PutOffSecret, time.Second, b.Delivery().Event.ID}, []any{told.Reason, told.Pause, told.Delivery.Event.ID})
	})
}

// A connection on which nobody answers holds up deliveries for an attempt's time.
func TestReadOfASecretHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		endpoint := sendertest.NewRoundTripper()
		b.Subscribe("sub_a", "http://endpoint/")
		b.Publish("sub_a")
		b.Start(b.DispatcherOn(&hiccup{Store: b.Store, hangs: true}, dispatch.Config{UnguardedTransport: endpoint, Timeout: 5 * time.Second}))
		time.Sleep(5900 * time.Millisecond)
		require.Empty(t, endpoint.Requests())
		time.Sleep(time.Second)
		require.Len(t, endpoint.Requests(), 1)
		require.Equal(t, 1, b.Delivery().Attempts[0].Number, "nothing was attempted before")
	})
}

// A secret that cannot be opened is not rotated, because its signatures were promised. It
// can be replaced.
func TestChangesOfASecretThatCannotBeOpened(t *testing.T) {
	b := bedtest.New(t)
	_, _, err := b.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(b.Store, bedtest.NewKeys(t, "2"), nil)
	require.NoError(t, err)
	_, _, err = reg.RotateSecret(t.Context(), "sub_a", nil)
	require.ErrorIs(t, err, sender.ErrSealed)
	require.NoError(t, reg.RetireSecret(t.Context(), "sub_a"))
	require.ErrorIs(t, reg.CheckKeys(t.Context()), sender.ErrSealed)
	_, err = reg.RevokeSecret(t.Context(), "sub_a", signing.Secret{})
	require.NoError(t, err)
	require.NoError(t, reg.CheckKeys(t.Context()))
	_, _, err = reg.RotateSecret(t.Context(), "sub_a", nil)
	require.NoError(t, err)
}
