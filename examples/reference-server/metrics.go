package main

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/jobs"
	"github.com/surehook/surehook/sender/senderprom"
)

// metrics are the values that Prometheus scrapes. Each process counts its own acts.
// Totals are read from the database, so they are the same in every process.
type metrics struct {
	sender   *senderprom.Collector
	registry *prometheus.Registry
	requests prometheus.Gauge
	answered *prometheus.CounterVec
	took     *prometheus.HistogramVec
	jobs     *prometheus.CounterVec
}

func newMetrics(db *sql.DB) (*metrics, error) {
	collector, err := senderprom.New(nil)
	if err != nil {
		return nil, err
	}
	m := &metrics{
		sender: collector, registry: prometheus.NewRegistry(),
		requests: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "surehook_http_requests_in_flight", Help: "Requests that are being answered here; those that are held open are among them.",
		}),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "surehook_http_requests_total", Help: "Requests that were answered here, by route and status code; 499: the client has left before the answer.",
		}, []string{"route", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "surehook_http_request_seconds", Help: "How long a request took, by route; GET /events has those that are held open.",
		}, []string{"route"}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "surehook_jobs_finished_total", Help: "Jobs that came to their end here, by kind and status.",
		}, []string{"kind", "status"}),
	}
	m.registry.MustRegister(m.sender, m.requests, m.answered, m.took, m.jobs, collectors.NewBuildInfoCollector(), collectors.NewDBStatsCollector(db, "surehook"), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m, nil
}

// total has the totals of the database read at each scrape.
func (m *metrics) total(h *history.History, log *slog.Logger) error {
	totals, err := senderprom.NewTotals(h, &senderprom.TotalsConfig{Logger: log})
	if err != nil {
		return err
	}
	return m.registry.Register(totals)
}

// Routes of what the API's mux does not answer.
const (
	routeConsole = "console"
	routePortal  = "portal"
	routeNone    = "none" // there is nothing at the path, or nobody knows who asked
)

// statusClientLeft is counted in place of the failure that a client has caused by leaving.
// It is nginx's word for it, and never sent.
const statusClientLeft = 499

type routeKey struct{}

// noteRoute notes which route answers a request. Its values are few: paths that a stranger
// makes up are routeNone.
func noteRoute(r *http.Request, route string) {
	if at, ok := r.Context().Value(routeKey{}).(*string); ok {
		*at = route
	}
}

// counted keeps count of the requests under way, and of those that were answered.
func (m *metrics) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.requests.Inc()
		route, began, seen := routeNone, time.Now(), &observed{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			m.requests.Dec()
			if seen.status >= http.StatusInternalServerError && clientLeft(r.Context()) {
				seen.status = statusClientLeft
			}
			m.answered.WithLabelValues(route, strconv.Itoa(seen.status)).Inc()
			m.took.WithLabelValues(route).Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(seen, r.WithContext(context.WithValue(r.Context(), routeKey{}, &route)))
	})
}

// observed remembers the status of an answer.
type observed struct {
	http.ResponseWriter
	status int
	sent   bool // the header
}

// WriteHeader implements http.ResponseWriter. Once the header is sent, huma still notes here that
// the client has left; net/http would log that as a mistake in the program.
func (o *observed) WriteHeader(status int) {
	o.status = status
	if !o.sent {
		o.sent = status >= http.StatusOK
		o.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (o *observed) Write(part []byte) (int, error) {
	o.sent = true
	return o.ResponseWriter.Write(part)
}

// Unwrap lets http.ResponseController set deadlines.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// finished counts a job that has ended.
func (m *metrics) finished(j jobs.Job) { m.jobs.WithLabelValues(shownKind(j), string(j.Status)).Inc() }

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
