package sender_test

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
)

func TestPostWithClientCertificate(t *testing.T) {
	a := newAuthority(t)
	srv := newCertServer(t, a)
	b := newBed(t)
	b.subscribeWith("sub_a", atLocalhost(srv.URL), a.client("alice"))
	b.subscribeWith("sub_b", atLocalhost(srv.URL), a.client("bob"))
	b.subscribeWith("sub_stranger", atLocalhost(srv.URL), newAuthority(t).client("stranger"))
	d := b.settledDispatcher(nil, sender.DispatcherConfig{})
	d.Trust(a.pool)
	defer d.CloseIdle()
	const posts = 20
	var want []string
	for i := range posts {
		b.publish([]string{"sub_a", "sub_b"}[i%2])
		want = append(want, []string{"alice", "bob"}[i%2])
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, stats.Delivered)
	}
	_, opened, names := srv.count()
	require.Equal(t, want, names, "each shows its own")
	require.Less(t, opened, posts/2, "connections are kept") // net/http now and then drops one

	ref := b.publish("sub_stranger")
	stats, err := d.RunOnce(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, stats.Failed)
	list, _, err := b.history.Deliveries(t.Context(), sender.DeliveryQuery{Event: ref.ID})
	require.NoError(t, err)
	require.Equal(t, sender.ClassTLS, list[0].LastErrorClass)
}

// Transports beyond the bound go, with their connections and goroutines.
func TestTransportsAreBounded(t *testing.T) {
	a := newAuthority(t)
	srv := newCertServer(t, a)
	b := newBed(t)
	const subscriptions, kept = 7, 2
	for i := range subscriptions {
		b.subscribeWith(fmt.Sprintf("sub_%d", i), atLocalhost(srv.URL), a.client(fmt.Sprint(i)))
	}
	d := b.settledDispatcher(nil, sender.DispatcherConfig{})
	d.Trust(a.pool)
	d.KeepTransports(kept)
	runtime.GC()
	before := runtime.NumGoroutine()

	for i := range subscriptions {
		b.publish(fmt.Sprintf("sub_%d", i))
		_, err := d.RunOnce(t.Context())
		require.NoError(t, err)
	}
	until(t, "evicted transports keep connections open", func() bool { open, _, _ := srv.count(); return open <= kept })
	// All at once: transports are evicted while attempts are under way on them.
	srv.hold = make(chan struct{})
	for i := range subscriptions {
		b.publish(fmt.Sprintf("sub_%d", i))
	}
	ran := make(chan sender.Stats)
	go func() {
		stats, err := d.RunOnce(t.Context())
		require.NoError(t, err)
		ran <- stats
	}()
	until(t, "all are under way", func() bool { _, _, names := srv.count(); return len(names) == 2*subscriptions })
	close(srv.hold)
	require.Equal(t, subscriptions, (<-ran).Delivered, "what is under way on an evicted one ends well")
	until(t, "evicted transports keep connections open", func() bool { open, _, _ := srv.count(); return open <= kept })

	require.Equal(t, kept, d.CloseIdle())
	until(t, "goroutines are left", func() bool { open, _, _ := srv.count(); return open == 0 && runtime.NumGoroutine() <= before })
}

// A dispatcher that was stopped holds nothing open, whichever transport it was.
func TestRunClosesIdleConnections(t *testing.T) {
	a := newAuthority(t)
	srv, b := newCertServer(t, a), newBed(t)
	closed := make(chan struct{}, 100)
	srv.mu.Lock()
	srv.closed = closed
	srv.mu.Unlock()
	plain := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	plain.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	plain.Start()
	t.Cleanup(plain.Close)
	b.subscribeWith("sub_a", atLocalhost(srv.URL), a.client("alice"))
	b.subscribe("sub_b", plain.URL)
	delivered := make(chan struct{}, 2)
	d := b.dispatcher(sender.DispatcherConfig{Hooks: sender.Hooks{Recorded: func(_ context.Context, r *sender.Recorded) {
		if r.Decision.Status == sender.StatusDelivered {
			delivered <- struct{}{}
		}
	}}})
	d.Trust(a.pool)
	stop := b.start(d)
	b.publish("sub_a")
	b.publish("sub_b")
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
