package senderotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const scope = "github.com/surehook/surehook/sender/senderotel"

// Config adjusts a Telemetry. A nil config and zero fields mean the defaults.
type Config struct {
	// TracerProvider makes the spans. The default is otel.GetTracerProvider().
	TracerProvider trace.TracerProvider

	// MeterProvider makes the instruments. The default is otel.GetMeterProvider().
	MeterProvider metric.MeterProvider
}

// Telemetry makes spans and measurements from hooks. It is safe for concurrent use.
type Telemetry struct {
	tracer trace.Tracer
	meter  metric.Meter
	m      *instruments

	publishes, sends remembered[string, *start] // by event type
}

// New returns a Telemetry. Give its Hooks to the dispatcher, and its PublishHooks and
// PublishTraceparent to the publisher. The error is the meter provider's, of an instrument
// that it refuses.
func New(cfg *Config) (*Telemetry, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{tracer: c.TracerProvider.Tracer(scope), meter: c.MeterProvider.Meter(scope)}
	var err error
	t.m, err = newInstruments(t.meter)
	return t, err
}

// PublishHooks are for sender.PublisherConfig. sender.JoinPublishHooks joins them with
// others.
func (t *Telemetry) PublishHooks() sender.PublishHooks {
	return sender.PublishHooks{
		PublishStart: t.publishStart,
		PublishEnd: func(ctx context.Context, p *sender.Published) {
			publishEnd(ctx, p)
			t.m.published(ctx, p)
		},
	}
}

// Hooks are for dispatch.Config. dispatch.JoinHooks joins them with others.
func (t *Telemetry) Hooks() dispatch.Hooks {
	h := t.m.hooks()
	h.AttemptStart, h.AttemptEnd = t.attemptStart, attemptEnd
	return h
}
