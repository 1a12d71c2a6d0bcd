package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/surehook/surehook"
	dedup "github.com/surehook/surehook/dedup/memory"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receiverotel"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/signing"
)

func order(id string) sender.Event {
	return sender.Event{Type: "order.paid", Object: sender.Object{Type: "order", ID: id}, Data: map[string]string{"id": id}}
}

// A publish is in the caller's trace, its attempt links to it, and the receiver's span links
// to the attempt, or is its child where the receiver trusts the sender.
func TestSpans(t *testing.T) {
	for name, s := range map[string]settings{
		"nothing is sent": {}, "linked": {sends: true}, "trusted": {sends: true, trusts: true}, "trusted, and nothing is sent": {trusts: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t, s)
			p.subscribe(t, "", nil)
			ref := p.publish(t, order("1"))
			caller, publish, attempt, receive := p.span(t, "checkout"), p.span(t, "publish order.paid"), p.span(t, "send order.paid"), p.span(t, "process order.paid")

			require.Equal(t, trace.SpanKindProducer, publish.SpanKind())
			require.Equal(t, caller.SpanContext().SpanID(), publish.Parent().SpanID())
			has(t, publish, "messaging.system", "surehook", "messaging.operation.name", "publish", "messaging.operation.type", "create", "messaging.destination.name", "order.paid", "messaging.message.id", ref.ID)

			require.Equal(t, trace.SpanKindClient, attempt.SpanKind())
			require.False(t, attempt.Parent().IsValid(), "a trace of its own")
			require.Equal(t, []trace.SpanID{publish.SpanContext().SpanID()}, linked(attempt))
			require.Equal(t, publish.SpanContext().TraceID(), attempt.Links()[0].SpanContext.TraceID())
			has(t, attempt, "messaging.operation.type", "send", "messaging.message.id", ref.ID, "http.request.method", "POST", "http.response.status_code", int64(200), "server.address", "127.0.0.1", "surehook.attempt", int64(1), "surehook.lane", "new")

			require.Equal(t, trace.SpanKindConsumer, receive.SpanKind())
			has(t, receive, "messaging.operation.type", "process", "messaging.message.id", ref.ID, "surehook.result", "applied", "surehook.attempt", int64(1))
			sent := p.header.Load().Values("Traceparent")
			switch {
			case !s.sends:
				require.Empty(t, sent)
				require.Empty(t, linked(receive))
				require.False(t, receive.Parent().IsValid())
			case s.trusts:
				require.Equal(t, attempt.SpanContext().SpanID(), receive.Parent().SpanID())
				require.Equal(t, attempt.SpanContext().TraceID(), receive.SpanContext().TraceID())
			default:
				require.Len(t, sent, 1)
				require.Equal(t, []trace.SpanID{attempt.SpanContext().SpanID()}, linked(receive))
				require.False(t, receive.Parent().IsValid())
			}
			for _, never := range []string{"Tracestate", "Baggage"} {
				require.Empty(t, p.header.Load().Values(never))
			}
		})
	}
}

// An event that was not posted, such as one of an inbox or of catch-up, has a span that names
// it, too, whether it was applied or not.
func TestSpansOfEventsThatWereNotPosted(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	telemetry, err := receiverotel.New(&receiverotel.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))})
	require.NoError(t, err)
	store := dedup.New()
	hooks, err := surehook.NewReceiver(store.InTx, store, "shop", signing.GenerateSecret().Reveal(), &surehook.ReceiverConfig{
		Receive: receiver.Config{Hooks: telemetry.Hooks(), Logger: slog.New(slog.DiscardHandler)},
	})
	require.NoError(t, err)
	event := receiver.Trusted[*dedup.Tx]{Body: []byte(`{"id":"evt_1","type":"order.paid","object":{"type":"order","id":"1"},"version":1}`)}
	for _, c := range []struct {
		fails  error
		result string
	}{{errors.New("it cannot be applied now"), "failed"}, {nil, "applied"}} {
		_, err := hooks.Apply(t.Context(), event, receiver.Fact(func(context.Context, *dedup.Tx, receiver.Event) error { return c.fails }))
		require.ErrorIs(t, err, c.fails)
		ended := spans.Ended()
		span := ended[len(ended)-1]
		require.Equal(t, "process order.paid", span.Name())
		has(t, span, "messaging.message.id", "evt_1", "messaging.destination.name", "order.paid", "surehook.result", c.result)
	}
	require.Len(t, spans.Ended(), 2)
}

// A failure says how, by a word of the library's, and without a text.
func TestFailedSpans(t *testing.T) {
	p := newPath(t, settings{sends: true})
	p.subscribe(t, "", nil)
	p.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusTeapot)
		return true
	}
	p.publish(t, order("1"))
	attempt := p.span(t, "send order.paid")
	require.Equal(t, sdktrace.Status{Code: codes.Error}, attempt.Status())
	has(t, attempt, "error.type", "status", "http.response.status_code", int64(418))

	_, err := p.sys.Publish(t.Context(), sender.Event{Type: "not a type"})
	require.Error(t, err)
	refused := p.span(t, "publish")
	require.Equal(t, sdktrace.Status{Code: codes.Error}, refused.Status())
	has(t, refused, "error.type", "invalid_event")

	p.answer = nil
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header["Traceparent"] = []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"}
	res, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	res.Body.Close()
	rejected := p.span(t, "process")
	require.Equal(t, sdktrace.Status{Code: codes.Error}, rejected.Status())
	require.Empty(t, rejected.Links(), "of two headers none is taken")
	has(t, rejected, "error.type", "header", "surehook.result", "rejected")
}

// A stranger's header never decides the trace, nor whether it is sampled, and no state of
// it is kept.
func TestStrangersHeader(t *testing.T) {
	p := newPath(t, settings{})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	request.Header.Set("Tracestate", "vendor=stranger")
	request.Header.Set("Baggage", "who=stranger")
	res, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	res.Body.Close()
	span := p.span(t, "process")
	require.NotEqual(t, "4bf92f3577b34da6a3ce929d0e0e4736", span.SpanContext().TraceID().String())
	require.Len(t, span.Links(), 1)
	require.Empty(t, span.Links()[0].SpanContext.TraceState().String())
}

// Spans link to others that are not sampled, too: their traces may be recorded elsewhere, and
// their ids stand in logs.
func TestLinksToWhatIsNotSampled(t *testing.T) {
	p := newPath(t, settings{})
	p.subscribe(t, "", nil)
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true})
	_, err := p.sys.Publish(trace.ContextWithRemoteSpanContext(t.Context(), caller), order("1"))
	require.NoError(t, err)
	_, err = p.sys.Dispatcher.RunOnce(t.Context())
	require.NoError(t, err)
	links := p.span(t, "send order.paid").Links()
	require.Len(t, links, 1)
	require.Equal(t, caller.TraceID(), links[0].SpanContext.TraceID())
	require.False(t, links[0].SpanContext.IsSampled())

	for header, sampled := range map[string]bool{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00": false, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03": true,
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more": true,
	} {
		p := newPath(t, settings{})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Traceparent", header)
		res, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		res.Body.Close()
		links := p.span(t, "process").Links()
		require.Len(t, links, 1, header)
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", links[0].SpanContext.TraceID().String()+"-"+links[0].SpanContext.SpanID().String(), header)
		require.Equal(t, sampled, links[0].SpanContext.IsSampled(), header)
	}
}

func linked(s sdktrace.ReadOnlySpan) (ids []trace.SpanID) {
	for _, l := range s.Links() {
		ids = append(ids, l.SpanContext.SpanID())
	}
	return ids
}

// has ends the test unless the span has these attributes, by name and value.
func has(t *testing.T, s sdktrace.ReadOnlySpan, pairs ...any) {
	t.Helper()
	found := map[attribute.Key]any{}
	for _, a := range s.Attributes() {
		found[a.Key] = a.Value.AsInterface()
	}
	for i := 0; i < len(pairs); i += 2 {
		require.Equal(t, pairs[i+1], found[attribute.Key(pairs[i].(string))], "%s of %q: %v", pairs[i], s.Name(), found)
	}
}
