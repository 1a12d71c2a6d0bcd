package telemetry_test

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook"
	dedup "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receiverotel"
	"github.com/surehook/surehook/receiver/receiverprom"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/senderotel"
	"github.com/surehook/surehook/sender/senderprom"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/signing"
)

// path is a sender and a receiver, with all metrics and traces.
type path struct {
	sys      *surehook.Sender[*sql.Tx]
	owner    sender.Subscriber
	secret   signing.Secret
	spans    *tracetest.SpanRecorder
	tracer   *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
	registry *prometheus.Registry
	header   atomic.Pointer[http.Header] // of the last request
	answer   func(w http.ResponseWriter, r *http.Request) bool
	url      string
}

// settings of a path.
type settings struct {
	sends  bool // the sender sends traceparent
	trusts bool // the receiver trusts it
}

func newPath(t *testing.T, s settings) *path {
	t.Helper()
	p := &path{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader(), registry: prometheus.NewPedanticRegistry()}
	p.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader))

	telemetry, err := senderotel.New(&senderotel.Config{TracerProvider: p.tracer, MeterProvider: meters})
	require.NoError(t, err)
	metrics, err := senderprom.New(&senderprom.Config{EventTypes: []string{"order.paid"}})
	require.NoError(t, err)
	cfg := &surehook.SenderConfig{
		Network:      sender.Network{AllowPrivateNetworks: true},
		Traceparent:  telemetry.PublishTraceparent,
		PublishHooks: sender.JoinPublishHooks(metrics.PublishHooks(), telemetry.PublishHooks()),
		Dispatch:     dispatch.Config{Hooks: dispatch.JoinHooks(metrics.Hooks(), telemetry.Hooks())},
		Logger:       slog.New(slog.DiscardHandler),
	}
	if s.sends {
		cfg.Dispatch.Traceparent = telemetry.AttemptTraceparent
	}
	store := open(t)
	p.sys, err = surehook.NewSender(store, sender.SealingKey{ID: "1", Key: make([]byte, 32)}, cfg)
	require.NoError(t, err)
	totals, err := senderprom.NewTotals(p.sys.History, nil)
	require.NoError(t, err)
	_, err = telemetry.ObserveTotals(p.sys.History)
	require.NoError(t, err)
	p.owner, p.secret, err = p.sys.Registry.CreateSubscriber(t.Context(), sender.NewSubscriber{})
	require.NoError(t, err)

	received := receiverprom.New()
	p.registry.MustRegister(metrics, totals, received)
	p.url = p.receiver(t, s, meters, received)
	return p
}

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "sender.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)&_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	store, err := sqlite.New(db, nil)
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	return store
}

func (p *path) receiver(t *testing.T, s settings, meters *sdkmetric.MeterProvider, received *receiverprom.Collector) (url string) {
	t.Helper()
	telemetry, err := receiverotel.New(&receiverotel.Config{TracerProvider: p.tracer, MeterProvider: meters, TrustSender: s.trusts})
	require.NoError(t, err)
	store := dedup.New()
	hooks, err := surehook.NewReceiver(store.InTx, store, "shop", p.secret.Reveal(), &surehook.ReceiverConfig{
		Receive: receiver.Config{Hooks: receiver.JoinHooks(received.Hooks(), telemetry.Hooks()), Logger: slog.New(slog.DiscardHandler)},
	})
	require.NoError(t, err)
	handler := hooks.Handler(receiver.State(func(context.Context, *dedup.Tx, receiver.Event) error { return nil }))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Clone()
		p.header.Store(&header)
		if p.answer != nil && p.answer(w, r) {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (p *path) subscribe(t *testing.T, query string, headers map[string]string) {
	t.Helper()
	_, err := p.sys.Registry.Subscribe(t.Context(), sender.NewSubscription{Subscriber: p.owner.ID, URL: p.url + "/hooks" + query, Settings: sender.Settings{Headers: headers}})
	require.NoError(t, err)
}

// publish publishes an event in a trace, and delivers it.
func (p *path) publish(t *testing.T, e sender.Event) sender.Ref {
	t.Helper()
	ctx, span := p.tracer.Tracer("shop").Start(t.Context(), "checkout")
	ref, err := p.sys.Publish(ctx, e)
	span.End()
	require.NoError(t, err)
	_, err = p.sys.Dispatcher.RunOnce(t.Context())
	require.NoError(t, err)
	return ref
}

// span returns the one ended span of a name.
func (p *path) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	var names []string
	for _, s := range p.spans.Ended() {
		names = append(names, s.Name())
		if s.Name() == name {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "%q among %q", name, names)
	return found[0]
}
