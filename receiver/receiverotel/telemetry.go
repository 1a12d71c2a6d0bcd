package receiverotel

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/surehook/surehook/receiver"
)

const scope = "github.com/surehook/surehook/receiver/receiverotel"

// Config adjusts a Telemetry. A nil config and zero fields mean the defaults.
type Config struct {
	// TracerProvider makes the spans. The default is otel.GetTracerProvider().
	TracerProvider trace.TracerProvider

	// MeterProvider makes the instruments. The default is otel.GetMeterProvider().
	MeterProvider metric.MeterProvider

	// TrustSender makes the span a child of the sender's attempt, with a link to the span of
	// the request's context, if there is one. The sender then decides the trace's id and
	// whether it is sampled. It is for senders of your own, behind something that lets
	// nobody else in: the header is read before the signature is verified.
	TrustSender bool
}

// Telemetry makes spans and measurements from hooks. It is safe for concurrent use.
type Telemetry struct {
	tracer  trace.Tracer
	trusts  bool
	results metric.Int64Counter
	seconds metric.Float64Histogram
	ends    sync.Map // *ended by end
}

// New returns a Telemetry. Give its Hooks to the receiver. The error is the meter provider's,
// of an instrument that it refuses.
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
	t := &Telemetry{tracer: c.TracerProvider.Tracer(scope), trusts: c.TrustSender}
	meter := c.MeterProvider.Meter(scope)
	var errs [2]error
	t.results, errs[0] = meter.Int64Counter("surehook.received.events", metric.WithUnit("{event}"),
		metric.WithDescription("Requests and events, by what became of them, and by the reason if they were not taken."))
	t.seconds, errs[1] = meter.Float64Histogram("surehook.receive.duration", metric.WithUnit("s"),
		metric.WithDescription("From the beginning of a request to its result, the commit included."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30))
	return t, errors.Join(errs[:]...)
}

// Hooks are for receiver.Config. receiver.JoinHooks joins them with others.
func (t *Telemetry) Hooks() receiver.Hooks {
	taken := func(result string) func(context.Context, receiver.Event) {
		as := endOf(end{result: result})
		return func(ctx context.Context, ev receiver.Event) {
			describe(ctx, ev)
			t.ended(ctx, as)
		}
	}
	dead := taken(string(receiver.DeadLettered))
	return receiver.Hooks{
		Start:        t.start,
		Verified:     describe,
		Applied:      taken(string(receiver.Applied)),
		Duplicate:    taken(string(receiver.Duplicate)),
		Stale:        taken(string(receiver.Stale)),
		Reapplied:    taken(string(receiver.Reapplied)),
		Ignored:      taken(string(receiver.Ignored)),
		Recorded:     taken(string(receiver.Recorded)),
		Challenged:   taken("challenged"),
		DeadLettered: func(ctx context.Context, ev receiver.Event, _ error) { dead(ctx, ev) },
		Rejected:     func(ctx context.Context, err *receiver.Error) { t.ended(ctx, t.endOf("rejected", err.Reason)) },
		Failed: func(ctx context.Context, ev receiver.Event, err *receiver.Error) {
			describe(ctx, ev)
			t.ended(ctx, t.endOf("failed", err.Reason))
		},
	}
}

type requestKey struct{}

// request is what Start knows of it, or of an event that was not posted.
type request struct {
	began     time.Time
	span      trace.Span
	described bool
}

// startOptions are those of all spans, without room for more: whoever appends copies them.
// A sampler sees the attributes there. OpenTelemetry copies them for each span, sampled or
// not, so that all others are set on recorded spans alone.
var startOptions = slices.Clip([]trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(system)})

func (t *Telemetry) start(ctx context.Context, header http.Header) context.Context {
	began, sender, options := time.Now(), attempt(header), startOptions
	other := sender
	if t.trusts && sender.IsValid() {
		other = trace.SpanContextFromContext(ctx)
		ctx = trace.ContextWithRemoteSpanContext(ctx, sender)
	}
	if other.IsSampled() { // a sampler sees a link to what was sampled
		options = append(options, trace.WithLinks(trace.Link{SpanContext: other}))
	}
	ctx, span := t.tracer.Start(ctx, "process", options...)
	if span.IsRecording() {
		span.SetAttributes(operationName.String("process"), operationType.String("process"))
		if other.IsValid() && !other.IsSampled() {
			span.AddLink(trace.Link{SpanContext: other})
		}
	}
	return context.WithValue(ctx, requestKey{}, &request{began: began, span: span})
}

// end is how a request ended.
type end struct {
	result string
	reason receiver.Reason
}

// ended is an end with the options of its measurements, which are dear to make.
type ended struct {
	end
	add    []metric.AddOption
	record []metric.RecordOption
}

func endOf(e end) *ended {
	attrs := []attribute.KeyValue{resultKey.String(e.result)}
	if e.reason != "" {
		attrs = append(attrs, errorType.String(string(e.reason)))
	}
	of := metric.WithAttributeSet(attribute.NewSet(attrs...))
	return &ended{e, []metric.AddOption{of}, []metric.RecordOption{of}}
}

// endOf is remembered: there are as many as reasons.
func (t *Telemetry) endOf(result string, reason receiver.Reason) *ended {
	e := end{result, reason}
	if found, ok := t.ends.Load(e); ok {
		return found.(*ended)
	}
	made := endOf(e)
	t.ends.Store(e, made)
	return made
}

// ended counts a result and ends the span, unless a hook beside ours has lost the context of
// Start.
func (t *Telemetry) ended(ctx context.Context, as *ended) {
	t.results.Add(ctx, 1, as.add...)
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		t.seconds.Record(ctx, time.Since(r.began).Seconds(), as.record...)
		finish(r.span, as.result, as.reason)
	}
}
