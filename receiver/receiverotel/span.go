package receiverotel

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/surehook/surehook/receiver"
)

// The attributes of the semantic conventions for messaging, and our own.
var (
	system        = attribute.String("messaging.system", "surehook")
	operationName = attribute.Key("messaging.operation.name")
	operationType = attribute.Key("messaging.operation.type")
	destination   = attribute.Key("messaging.destination.name")
	messageID     = attribute.Key("messaging.message.id")
	bodySize      = attribute.Key("messaging.message.body.size")
	errorType     = attribute.Key("error.type")
	attemptNumber = attribute.Key("surehook.attempt")
	resultKey     = attribute.Key("surehook.result")
)

// attempt is the span context that the header traceparent gives; invalid if there is none,
// or more than one. No state comes with it.
func attempt(header http.Header) trace.SpanContext {
	given := header["Traceparent"]
	if len(given) != 1 || len(given[0]) > 64 {
		return trace.SpanContext{}
	}
	if sc, ok := plain(given[0]); ok {
		return sc
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": given[0]})
	return trace.SpanContextFromContext(ctx)
}

// plain reads the usual form: version 00, with no flag except the one for a sampled trace.
// The propagator reads the others: it needs a map and contexts, which cost more than the
// span.
func plain(given string) (sc trace.SpanContext, ok bool) {
	if len(given) != 55 || given[:3] != "00-" || given[35] != '-' || given[52:54] != "-0" || given[54] != '0' && given[54] != '1' {
		return sc, false
	}
	c := trace.SpanContextConfig{TraceFlags: trace.TraceFlags(given[54] - '0'), Remote: true}
	var err error
	if c.TraceID, err = trace.TraceIDFromHex(given[3:35]); err != nil {
		return sc, false
	}
	if c.SpanID, err = trace.SpanIDFromHex(given[36:52]); err != nil {
		return sc, false
	}
	return trace.NewSpanContext(c), true
}

// describe puts what an event says of itself into the span, once: when its signature was
// verified, or, if it was not posted, with its end.
func describe(ctx context.Context, ev receiver.Event) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok || r.described || !r.span.IsRecording() {
		return
	}
	r.described = true
	r.span.SetName("process " + ev.Type)
	r.span.SetAttributes(destination.String(ev.Type), messageID.String(ev.ID), bodySize.Int(len(ev.Body)))
	if ev.Attempt > 0 {
		r.span.SetAttributes(attemptNumber.Int(ev.Attempt))
	}
}

func finish(span trace.Span, result string, reason receiver.Reason) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(resultKey.String(result))
	if reason != "" {
		span.SetAttributes(errorType.String(string(reason)))
		span.SetStatus(codes.Error, "")
	}
}
