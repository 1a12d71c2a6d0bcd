package senderprom

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

const maxEventTypes = 200

// Config adjusts a Collector. A nil config and zero fields mean the defaults.
type Config struct {
	// EventTypes are the types of events, up to 200, that a label event_type tells apart, in
	// surehook_published_events_total and surehook_attempts_total. All others are counted as
	// "other". Without any, there is no such label.
	EventTypes []string
}

// Collector counts what this process does: register it once in each process that publishes
// or dispatches. It implements prometheus.Collector, and is safe for concurrent use.
type Collector struct {
	eventTypes map[string]bool

	published *prometheus.CounterVec
	publish   *prometheus.HistogramVec

	expandedEvents, expandedDeliveries prometheus.Counter

	attempts     *prometheus.CounterVec
	attempt      *prometheus.HistogramVec
	firstAttempt *prometheus.HistogramVec
	success      *prometheus.HistogramVec
	inFlight     *prometheus.GaugeVec
	lost         prometheus.Counter

	putOff *prometheus.CounterVec

	step         prometheus.Histogram
	stepFailures prometheus.Counter
	takenOver    prometheus.Counter

	networkDown    prometheus.Gauge
	networkOutages prometheus.Counter
	proxyDown      *prometheus.GaugeVec
	proxyOutages   *prometheus.CounterVec

	notices *prometheus.CounterVec
	replays prometheus.Counter
	pruned  *prometheus.CounterVec
}

// New returns a Collector. Give its Hooks to the dispatcher, its PublishHooks to the
// publisher, and register it.
func New(cfg *Config) (*Collector, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	types, err := listed(c.EventTypes)
	if err != nil {
		return nil, err
	}
	byType := func(labels ...string) []string {
		if len(types) > 0 {
			labels = append(labels, "event_type")
		}
		return labels
	}
	m := &Collector{
		eventTypes: types,
		published: counters("surehook_published_events_total",
			"Events that were given to a publisher of this process, by what became of them: new, duplicate, dropped (its subscriber does not exist) or refused. A new one may be rolled back by the caller later.", byType("result")...),
		publish: histograms("surehook_publish_seconds", "How long a publish took, of one event or of many, without the commit of a caller's transaction.", durations, "result"),

		expandedEvents:     counter("surehook_expanded_events_total", "Committed events whose deliveries were made here."),
		expandedDeliveries: counter("surehook_expanded_deliveries_total", "Deliveries that were made here of committed events."),

		attempts: counters("surehook_attempts_total",
			"Attempts that were recorded here, by what became of the delivery, by how they failed (none, if they succeeded), and by the lane of the subscription.", byType("outcome", "error_class", "lane")...),
		attempt:      histograms("surehook_attempt_seconds", "How long an attempt took, from the dial to the end of the answer.", durations, "lane"),
		firstAttempt: histograms("surehook_first_attempt_seconds", "From publishing an event to the beginning of a delivery's first attempt.", latencies, "lane"),
		success:      histograms("surehook_delivered_seconds", "From publishing an event to the end of an attempt that was answered with 2xx, of deliveries that were not delivered before.", latencies, "lane"),
		inFlight:     gauges("surehook_attempts_in_flight", "Attempts under way here at the last step of the dispatcher, by the lane whose slots they use.", "lane"),
		lost:         counter("surehook_lost_results_total", "Results that came after their lease was lost, and changed nothing."),

		putOff: counters("surehook_put_off_deliveries_total",
			"How often a delivery was put off here before an attempt, because something is wrong on this side, by what that is: its event, payload, body, secret, settings or proxy.", "reason"),

		step:         histogram("surehook_step_seconds", "How long the database took for a step of the dispatcher: one transaction that expands events, records results and claims deliveries.", durations),
		stepFailures: counter("surehook_step_failures_total", "Steps of the dispatcher that the database failed at. They are tried again."),
		takenOver:    counter("surehook_leases_taken_over_total", "Leases of processes that are gone, which this process has ended. Their deliveries are attempted again."),

		networkDown:    gauge("surehook_network_down", "1 while our own network seems to be down, to this process; else 0."),
		networkOutages: counter("surehook_network_outages_total", "How often our own network has seemed to be down, to this process."),
		proxyDown:      gauges("surehook_proxy_down", "1 while a proxy of the operator seems to be failing, to this process; else 0. One that never failed is left out.", "proxy"),
		proxyOutages:   counters("surehook_proxy_outages_total", "How often a proxy of the operator has begun to fail, to this process.", "proxy"),

		notices: counters("surehook_notices_total", "Notices that were stored here, by kind.", "kind"),
		replays: counter("surehook_finished_replays_total", "Replays that came to their end here."),
		pruned:  counters("surehook_pruned_records_total", "Records past their time that were removed here, by what they were.", "record"),
	}
	m.zero()
	return m, nil
}

// noticeKinds are all kinds of notices.
var noticeKinds = []sender.NoticeKind{
	sender.NoticeDeadLettered, sender.NoticeFailing, sender.NoticeDisabled, sender.NoticeNetwork, sender.NoticeProxy, sender.NoticeReplayFinished,
}

// zero shows the lanes, the kinds of notices and the reasons for putting deliveries off
// before anything has happened. A rate of something that is not there yet misses its first
// rise, and mostly a notice is the first of its kind in a process.
func (m *Collector) zero() {
	for _, kind := range noticeKinds {
		m.notices.WithLabelValues(string(kind))
	}
	for _, reason := range dispatch.PutOffReasons() {
		m.putOff.WithLabelValues(string(reason))
	}
	for _, lane := range lanes {
		m.attempt.WithLabelValues(lane)
		m.firstAttempt.WithLabelValues(lane)
		m.success.WithLabelValues(lane)
		m.inFlight.WithLabelValues(lane)
	}
}

func listed(types []string) (map[string]bool, error) {
	all := make(map[string]bool, len(types))
	var errs []error
	for i, t := range types {
		if t == "" || t == "other" {
			errs = append(errs, fmt.Errorf("senderprom: Config.EventTypes[%d] is %q: name a type; \"other\" is what counts the types that are not listed", i, t))
		}
		all[t] = true
	}
	if len(all) > maxEventTypes {
		errs = append(errs, fmt.Errorf("senderprom: Config.EventTypes has %d types: at most %d, since each makes dozens of time series", len(all), maxEventTypes))
	}
	return all, errors.Join(errs...)
}

func (m *Collector) parts() []prometheus.Collector {
	return []prometheus.Collector{
		m.published, m.publish, m.expandedEvents, m.expandedDeliveries, m.attempts, m.attempt, m.firstAttempt, m.success, m.inFlight, m.lost, m.putOff,
		m.step, m.stepFailures, m.takenOver, m.networkDown, m.networkOutages, m.proxyDown, m.proxyOutages, m.notices, m.replays, m.pruned,
	}
}

// Describe implements prometheus.Collector.
func (m *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, p := range m.parts() {
		p.Describe(ch)
	}
}

// Collect implements prometheus.Collector. It reads no database.
func (m *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, p := range m.parts() {
		p.Collect(ch)
	}
}

// labels adds the label of an event's type, if there is one.
func (m *Collector) labels(eventType string, labels ...string) []string {
	if len(m.eventTypes) == 0 {
		return labels
	}
	if !m.eventTypes[eventType] {
		eventType = "other"
	}
	return append(slices.Clip(labels), eventType)
}
