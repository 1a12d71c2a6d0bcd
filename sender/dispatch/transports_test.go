package dispatch_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/bedtest"
)

// subscribeWithCertificate makes a subscriber and a subscription.
func subscribeWithCertificate(b *bedtest.Bed, subscriber, url string, c *sender.ClientCertificate) {
	b.T.Helper()
	_, _, err := b.Registry.CreateSubscriber(b.T.Context(), sender.NewSubscriber{ID: subscriber})
	require.NoError(b.T, err)
	_, err = b.Registry.Subscribe(b.T.Context(), sender.NewSubscription{Subscriber: subscriber, URL: url, ClientCertificate: c})
	require.NoError(b.T, err)
}

// until waits for other goroutines to do something.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), what)
	}
}

func TestPostWithClientCertificate(t *testing.T) {
	a := bedtest.NewAuthority(t)
	srv := bedtest.NewCertServer(t, a)
	b := bedtest.New(t)
	subscribeWithCertificate(b, "sub_a", bedtest.AtLocalhost(srv.URL), a.Client("alice"))
	subscribeWithCertificate(b, "sub_b", bedtest.AtLocalhost(srv.URL), a.Client("bob"))
	subscribeWithCertificate(b, "sub_stranger", bedtest.AtLocalhost(srv.URL), bedtest.NewAuthority(t).Client("stranger"))
	d := b.Dispatcher(dispatch.Config{})
	d.Trust(a.Pool)
	defer d.CloseIdle()
	const posts = 20
	var want []string
	for i := range posts {
		b.Publish([]string{"sub_a", "sub_b"}[i%2])
		want = append(want, []string{"alice", "bob"}[i%2])
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, stats.Delivered)
	}
	_, opened, names := srv.Count()
	require.Equal(t, want, names, "each shows its own")
	require.Less(t, opened, posts/2, "connections are kept") // net/http sometimes drops one

	ref := b.Publish("sub_stranger")
	stats, err := d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, stats.Failed)
	list, _, err := b.History.Deliveries(t.Context(), history.DeliveryQuery{Event: ref.ID})
	require.NoError(t, err)
	require.Equal(t, sender.ClassTLS, list[0].LastErrorClass)
}

// Transports beyond the bound go, with their connections and goroutines.
func TestTransportsAreBounded(t *testing.T) {
	a := bedtest.NewAuthority(t)
	srv := bedtest.NewCertServer(t, a)
	b := bedtest.New(t)
	const subscriptions, kept = 7, 2
	for i := range subscriptions {
		subscribeWithCertificate(b, fmt.Sprintf("sub_%d", i), bedtest.AtLocalhost(srv.URL), a.Client(fmt.Sprint(i)))
	}
	d := b.Dispatcher(dispatch.Config{})
	d.Trust(a.Pool)
	d.KeepTransports(kept)
	runtime.GC()
	before := runtime.NumGoroutine()

	for i := range subscriptions {
		b.Publish(fmt.Sprintf("sub_%d", i))
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
	}
	until(t, "evicted transports keep connections open", func() bool { open, _, _ := srv.Count(); return open <= kept })
	// All run at once: transports are evicted while attempts are under way on them.
	srv.Hold = make(chan struct{})
	for i := range subscriptions {
		b.Publish(fmt.Sprintf("sub_%d", i))
	}
	ran := make(chan dispatch.Stats)
	go func() {
		stats, err := d.RunOnce(t.Context())
		if err != nil {
			t.Error(err)
		}
		ran <- stats
	}()
	until(t, "all are under way", func() bool { _, _, names := srv.Count(); return len(names) == 2*subscriptions })
	close(srv.Hold)
	require.Equal(t, subscriptions, (<-ran).Delivered, "what is under way on an evicted one ends well")
	until(t, "evicted transports keep connections open", func() bool { open, _, _ := srv.Count(); return open <= kept })

	require.Equal(t, kept, d.CloseIdle())
	until(t, "goroutines are left", func() bool { open, _, _ := srv.Count(); return open == 0 && runtime.NumGoroutine() <= before })
}

// A stopped dispatcher holds nothing open, whichever transport it used.
func TestRunClosesIdleConnections(t *testing.T) {
	a := bedtest.NewAuthority(t)
	srv, b := bedtest.NewCertServer(t, a), bedtest.New(t)
	closed := make(chan struct{}, 100)
	srv.NotifyClosed(closed)
	plain := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	plain.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	plain.Start()
	t.Cleanup(plain.Close)
	subscribeWithCertificate(b, "sub_a", bedtest.AtLocalhost(srv.URL), a.Client("alice"))
	b.Subscribe("sub_b", plain.URL)
	delivered := make(chan struct{}, 2)
	d := b.Dispatcher(dispatch.Config{Hooks: dispatch.Hooks{Recorded: func(_ context.Context, r *dispatch.Recorded) {
		if r.Decision.Status == sender.StatusDelivered {
			delivered <- struct{}{}
		}
	}}})
	d.Trust(a.Pool)
	stop := b.Start(d)
	b.Publish("sub_a")
	b.Publish("sub_b")
	for range 2 {
		<-delivered
	}
	require.NoError(t, stop())
	for range 2 {
		select {
		case <-closed:
		case <-time.After(20 * time.Second): // after 30 s they would be closed for having been idle
			t.Fatal("a dispatcher that was stopped left a connection open")
		}
	}
}
