package senderprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/surehook/surehook/sender"
)

// latencies reach from an attempt at once to the horizon, in seconds.
var latencies = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600}

// durations are those of an attempt or a transaction, in seconds.
var durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

var lanes = [sender.Lanes]string{sender.LaneNew: "new", sender.LaneProven: "proven", sender.LaneProbation: "probation"}

// laneOf is the label of a lane; "unknown" if a newer release has made it.
func laneOf(l sender.Lane) string {
	if int(l) < len(lanes) {
		return lanes[l]
	}
	return "unknown"
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
