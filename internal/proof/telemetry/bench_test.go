package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receiverotel"
	"github.com/surehook/surehook/receiver/receiverprom"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/senderotel"
	"github.com/surehook/surehook/sender/senderprom"
)

// BenchmarkHooks calls all that the hooks do for one delivery: at the publish, the attempt
// and its recording, and at the receiver.
func BenchmarkHooks(b *testing.B) {
	b.Run("Prometheus", func(b *testing.B) {
		sending, err := senderprom.New(nil)
		if err != nil {
			b.Fatal(err)
		}
		delivered(b, sending.PublishHooks(), sending.Hooks(), receiverprom.New().Hooks(), nil)
	})
	for name, share := range map[string]float64{"OpenTelemetry, none sampled": 0, "OpenTelemetry, 5 % sampled": 0.05, "OpenTelemetry, all sampled": 1} {
		b.Run(name, func(b *testing.B) {
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.TraceIDRatioBased(share)))
			meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
			sending, err := senderotel.New(&senderotel.Config{TracerProvider: tracer, MeterProvider: meter})
			if err != nil {
				b.Fatal(err)
			}
			receiving, err := receiverotel.New(&receiverotel.Config{TracerProvider: tracer, MeterProvider: meter})
			if err != nil {
				b.Fatal(err)
			}
			delivered(b, sending.PublishHooks(), sending.Hooks(), receiving.Hooks(), sending.AttemptTraceparent)
		})
	}
}

// BenchmarkBare makes the calls of OpenTelemetry that BenchmarkHooks makes, and nothing else:
// three spans and eight measurements with attributes that are made before. So it is the least
// that BenchmarkHooks can cost where no span is sampled.
func BenchmarkBare(b *testing.B) {
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("bare")
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("bare")
	var counters [3]api.Int64Counter
	var histograms [5]api.Float64Histogram
	var errs []error
	for i := range counters {
		c, err := meter.Int64Counter(fmt.Sprint("c", i))
		counters[i], errs = c, append(errs, err)
	}
	for i := range histograms {
		h, err := meter.Float64Histogram(fmt.Sprint("h", i))
		histograms[i], errs = h, append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	kind := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	of := api.WithAttributeSet(attribute.NewSet(attribute.String("surehook.lane", "proven")))
	add, record := []api.AddOption{of}, []api.RecordOption{of}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		for range 3 {
			_, span := tracer.Start(ctx, "send order.paid", kind...)
			span.End()
		}
		for _, c := range counters {
			c.Add(ctx, 1, add...)
		}
		for _, h := range histograms {
			h.Record(ctx, .001, record...)
		}
	}
}

func delivered(b *testing.B, p sender.PublishHooks, d dispatch.Hooks, r receiver.Hooks, trace func(context.Context, *dispatch.Claimed) string) {
	d, r = dispatch.JoinHooks(dispatch.Hooks{
		AttemptStart: func(ctx context.Context, _ *dispatch.Claimed) context.Context { return ctx },
		AttemptEnd:   func(context.Context, *dispatch.Claimed, *dispatch.Result) {},
	}, d), receiver.JoinHooks(receiver.Hooks{Verified: func(context.Context, receiver.Event) {}}, r)
	p = sender.JoinPublishHooks(sender.PublishHooks{PublishStart: func(ctx context.Context, _ []sender.Event) context.Context { return ctx }}, p)
	events := []sender.Event{{Type: "order.paid", Object: sender.Object{Type: "order", ID: "1"}}}
	published := sender.Published{Events: events, Refs: []sender.Ref{{ID: "evt_1", Version: 1}}, Duration: time.Millisecond}
	claimed := dispatch.Claimed{
		Number: 1, Body: make([]byte, 800), Target: &dispatch.Target{Subscription: "wsub_1", Subscriber: "sub_1", URL: "https://example.com/hooks?token=x", Lane: sender.LaneProven},
		Event: sender.EventInfo{ID: "evt_1", Type: "order.paid", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	}
	result := dispatch.Result{Number: 1, StatusCode: 200, StartedAt: time.Now(), Published: time.Now(), Duration: time.Millisecond}
	recorded := dispatch.Recorded{Outcome: dispatch.Outcome{Decision: dispatch.Decision{Status: sender.StatusDelivered}}, Target: claimed.Target, Event: claimed.Event, Result: result}
	header := http.Header{"Traceparent": {claimed.Event.Traceparent}}
	received := receiver.Event{ID: "evt_1", Type: "order.paid", Attempt: 1}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		p.PublishEnd(p.PublishStart(ctx, events), &published)
		attempt := d.AttemptStart(ctx, &claimed)
		if trace != nil {
			trace(attempt, &claimed)
		}
		d.AttemptEnd(attempt, &claimed, &result)
		d.Recorded(ctx, &recorded)
		request := r.Start(ctx, header)
		r.Verified(request, received)
		r.Applied(request, received)
	}
}
