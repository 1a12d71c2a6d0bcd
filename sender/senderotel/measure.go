package senderotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/replay"
)

var (
	outcomeKey = attribute.Key("surehook.outcome")
	resultKey  = attribute.Key("surehook.result")
	proxyKey   = attribute.Key("surehook.proxy")
	kindKey    = attribute.Key("surehook.kind")
	reasonKey  = attribute.Key("surehook.reason")
	recordKey  = attribute.Key("surehook.record")
)

// outcome is what attempts are told apart by.
type outcome struct {
	status sender.Status
	class  sender.Class
	lane   sender.Lane
}

func (o outcome) with() with {
	attrs := []attribute.KeyValue{outcomeKey.String(string(o.status)), laneKey.String(laneOf(o.lane))}
	if o.class != sender.ClassNone {
		attrs = append(attrs, errorType.String(string(o.class)))
	}
	return withAttributes(attrs...)
}

// with are the options of measurements with some attributes. They are made once, since
// sets of attributes are dear to make, and handed over as they are.
type with struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func withAttributes(attrs ...attribute.KeyValue) with {
	set := metric.WithAttributeSet(attribute.NewSet(attrs...))
	return with{[]metric.AddOption{set}, []metric.RecordOption{set}}
}

func withResult(result string) with { return withAttributes(resultKey.String(result)) }

var (
	publishedOK, publishRefused                              = withResult("ok"), withResult("refused")
	newEvents, duplicateEvents, droppedEvents, refusedEvents = withResult("new"), withResult("duplicate"), withResult("dropped"), publishRefused
)

func (i *instruments) hooks() dispatch.Hooks {
	return dispatch.Hooks{
		Expanded: func(ctx context.Context, x dispatch.Expanded) {
			i.expandedEvents.Add(ctx, int64(x.Events))
			i.expandedDeliveries.Add(ctx, int64(x.Deliveries))
		},
		Recorded: i.recorded,
		PutOff: func(ctx context.Context, p dispatch.PutOff) {
			i.putOff.Add(ctx, 1, metric.WithAttributes(reasonKey.String(string(p.Reason))))
		},
		Stepped:        i.stepped,
		TakenOver:      func(ctx context.Context, leases int) { i.takenOver.Add(ctx, int64(leases)) },
		ReplayFinished: func(ctx context.Context, _ replay.Replay) { i.replays.Add(ctx, 1) },
		Noticed: func(ctx context.Context, n sender.Notice) {
			i.notices.Add(ctx, 1, metric.WithAttributes(kindKey.String(string(n.Kind))))
		},
		NetworkDown: func(ctx context.Context, _ time.Time) {
			i.networkDown.Record(ctx, 1)
			i.networkOutages.Add(ctx, 1)
		},
		NetworkUp: func(ctx context.Context, _ time.Time) { i.networkDown.Record(ctx, 0) },
		ProxyDown: func(ctx context.Context, proxy string, _ time.Time) {
			of := metric.WithAttributes(proxyKey.String(proxy))
			i.proxyDown.Record(ctx, 1, of)
			i.proxyOutages.Add(ctx, 1, of)
		},
		ProxyUp: func(ctx context.Context, proxy string, _ time.Time) {
			i.proxyDown.Record(ctx, 0, metric.WithAttributes(proxyKey.String(proxy)))
		},
		Pruned: i.prunedRecords,
	}
}

func (i *instruments) published(ctx context.Context, p *sender.Published) {
	if p.Err != nil {
		i.publish.Record(ctx, p.Duration.Seconds(), publishRefused.record...)
		i.count(ctx, len(p.Events), refusedEvents)
		return
	}
	i.publish.Record(ctx, p.Duration.Seconds(), publishedOK.record...)
	var fresh, duplicates, dropped int
	for n := range p.Events {
		switch {
		case p.Refs[n].Duplicate:
			duplicates++
		case p.Refs[n].Dropped:
			dropped++
		default:
			fresh++
		}
	}
	i.count(ctx, fresh, newEvents)
	i.count(ctx, duplicates, duplicateEvents)
	i.count(ctx, dropped, droppedEvents)
}

// count counts published events, if there are any.
func (i *instruments) count(ctx context.Context, n int, of with) {
	if n > 0 {
		i.publishedEvents.Add(ctx, int64(n), of.add...)
	}
}

// recorded counts an attempt that was recorded. An attempt whose lease was lost is counted
// by the process that has found it interrupted.
func (i *instruments) recorded(ctx context.Context, r *dispatch.Recorded) {
	if r.Lost {
		i.lost.Add(ctx, 1)
		return
	}
	a, lane, inLane := &r.Result, sender.Lane(255), unknownLane.record
	if r.Target != nil && int(r.Target.Lane) < len(byLane) {
		lane, inLane = r.Target.Lane, byLane[r.Target.Lane].record
	}
	i.attempts.Add(ctx, 1, i.outcomes.of(outcome{r.Decision.Status, a.Class, lane}, outcome.with).add...)
	if a.Class != sender.ClassInterrupted { // nobody knows how long it took
		i.attempt.Record(ctx, a.Duration.Seconds(), inLane...)
	}
	if a.Published.IsZero() {
		return
	}
	if a.Number == 1 {
		i.firstAttempt.Record(ctx, a.StartedAt.Sub(a.Published).Seconds(), inLane...)
	}
	if a.Class == sender.ClassNone && !r.Single {
		i.success.Record(ctx, a.StartedAt.Add(a.Duration).Sub(a.Published).Seconds(), inLane...)
	}
}

func (i *instruments) stepped(ctx context.Context, s dispatch.Stepped) {
	i.step.Record(ctx, s.Duration.Seconds())
	if s.Err != nil {
		i.stepFailures.Add(ctx, 1)
	}
	for lane, n := range s.OnWire {
		i.inFlight.Record(ctx, int64(n), byLane[lane].record...)
	}
}

func (i *instruments) prunedRecords(ctx context.Context, p dispatch.Pruned) {
	for record, n := range map[string]int{
		"delivery": p.Deliveries, "dead_letter": p.DeadLetters, "event": p.Events, "notice": p.Notices, "rollup": p.Rollups,
		"subscription_rollup": p.SubscriptionRollups, "subscription": p.Subscriptions, "replay": p.Replays, "object": p.Objects,
	} {
		if n > 0 {
			i.pruned.Add(ctx, int64(n), metric.WithAttributes(recordKey.String(record)))
		}
	}
}
