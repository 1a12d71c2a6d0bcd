// Package receiverprom shows to Prometheus what becomes of received events: results, and the
// reasons of what was not taken.
//
//	metrics := receiverprom.New()
//	prometheus.MustRegister(metrics)
//	hooks, err := surehook.NewReceiver(transactions, store, scope, secret, &surehook.ReceiverConfig{
//		Receive: receiver.Config{Hooks: metrics.Hooks()},
//	})
//
// It is a module of its own, so that nobody's version of the Prometheus client is raised for
// the library's sake. Its labels are words of the library alone: nothing that a sender has
// sent becomes one.
package receiverprom

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/surehook/surehook/receiver"
)

// durations are those of a request, in seconds.
var durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// Collector counts what becomes of requests, and of events that were applied in other ways,
// in this process. It implements prometheus.Collector, and is safe for concurrent use.
type Collector struct {
	results *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// New returns a Collector. Give its Hooks to the receiver, and register it. Receivers may
// share one.
func New() *Collector {
	c := &Collector{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "surehook_received_events_total",
			Help: "Requests and events, by what became of them: applied, duplicate, stale, reapplied, recorded, ignored, challenged, dead_lettered, rejected (no verified event) or failed (verified, and not applied then). The reason is none unless it was rejected or failed.",
		}, []string{"result", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "surehook_receive_seconds", Help: "From the beginning of a request to its result, the commit included, by result.", Buckets: durations,
		}, []string{"result"}),
	}
	// A rate of something that is not there yet misses its first rise, and mostly a dead letter
	// is the first one in a process.
	for _, r := range []receiver.Result{receiver.Applied, receiver.Duplicate, receiver.Stale, receiver.Reapplied, receiver.Recorded, receiver.Ignored, receiver.DeadLettered} {
		c.results.WithLabelValues(string(r), "none")
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	c.results.Describe(ch)
	c.seconds.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.results.Collect(ch)
	c.seconds.Collect(ch)
}

type startKey struct{}

// Hooks are for receiver.Config. receiver.JoinHooks joins them with others.
func (c *Collector) Hooks() receiver.Hooks {
	taken := func(result string) func(context.Context, receiver.Event) {
		return func(ctx context.Context, _ receiver.Event) { c.ended(ctx, result, "none") }
	}
	return receiver.Hooks{
		Start: func(ctx context.Context, _ http.Header) context.Context {
			return context.WithValue(ctx, startKey{}, time.Now())
		},
		Applied:    taken(string(receiver.Applied)),
		Duplicate:  taken(string(receiver.Duplicate)),
		Stale:      taken(string(receiver.Stale)),
		Reapplied:  taken(string(receiver.Reapplied)),
		Ignored:    taken(string(receiver.Ignored)),
		Recorded:   taken(string(receiver.Recorded)),
		Challenged: taken("challenged"),
		DeadLettered: func(ctx context.Context, _ receiver.Event, _ error) {
			c.ended(ctx, string(receiver.DeadLettered), "none")
		},
		Rejected: func(ctx context.Context, err *receiver.Error) { c.ended(ctx, "rejected", string(err.Reason)) },
		Failed: func(ctx context.Context, _ receiver.Event, err *receiver.Error) {
			c.ended(ctx, "failed", string(err.Reason))
		},
	}
}

// ended counts a result. If a hook beside ours has lost the context of Start, there is no
// duration.
func (c *Collector) ended(ctx context.Context, result, reason string) {
	c.results.WithLabelValues(result, reason).Inc()
	if began, ok := ctx.Value(startKey{}).(time.Time); ok {
		c.seconds.WithLabelValues(result).Observe(time.Since(began).Seconds())
	}
}
