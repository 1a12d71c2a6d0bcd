package sender_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/bedtest"
	"github.com/surehook/surehook/sender/memory"
	"github.com/surehook/surehook/sender/sendertest"
)

func TestSettingsAreStoredInOneForm(t *testing.T) {
	b := bedtest.New(t)
	b.Subscribe("sub_a", "http://endpoint/")
	reg, err := sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{Network: bedtest.Private, MaxTimeout: 20 * time.Second, Proxies: []string{"eu"}})
	require.NoError(t, err)
	s, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: sender.Settings{
		Headers: map[string]string{"x-api-key": " k "}, MaxInFlight: 2, Rate: 0.5, Timeout: 20 * time.Second, Proxy: "eu",
	}})
	require.NoError(t, err)
	want := sender.Settings{Headers: map[string]string{"X-Api-Key": s.Settings.Headers["X-Api-Key"]}, MaxInFlight: 2, Rate: 0.5, Timeout: 20 * time.Second, Proxy: "eu"}
	require.Equal(t, want, s.Settings)
	stored, err := reg.Subscription(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, want, stored.Settings)

	for _, refused := range []sender.Settings{{Proxy: "us"}, {Timeout: 21 * time.Second}, {Headers: map[string]string{"Host": "h"}}} {
		_, err := reg.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: refused})
		require.ErrorIs(t, err, sender.ErrInvalid)
		err = b.Store.InTx(t.Context(), func(tx *memory.Tx) error {
			_, err := reg.SubscribeTx(t.Context(), tx, sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: refused})
			return err
		})
		require.ErrorIs(t, err, sender.ErrInvalid)
	}
	_, err = b.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "http://endpoint/", Settings: sender.Settings{Timeout: 11 * time.Second}})
	require.ErrorIs(t, err, sender.ErrInvalid, "the default is 10 s")

	_, err = sender.NewRegistry(b.Store, b.Keys, &sender.RegistryConfig{MaxTimeout: 31 * time.Second, Proxies: []string{"a b", ""}})
	require.ErrorContains(t, err, "MaxTimeout is 31s: it must be from 1s to 30s")
	require.ErrorContains(t, err, `the name "a b"`)
	require.ErrorContains(t, err, `the name ""`)
}

// Limits that have become narrower keep nobody from changing something else.
func TestNarrowerLimits(t *testing.T) {
	before, after := registries(t, &sender.RegistryConfig{MaxTimeout: 20 * time.Second, Proxies: []string{"eu"}}, &sender.RegistryConfig{Proxies: []string{"us"}})
	s, err := before.Subscribe(t.Context(), sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/", Settings: sender.Settings{Timeout: 20 * time.Second, Proxy: "eu"}})
	require.NoError(t, err)
	description, settings := "new", s.Settings
	settings.MaxInFlight = 3
	s, err = after.Update(t.Context(), s.ID, sender.SubscriptionChange{Description: &description, Settings: &settings})
	require.NoError(t, err)
	require.Equal(t, []any{20 * time.Second, "eu", 3}, []any{s.Settings.Timeout, s.Settings.Proxy, s.Settings.MaxInFlight})
	settings.Timeout, settings.Proxy = 19*time.Second, "asia"
	_, err = after.Update(t.Context(), s.ID, sender.SubscriptionChange{Settings: &settings})
	require.ErrorContains(t, err, "the timeout is 19s: it must be from 1s to 10s, or 0")
	require.ErrorContains(t, err, "the proxy is not one that may be used here: these are us")
}

// A subscription's headers are posted, and never replace the library's headers, whatever is
// in the database.
func TestOwnHeaders(t *testing.T) {
	b := bedtest.New(t)
	ep := sendertest.NewEndpoint(t)
	_, secret := b.Subscribe("sub_a", ep.URL())
	ref := b.Publish("sub_a")
	_, err := b.DispatcherWith(sender.Settings{Headers: map[string]string{
		"Authorization": "Bearer hunter2", "x-lower": "1", "Cookie": "a=b",
		"Content-Type": "text/plain", "User-Agent": "theirs", "Webhook-Attempt": "9", "webhook-id": "theirs", "Webhook-Anything": "theirs",
		"Idempotency-Key": "k", "X-Idempotency-Key": "k", "Content-Length": "1", "Transfer-Encoding": "chunked", "Connection": "close",
	}}, dispatch.Config{}).RunOnce(t.Context())
	require.NoError(t, err)
	require.Len(t, ep.Requests(), 1)
	p := ep.Requests()[0]
	require.NoError(t, p.Verify(secret))
	for name, want := range map[string]string{
		"Authorization": "Bearer hunter2", "X-Lower": "1", "Cookie": "a=b",
		"Content-Type": "application/json", "User-Agent": "surehook", "Webhook-Attempt": "1", "Webhook-Id": ref.ID,
	} {
		require.Equal(t, []string{want}, p.Header[name], name)
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "Webhook-Anything", "Transfer-Encoding", "Connection"} {
		require.NotContains(t, p.Header, name)
	}
	require.Equal(t, sender.StatusDelivered, b.Delivery().Status)
}

func TestOwnTimeoutIsTheShorterOne(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 2 * time.Second: 2 * time.Second, 8 * time.Second: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := bedtest.New(t)
			b.Subscribe("sub_a", "http://endpoint/")
			b.Publish("sub_a")
			_, err := b.DispatcherWith(sender.Settings{Timeout: own}, dispatch.Config{
				Timeout: 5 * time.Second, UnguardedTransport: sendertest.NewRoundTripper(sendertest.Hang()),
			}).RunOnce(t.Context())
			require.NoError(t, err)
			a := b.Delivery().Attempts[0]
			require.Equal(t, sender.ClassTimeout, a.Class)
			require.Equal(t, want, a.Duration)
		})
	}
}

// MaxInFlight holds on the wire, however many are due.
func TestMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bedtest.New(t)
		var mu sync.Mutex
		inFlight, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			inFlight += n
			most = max(most, inFlight)
		}
		b.Subscribe("sub_a", "http://endpoint/")
		for range 40 {
			b.Publish("sub_a")
		}
		endpoint := sendertest.NewRoundTripper(sendertest.Func(func(http.ResponseWriter, *http.Request) {
			count(1)
			defer count(-1)
			time.Sleep(10 * time.Millisecond)
		}))
		stats, err := b.DispatcherWith(sender.Settings{MaxInFlight: 3}, dispatch.Config{UnguardedTransport: endpoint}).RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 40, stats.Delivered)
		require.Equal(t, 3, most)
	})
}
