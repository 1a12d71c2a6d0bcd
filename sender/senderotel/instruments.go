package senderotel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/surehook/surehook/sender"
)

var (
	// latencies reach from an attempt at once to the horizon, in seconds.
	latencies = metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 4*3600, 12*3600, 24*3600, 72*3600)
	// durations are those of an attempt or a transaction, in seconds.
	durations = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30)
)

var lanes = [sender.Lanes]string{sender.LaneNew: "new", sender.LaneProven: "proven", sender.LaneProbation: "probation"}

// laneOf names a lane; "unknown" if a newer release has made it.
func laneOf(l sender.Lane) string {
	if int(l) < len(lanes) {
		return lanes[l]
	}
	return "unknown"
}

var byLane = func() (all [sender.Lanes]with) {
	for l, name := range lanes {
		all[l] = withAttributes(laneKey.String(name))
	}
	return all
}()

var unknownLane = withAttributes(laneKey.String("unknown"))

// instruments are those of what this process does.
type instruments struct {
	publishedEvents                    metric.Int64Counter
	publish                            metric.Float64Histogram
	expandedEvents, expandedDeliveries metric.Int64Counter
	attempts                           metric.Int64Counter
	attempt, firstAttempt, success     metric.Float64Histogram
	inFlight                           metric.Int64Gauge
	lost, putOff                       metric.Int64Counter
	step                               metric.Float64Histogram
	stepFailures, takenOver            metric.Int64Counter
	networkDown, proxyDown             metric.Int64Gauge
	networkOutages, proxyOutages       metric.Int64Counter
	notices, replays, pruned           metric.Int64Counter

	outcomes remembered[outcome, with]
}

func newInstruments(m metric.Meter) (*instruments, error) {
	var errs []error
	counter := func(name, unit, help string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	gauge := func(name, unit, help string) metric.Int64Gauge {
		g, err := m.Int64Gauge(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return g
	}
	histogram := func(name, help string, bounds metric.HistogramOption) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help), bounds)
		errs = append(errs, err)
		return h
	}
	i := &instruments{
		publishedEvents:    counter("surehook.published.events", "{event}", "Events that were given to a publisher, by what became of them. A new one may be rolled back by the caller later."),
		publish:            histogram("surehook.publish.duration", "How long a publish took, without the commit of a caller's transaction.", durations),
		expandedEvents:     counter("surehook.expanded.events", "{event}", "Committed events whose deliveries were made here."),
		expandedDeliveries: counter("surehook.expanded.deliveries", "{delivery}", "Deliveries that were made here of committed events."),
		attempts:           counter("surehook.attempts", "{attempt}", "Attempts that were recorded here, by what became of the delivery, how they failed, and the lane."),
		attempt:            histogram("surehook.attempt.duration", "How long an attempt took, from the dial to the end of the answer.", durations),
		firstAttempt:       histogram("surehook.first_attempt.latency", "From publishing an event to the beginning of a delivery's first attempt.", latencies),
		success:            histogram("surehook.delivered.latency", "From publishing an event to the end of an attempt that was answered with 2xx, of deliveries that were not delivered before.", latencies),
		inFlight:           gauge("surehook.attempts.in_flight", "{attempt}", "Attempts under way at the last step of the dispatcher, by lane."),
		lost:               counter("surehook.lost_results", "{result}", "Results that came after their lease was lost, and changed nothing."),
		putOff:             counter("surehook.put_off.deliveries", "{delivery}", "How often a delivery was put off here before an attempt, because something is wrong on this side, by what that is."),
		step:               histogram("surehook.step.duration", "How long the database took for a step of the dispatcher.", durations),
		stepFailures:       counter("surehook.step.failures", "{step}", "Steps of the dispatcher that the database failed at."),
		takenOver:          counter("surehook.leases.taken_over", "{lease}", "Leases of processes that are gone, which this process has ended."),
		networkDown:        gauge("surehook.network.down", "1", "1 while our own network seems to be down, to this process; else 0."),
		networkOutages:     counter("surehook.network.outages", "{outage}", "How often our own network has seemed to be down, to this process."),
		proxyDown:          gauge("surehook.proxy.down", "1", "1 while a proxy of the operator seems to be failing, to this process; else 0."),
		proxyOutages:       counter("surehook.proxy.outages", "{outage}", "How often a proxy of the operator has begun to fail, to this process."),
		notices:            counter("surehook.notices", "{notice}", "Notices that were stored here, by kind."),
		replays:            counter("surehook.finished.replays", "{replay}", "Replays that came to their end here."),
		pruned:             counter("surehook.pruned.records", "{record}", "Records past their time that were removed here, by what they were."),
	}
	return i, errors.Join(errs...)
}
