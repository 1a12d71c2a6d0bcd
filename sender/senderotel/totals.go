package senderotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

var statusKey = attribute.Key("surehook.status")

// ObserveTotals has how much there is in the database read at each collection, until the
// registration is unregistered. The values are the same in every process: one is enough.
// An error of the database goes to OpenTelemetry's error handler; nothing is observed then.
func (t *Telemetry) ObserveTotals(h *history.History) (metric.Registration, error) {
	if h == nil {
		return nil, errors.New("senderotel: ObserveTotals needs a history: see history.New, or Sender.History")
	}
	var errs []error
	gauge := func(name, unit, help string) metric.Int64ObservableGauge {
		g, err := t.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return g
	}
	backlog := gauge("surehook.backlog.deliveries", "{delivery}", "Deliveries of active and closing subscriptions that have not ended, by the lane of the subscription.")
	held := gauge("surehook.held.deliveries", "{delivery}", "Deliveries of paused and disabled subscriptions that have not ended.")
	deadLettered := gauge("surehook.dead_lettered.deliveries", "{delivery}", "Dead letters that are kept.")
	unexpanded := gauge("surehook.unexpanded.events", "{event}", "Committed events whose deliveries are not all made.")
	notices := gauge("surehook.unacknowledged.notices", "{notice}", "Notices that nobody has acknowledged. PostgreSQL counts up to 1000.")
	subscriptions := gauge("surehook.subscriptions", "{subscription}", "Subscriptions by status.")
	oldestDue, err := t.meter.Float64ObservableGauge("surehook.oldest_due.duration", metric.WithUnit("s"),
		metric.WithDescription("For how long the oldest delivery is due that may be attempted now, by the lane of the subscription; 0: none is."))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return t.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		n, err := h.Counts(ctx)
		if err != nil {
			return err
		}
		for lane, l := range n.Lanes {
			in := metric.WithAttributes(laneKey.String(lanes[lane]))
			o.ObserveInt64(backlog, l.Live, in)
			o.ObserveFloat64(oldestDue, waited(n.At, l.OldestDue), in)
		}
		o.ObserveInt64(held, n.Held)
		o.ObserveInt64(deadLettered, n.DeadLettered)
		o.ObserveInt64(unexpanded, n.Unexpanded)
		o.ObserveInt64(notices, n.Notices)
		for _, status := range []sender.SubscriptionStatus{sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled, sender.SubscriptionClosing} {
			o.ObserveInt64(subscriptions, n.Subscriptions[status], metric.WithAttributes(statusKey.String(string(status))))
		}
		return nil
	}, backlog, held, deadLettered, unexpanded, notices, subscriptions, oldestDue)
}

// waited is for how many seconds something has been due; 0 if nothing is.
func waited(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since)).Seconds()
}
