package senderprom

import (
	"cmp"
	"context"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

// PublishHooks are for sender.PublisherConfig. sender.JoinPublishHooks joins them with
// others.
func (m *Collector) PublishHooks() sender.PublishHooks {
	return sender.PublishHooks{PublishEnd: func(_ context.Context, p *sender.Published) { m.publishEnded(p) }}
}

// Hooks are for dispatch.Config. dispatch.JoinHooks joins them with others.
func (m *Collector) Hooks() dispatch.Hooks {
	return dispatch.Hooks{
		Expanded: func(_ context.Context, x dispatch.Expanded) {
			m.expandedEvents.Add(float64(x.Events))
			m.expandedDeliveries.Add(float64(x.Deliveries))
		},
		Recorded:       func(_ context.Context, r *dispatch.Recorded) { m.recorded(r) },
		PutOff:         func(_ context.Context, p dispatch.PutOff) { m.putOff.WithLabelValues(string(p.Reason)).Inc() },
		Stepped:        func(_ context.Context, s dispatch.Stepped) { m.stepped(&s) },
		TakenOver:      func(_ context.Context, leases int) { m.takenOver.Add(float64(leases)) },
		ReplayFinished: func(context.Context, replay.Replay) { m.replays.Inc() },
		Noticed:        func(_ context.Context, n sender.Notice) { m.notices.WithLabelValues(string(n.Kind)).Inc() },
		NetworkDown: func(context.Context, time.Time) {
			m.networkDown.Set(1)
			m.networkOutages.Inc()
		},
		NetworkUp: func(context.Context, time.Time) { m.networkDown.Set(0) },
		ProxyDown: func(_ context.Context, proxy string, _ time.Time) {
			m.proxyDown.WithLabelValues(proxy).Set(1)
			m.proxyOutages.WithLabelValues(proxy).Inc()
		},
		ProxyUp: func(_ context.Context, proxy string, _ time.Time) { m.proxyDown.WithLabelValues(proxy).Set(0) },
		Pruned:  func(_ context.Context, p dispatch.Pruned) { m.prunedRecords(&p) },
	}
}

func (m *Collector) publishEnded(p *sender.Published) {
	result := "ok"
	if p.Err != nil {
		result = "refused"
	}
	m.publish.WithLabelValues(result).Observe(p.Duration.Seconds())
	for i := range p.Events {
		of := result
		switch {
		case p.Err != nil:
		case p.Refs[i].Duplicate:
			of = "duplicate"
		case p.Refs[i].Dropped:
			of = "dropped"
		default:
			of = "new"
		}
		m.published.WithLabelValues(m.labels(p.Events[i].Type, of)...).Inc()
	}
}

// recorded counts an attempt that was recorded. An attempt whose lease was lost is counted
// by the process that has found it interrupted.
func (m *Collector) recorded(r *dispatch.Recorded) {
	if r.Lost {
		m.lost.Inc()
		return
	}
	a, lane := &r.Result, "unknown"
	if r.Target != nil {
		lane = laneOf(r.Target.Lane)
	}
	// To Prometheus an empty label is one that is not there.
	m.attempts.WithLabelValues(m.labels(r.Event.Type, string(r.Decision.Status), cmp.Or(string(a.Class), "none"), lane)...).Inc()
	if a.Class != sender.ClassInterrupted { // nobody knows how long it took
		m.attempt.WithLabelValues(lane).Observe(a.Duration.Seconds())
	}
	if a.Published.IsZero() {
		return
	}
	if a.Number == 1 {
		m.firstAttempt.WithLabelValues(lane).Observe(a.StartedAt.Sub(a.Published).Seconds())
	}
	if a.Class == sender.ClassNone && !r.Single {
		m.success.WithLabelValues(lane).Observe(a.StartedAt.Add(a.Duration).Sub(a.Published).Seconds())
	}
}

func (m *Collector) stepped(s *dispatch.Stepped) {
	m.step.Observe(s.Duration.Seconds())
	if s.Err != nil {
		m.stepFailures.Inc()
	}
	for lane, n := range s.OnWire {
		m.inFlight.WithLabelValues(lanes[lane]).Set(float64(n))
	}
}

func (m *Collector) prunedRecords(p *dispatch.Pruned) {
	for record, n := range map[string]int{
		"delivery": p.Deliveries, "dead_letter": p.DeadLetters, "event": p.Events, "notice": p.Notices, "rollup": p.Rollups,
		"subscription_rollup": p.SubscriptionRollups, "subscription": p.Subscriptions, "replay": p.Replays, "object": p.Objects,
	} {
		m.pruned.WithLabelValues(record).Add(float64(n))
	}
}
