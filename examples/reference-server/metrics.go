package main

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/senderprom"
)

// metrics are the values that Prometheus scrapes. Each process counts its own acts.
// Totals are read from the database, so they are the same in every process.
type metrics struct {
	sender   *senderprom.Collector
	registry *prometheus.Registry
	requests prometheus.Gauge
}

func newMetrics() (*metrics, error) {
	collector, err := senderprom.New(nil)
	if err != nil {
		return nil, err
	}
	m := &metrics{
		sender: collector, registry: prometheus.NewRegistry(),
		requests: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "surehook_http_requests_in_flight", Help: "Requests that are being answered here; those that are held open are among them.",
		}),
	}
	m.registry.MustRegister(m.sender, m.requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
