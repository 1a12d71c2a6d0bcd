// Package telemetry proves what the modules for Prometheus and OpenTelemetry promise, with
// both sides at work. It checks which spans there are and how they are linked, and that
// nothing secret is in a metric or a span. The dashboard, the alerts and the documentation
// must name no metric that there is not. The program cost measures what it all costs.
//
// It is a module of its own, so that OpenTelemetry's SDK and the parser of PromQL are in the
// way of nobody who imports the others.
package telemetry
