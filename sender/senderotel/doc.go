// Package senderotel tells OpenTelemetry what the sending side does: spans of publishes and
// attempts, and the figures that package senderprom shows to Prometheus.
//
//	telemetry, err := senderotel.New(nil) // the global providers
//	sys, err := surehook.NewSender(store, key, &surehook.SenderConfig{
//		PublishHooks: telemetry.PublishHooks(),
//		Traceparent:  telemetry.PublishTraceparent,
//		Dispatch: dispatch.Config{
//			Hooks:       telemetry.Hooks(),
//			Traceparent: telemetry.AttemptTraceparent, // only if receivers may learn of your traces
//		},
//	})
//	totals, err := telemetry.ObserveTotals(sys.History)
//
// A publish is a span of the kind producer in the caller's trace. Its context is stored
// with the event. Each attempt is a trace of its own, whose one span, of the kind client,
// links to the publish. Retries go on for days, and a trace that never ends is of no use.
// Names and attributes follow the semantic conventions of OpenTelemetry for messaging and
// HTTP, except that url.full is never set, because customers put secrets into URLs. No
// span has a header, a body or the text of an error.
//
// It is a module of its own, and needs no more than OpenTelemetry's API.
package senderotel
