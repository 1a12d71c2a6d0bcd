package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receiverotel"
	"github.com/surehook/surehook/receiver/receiverprom"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/senderotel"
	"github.com/surehook/surehook/sender/senderprom"
	"github.com/surehook/surehook/sender/sqlite"
)

// path is a sender and a receiver in this process, each with a database of its own.
type path struct {
	sys     *surehook.Sender[*sql.Tx]
	applied atomic.Int64
	closers []func()

	registry *prometheus.Registry
	tracer   *sdktrace.TracerProvider
	meter    *sdkmetric.MeterProvider
	send     surehook.SenderConfig
	receive  receiver.Config
	owner    string
}

// discarded is an exporter that is sent the spans and drops them.
type discarded struct{}

func (discarded) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discarded) Shutdown(context.Context) error                             { return nil }

func newPath(ctx context.Context, folder string, k kind) (*path, error) {
	p := &path{registry: prometheus.NewRegistry()}
	quiet := slog.New(slog.DiscardHandler)
	p.send = surehook.SenderConfig{Network: sender.Network{AllowPrivateNetworks: true}, Logger: quiet}
	if err := p.observe(k); err != nil {
		return nil, err
	}
	db, err := p.open(filepath.Join(folder, "sender.db"))
	if err != nil {
		return nil, err
	}
	store, err := sqlite.New(db, nil)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	if p.sys, err = surehook.NewSender(store, sender.SealingKey{ID: "1", Key: make([]byte, 32)}, &p.send); err != nil {
		return nil, err
	}
	owner, secret, err := p.sys.Registry.CreateSubscriber(ctx, sender.NewSubscriber{})
	if err != nil {
		return nil, err
	}
	p.owner = owner.ID
	if db, err = p.open(filepath.Join(folder, "receiver.db")); err != nil {
		return nil, err
	}
	if err := dedup.Migrate(ctx, db); err != nil {
		return nil, err
	}
	receive := p.receive
	receive.Logger = quiet
	hooks, err := surehook.NewReceiver(receiver.SQL(db, nil), dedup.New(), "cost", secret.Reveal(), &surehook.ReceiverConfig{Receive: receive})
	if err != nil {
		return nil, err
	}
	server := httptest.NewServer(hooks.Handler(receiver.State(func(context.Context, *sql.Tx, receiver.Event) error {
		p.applied.Add(1)
		return nil
	})))
	p.closers = append(p.closers, server.Close)
	_, err = p.sys.Registry.Subscribe(ctx, sender.NewSubscription{Subscriber: owner.ID, URL: server.URL})
	return p, err
}

// observe gives both sides the hooks of a kind.
func (p *path) observe(k kind) error {
	var publish []sender.PublishHooks
	var attempts []dispatch.Hooks
	var received []receiver.Hooks
	if k.prometheus {
		sending, err := senderprom.New(&senderprom.Config{EventTypes: []string{"order.paid"}})
		if err != nil {
			return err
		}
		receiving := receiverprom.New()
		p.registry.MustRegister(sending, receiving)
		publish, attempts, received = append(publish, sending.PublishHooks()), append(attempts, sending.Hooks()), append(received, receiving.Hooks())
	}
	if k.otel {
		p.tracer = sdktrace.NewTracerProvider(sdktrace.WithBatcher(discarded{}), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(k.sampled))))
		p.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		p.closers = append(p.closers, func() { _ = p.tracer.Shutdown(context.Background()) })
		sending, err := senderotel.New(&senderotel.Config{TracerProvider: p.tracer, MeterProvider: p.meter})
		if err != nil {
			return err
		}
		receiving, err := receiverotel.New(&receiverotel.Config{TracerProvider: p.tracer, MeterProvider: p.meter})
		if err != nil {
			return err
		}
		publish, attempts, received = append(publish, sending.PublishHooks()), append(attempts, sending.Hooks()), append(received, receiving.Hooks())
		p.send.Traceparent, p.send.Dispatch.Traceparent = sending.PublishTraceparent, sending.AttemptTraceparent
	}
	p.send.PublishHooks, p.send.Dispatch.Hooks, p.receive.Hooks = sender.JoinPublishHooks(publish...), dispatch.JoinHooks(attempts...), receiver.JoinHooks(received...)
	return nil
}

func (p *path) open(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err == nil {
		p.closers = append(p.closers, func() { db.Close() })
	}
	return db, err
}

func (p *path) close() {
	for _, f := range p.closers {
		f()
	}
}

// deliver publishes events, ten in a transaction, while the dispatcher runs, and returns
// once all of them are delivered. Metrics are scraped each second.
func (p *path) deliver(ctx context.Context, events int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.sys.Run(running) }()
	scraped := time.Now()
	for n := 0; n < events; n += 10 {
		batch := make([]sender.Event, min(10, events-n))
		for i := range batch {
			batch[i] = sender.Event{Type: "order.paid", Object: sender.Object{Type: "order", ID: fmt.Sprint(n + i)}, Subscriber: p.owner, Data: map[string]int{"amount": n}}
		}
		if _, err := p.sys.PublishMany(ctx, batch); err != nil {
			stop()
			return errors.Join(err, <-ended)
		}
	}
	for p.applied.Load() < int64(events) && ctx.Err() == nil {
		if time.Since(scraped) > time.Second {
			scraped = time.Now()
			if _, err := p.registry.Gather(); err != nil {
				stop()
				return errors.Join(err, <-ended)
			}
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	return errors.Join(ctx.Err(), <-ended)
}
