package senderotel

import (
	"context"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/surehook/surehook/sender/dispatch"
)

// PublishTraceparent is for sender.PublisherConfig.Traceparent: the context of the span that
// ctx has, which is the publish's where PublishHooks are given. It is "" without a span.
func (t *Telemetry) PublishTraceparent(ctx context.Context) string {
	return format(trace.SpanContextFromContext(ctx))
}

// AttemptTraceparent is for dispatch.Config.Traceparent: the context of the attempt's span,
// or else the one that the event was published with.
func (t *Telemetry) AttemptTraceparent(ctx context.Context, c *dispatch.Claimed) string {
	if own := format(trace.SpanContextFromContext(ctx)); own != "" {
		return own
	}
	return c.Event.Traceparent
}

// format leaves out the trace's state, and all flags except the one for a sampled trace.
func format(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	traceID, spanID, flags := sc.TraceID(), sc.SpanID(), "-00"
	if sc.IsSampled() {
		flags = "-01"
	}
	var room [55]byte
	b := hex.AppendEncode(append(room[:0], "00-"...), traceID[:])
	b = hex.AppendEncode(append(b, '-'), spanID[:])
	return string(append(b, flags...))
}

// parse reads what a store has kept, whose form the publisher has checked. It is invalid if
// there is none.
func parse(traceparent string) (sc trace.SpanContext) {
	if len(traceparent) != 55 {
		return sc
	}
	traceID, err := trace.TraceIDFromHex(traceparent[3:35])
	if err != nil {
		return sc
	}
	spanID, err := trace.SpanIDFromHex(traceparent[36:52])
	if err != nil {
		return sc
	}
	c := trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, Remote: true}
	if strings.IndexByte("13579bdf", traceparent[54]) >= 0 {
		c.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(c)
}
