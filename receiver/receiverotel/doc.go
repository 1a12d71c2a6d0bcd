// Package receiverotel tells OpenTelemetry what becomes of received events: a span for each
// request, and counts by result and reason.
//
//	telemetry, err := receiverotel.New(nil) // the global providers
//	hooks, err := surehook.NewReceiver(transactions, store, scope, secret, &surehook.ReceiverConfig{
//		Receive: receiver.Config{Hooks: telemetry.Hooks()},
//	})
//
// The span has the kind consumer and stands in the trace of the request's context. It
// links to the sender's attempt, if the request has a header traceparent. The header is a
// stranger's: it is not signed, and everybody can send one. So it decides neither the
// trace nor whether it is sampled, unless Config.TrustSender says so. tracestate and
// baggage are never read. Until the signature is verified nothing of the request is in the
// span but the link; afterwards the event's id and type are. An event that was not posted,
// such as one of an inbox or of catch-up, has a span of its own when it is applied. No
// span has a header, a body or the text of an error.
//
// It is a module of its own, and needs no more than OpenTelemetry's API.
package receiverotel
