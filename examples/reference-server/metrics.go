package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
)

// metrics are the values that Prometheus scrapes. Each process counts its own acts.
// Totals are read from the database, so they are the same in every process.
type metrics struct {
	registry     *prometheus.Registry
	published    prometheus.Counter
	attempts     *prometheus.CounterVec
	firstAttempt prometheus.Histogram
	success      prometheus.Histogram
	requests     prometheus.Gauge
}

// latencyBuckets reach from an attempt at once to the horizon, in seconds.
var latencyBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600}

func newMetrics(history *history.History, log *slog.Logger) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "surehook_published_events_total", Help: "Events that were committed, and whose deliveries were made here.",
		}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "surehook_attempts_total", Help: "Attempts that were recorded here, by what became of the delivery and by how they failed: none, if they succeeded.",
		}, []string{"outcome", "error_class"}),
		firstAttempt: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "surehook_first_attempt_seconds", Help: "From publishing an event to the beginning of a delivery's first attempt.", Buckets: latencyBuckets,
		}),
		success: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "surehook_delivered_seconds", Help: "From publishing an event to the end of the attempt that delivered it.", Buckets: latencyBuckets,
		}),
		requests: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "surehook_http_requests_in_flight", Help: "Requests that are being answered here; those that are held open are among them.",
		}),
	}
	m.registry.MustRegister(m.published, m.attempts, m.firstAttempt, m.success, m.requests, &counts{history, log},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) hooks() dispatch.Hooks {
	return dispatch.Hooks{
		Expanded: func(_ context.Context, x dispatch.Expanded) { m.published.Add(float64(x.Events)) },
		Recorded: func(_ context.Context, r *dispatch.Recorded) { m.attempt(r) },
	}
}

// attempt counts an attempt that was recorded. An attempt whose lease was lost is counted
// by the process that has found it interrupted.
func (m *metrics) attempt(r *dispatch.Recorded) {
	if r.Lost {
		return
	}
	a := &r.Result
	// To Prometheus an empty label is one that is not there.
	m.attempts.WithLabelValues(string(r.Decision.Status), cmp.Or(string(a.Class), "none")).Inc()
	if a.Published.IsZero() {
		return
	}
	if a.Number == 1 {
		m.firstAttempt.Observe(a.StartedAt.Sub(a.Published).Seconds())
	}
	if a.Class == sender.ClassNone {
		m.success.Observe(a.StartedAt.Add(a.Duration).Sub(a.Published).Seconds())
	}
}

// counted keeps count of the requests under way.
func (m *metrics) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.requests.Inc()
		defer m.requests.Dec()
		next.ServeHTTP(w, r)
	})
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// counts reads how much there is, at each scrape.
type counts struct {
	history *history.History
	log     *slog.Logger
}

var (
	backlog       = describe("surehook_backlog_deliveries", "Deliveries of active subscriptions that have not ended.")
	held          = describe("surehook_held_deliveries", "Deliveries of paused and disabled subscriptions that have not ended.")
	deadLettered  = describe("surehook_dead_lettered_deliveries", "Dead letters that are kept.")
	unexpanded    = describe("surehook_unexpanded_events", "Committed events whose deliveries are not all made.")
	oldestDue     = describe("surehook_oldest_due_seconds", "For how long the oldest delivery is due that may be attempted now; 0: none is.")
	notices       = describe("surehook_unacknowledged_notices", "Notices that nobody has acknowledged.")
	subscriptions = describe("surehook_subscriptions", "Subscriptions by status.", "status")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *counts) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backlog, held, deadLettered, unexpanded, oldestDue, notices, subscriptions} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. While the database is away, the process's
// own figures are still told.
func (c *counts) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n, err := c.history.Counts(ctx)
	if err != nil {
		c.log.Error("metrics: counting", "error", err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(backlog, float64(n.Live))
	gauge(held, float64(n.Held))
	gauge(deadLettered, float64(n.DeadLettered))
	gauge(unexpanded, float64(n.Unexpanded))
	gauge(notices, float64(n.Notices))
	var due time.Duration
	if !n.OldestDue.IsZero() {
		due = max(0, n.At.Sub(n.OldestDue))
	}
	gauge(oldestDue, due.Seconds())
	for _, status := range []sender.SubscriptionStatus{sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled, sender.SubscriptionClosing} {
		gauge(subscriptions, float64(n.Subscriptions[status]), string(status))
	}
}
