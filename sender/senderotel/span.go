package senderotel

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// The attributes of the semantic conventions for messaging and HTTP, and our own.
var (
	system        = attribute.String("messaging.system", "surehook")
	operationName = attribute.Key("messaging.operation.name")
	operationType = attribute.Key("messaging.operation.type")
	destination   = attribute.Key("messaging.destination.name")
	subscription  = attribute.Key("messaging.destination.subscription.name")
	messageID     = attribute.Key("messaging.message.id")
	bodySize      = attribute.Key("messaging.message.body.size")
	batchCount    = attribute.Key("messaging.batch.message_count")
	httpPost      = attribute.String("http.request.method", "POST")
	httpStatus    = attribute.Key("http.response.status_code")
	serverAddress = attribute.Key("server.address")
	serverPort    = attribute.Key("server.port")
	errorType     = attribute.Key("error.type")
	attemptNumber = attribute.Key("surehook.attempt")
	subscriberID  = attribute.Key("surehook.subscriber")
	laneKey       = attribute.Key("surehook.lane")
	duplicate     = attribute.Key("surehook.duplicate")
	droppedEvent  = attribute.Key("surehook.dropped")
)

// start is what the spans have in common with which something begins that is about one
// event type.
type start struct {
	name string
	// options are without room for more: whoever appends copies them. A sampler sees the
	// attributes there. OpenTelemetry copies them for each span, sampled or not, so that all
	// others are set on recorded spans alone.
	options []trace.SpanStartOption
	// recorded are the other attributes that do not change, likewise without room.
	recorded []attribute.KeyValue
}

func startOf(kind trace.SpanKind, name, eventType string, recorded ...attribute.KeyValue) *start {
	seen := []attribute.KeyValue{system}
	if eventType != "" {
		name, seen = name+" "+eventType, append(seen, destination.String(eventType))
	}
	return &start{name, slices.Clip([]trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(seen...)}), slices.Clip(recorded)}
}

func publishOf(eventType string) *start {
	return startOf(trace.SpanKindProducer, "publish", eventType, operationName.String("publish"), operationType.String("create"))
}

func sendOf(eventType string) *start {
	return startOf(trace.SpanKindClient, "send", eventType, operationName.String("send"), operationType.String("send"), httpPost)
}

// publishStart begins the span of a publish in the caller's trace.
func (t *Telemetry) publishStart(ctx context.Context, events []sender.Event) context.Context {
	s := t.publishes.of(onlyType(events), publishOf)
	ctx, span := t.tracer.Start(ctx, s.name, s.options...)
	if span.IsRecording() {
		span.SetAttributes(s.recorded...)
		if len(events) > 1 {
			span.SetAttributes(batchCount.Int(len(events)))
		}
	}
	return ctx
}

// onlyType is the type of all events, if they have one in common that is valid.
func onlyType(events []sender.Event) string {
	for i := range events {
		if events[i].Type != events[0].Type || !valid(events[i].Type) {
			return ""
		}
	}
	return events[0].Type
}

// valid tells whether a type can be a name. The events are not validated yet, and a
// caller's mistake may have put anything there.
func valid(eventType string) bool {
	for i := range len(eventType) {
		if c := eventType[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return eventType != "" && len(eventType) <= 128
}

func publishEnd(ctx context.Context, p *sender.Published) {
	span := trace.SpanFromContext(ctx)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if p.Err != nil {
		span.SetAttributes(errorType.String(publishError(p.Err)))
		span.SetStatus(codes.Error, "")
		return
	}
	if len(p.Refs) == 1 {
		ref := p.Refs[0]
		switch {
		case ref.Dropped:
			span.SetAttributes(droppedEvent.Bool(true))
		case ref.Duplicate:
			span.SetAttributes(messageID.String(ref.ID), duplicate.Bool(true))
		default:
			span.SetAttributes(messageID.String(ref.ID))
		}
	}
}

// publishError is an error's kind. Its text may name what a customer chose.
func publishError(err error) string {
	var version *sender.VersionError
	switch {
	case errors.Is(err, sender.ErrInvalidEvent):
		return "invalid_event"
	case errors.As(err, &version):
		return "version"
	case errors.Is(err, sender.ErrIdempotencyKey):
		return "idempotency_key"
	case errors.Is(err, sender.ErrNotFound):
		return "not_found"
	case errors.Is(err, sender.ErrRetryTx):
		return "retry_tx"
	case errors.Is(err, sender.ErrUnfit):
		return "unfit"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "context"
	}
	return "database"
}

// attemptStart begins the span of an attempt: the root of a trace, which links to the
// publish.
func (t *Telemetry) attemptStart(ctx context.Context, c *dispatch.Claimed) context.Context {
	s := t.sends.of(c.Event.Type, sendOf)
	options := s.options
	publish := parse(c.Event.Traceparent)
	if publish.IsSampled() { // a sampler sees a link to what was sampled
		options = append(options, trace.WithLinks(trace.Link{SpanContext: publish}))
	}
	if trace.SpanContextFromContext(ctx).IsValid() { // of whoever has begun Run
		options = append(options, trace.WithNewRoot())
	}
	ctx, span := t.tracer.Start(ctx, s.name, options...)
	if !span.IsRecording() {
		return ctx
	}
	if publish.IsValid() && !publish.IsSampled() {
		span.AddLink(trace.Link{SpanContext: publish})
	}
	attrs := append(make([]attribute.KeyValue, 0, 12), s.recorded...)
	attrs = append(attrs, messageID.String(c.Event.ID), attemptNumber.Int(c.Number), bodySize.Int(len(c.Body)))
	if c.Target != nil {
		attrs = append(attrs, subscription.String(c.Target.Subscription), subscriberID.String(c.Target.Subscriber), laneKey.String(laneOf(c.Target.Lane)))
		attrs = append(attrs, server(c)...)
	}
	span.SetAttributes(attrs...)
	return ctx
}

// server is the host of the URL and its port, and nothing else of the URL.
func server(c *dispatch.Claimed) []attribute.KeyValue {
	text := c.Target.URL
	if c.Event.URL != "" {
		text = c.Event.URL
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	port := 443
	if given, err := strconv.Atoi(u.Port()); err == nil {
		port = given
	} else if u.Scheme == "http" {
		port = 80
	}
	return []attribute.KeyValue{serverAddress.String(u.Hostname()), serverPort.Int(port)}
}

func attemptEnd(ctx context.Context, _ *dispatch.Claimed, r *dispatch.Result) {
	span := trace.SpanFromContext(ctx)
	defer span.End()
	if !span.IsRecording() {
		return
	}
	if r.StatusCode != 0 {
		span.SetAttributes(httpStatus.Int(r.StatusCode))
	}
	if r.Class != sender.ClassNone {
		span.SetAttributes(errorType.String(string(r.Class)))
		span.SetStatus(codes.Error, "")
	}
}
