package senderprom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// TotalsConfig adjusts Totals. A nil config and zero fields mean the defaults.
type TotalsConfig struct {
	// Timeout bounds the reading of the database at a scrape. The default is 5 s.
	Timeout time.Duration

	// Logger gets why the database could not be read. The default is slog.Default().
	Logger *slog.Logger
}

// Totals reads from the database, at each scrape, how much there is. The values are the
// same in every process: register it in one, or have the queries take max instead of sum,
// as the dashboard and the alerts do. It implements prometheus.Collector, and is safe for
// concurrent use.
type Totals struct {
	history *history.History
	cfg     TotalsConfig
}

// NewTotals returns Totals of a history's store.
func NewTotals(h *history.History, cfg *TotalsConfig) (*Totals, error) {
	var c TotalsConfig
	if cfg != nil {
		c = *cfg
	}
	var errs []error
	if h == nil {
		errs = append(errs, errors.New("senderprom: NewTotals needs a history: see history.New, or Sender.History"))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("senderprom: TotalsConfig.Timeout is %v: it must be positive, or 0 for the default", c.Timeout))
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Totals{h, c}, nil
}

var (
	databaseUp    = describe("surehook_database_up", "1 if the totals could be read at this scrape; 0 if not: then they are left out.")
	backlog       = describe("surehook_backlog_deliveries", "Deliveries of active and closing subscriptions that have not ended, by the lane of the subscription.", "lane")
	held          = describe("surehook_held_deliveries", "Deliveries of paused and disabled subscriptions that have not ended.")
	deadLettered  = describe("surehook_dead_lettered_deliveries", "Dead letters that are kept.")
	unexpanded    = describe("surehook_unexpanded_events", "Committed events whose deliveries are not all made.")
	oldestDue     = describe("surehook_oldest_due_seconds", "For how long the oldest delivery is due that may be attempted now; 0: none is. By the lane of the subscription.", "lane")
	notices       = describe("surehook_unacknowledged_notices", "Notices that nobody has acknowledged. PostgreSQL counts up to 1000.")
	subscriptions = describe("surehook_subscriptions", "Subscriptions by status.", "status")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (t *Totals) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{databaseUp, backlog, held, deadLettered, unexpanded, oldestDue, notices, subscriptions} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. While the database is away, only
// surehook_database_up is told.
func (t *Totals) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), t.cfg.Timeout)
	defer cancel()
	tell := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	n, err := t.history.Counts(ctx)
	if err != nil {
		t.cfg.Logger.ErrorContext(ctx, "metrics: the database could not be read", "error", err)
		tell(databaseUp, 0)
		return
	}
	tell(databaseUp, 1)
	for lane, l := range n.Lanes {
		tell(backlog, float64(l.Live), lanes[lane])
		tell(oldestDue, waited(n.At, l.OldestDue), lanes[lane])
	}
	tell(held, float64(n.Held))
	tell(deadLettered, float64(n.DeadLettered))
	tell(unexpanded, float64(n.Unexpanded))
	tell(notices, float64(n.Notices))
	for _, status := range []sender.SubscriptionStatus{sender.SubscriptionActive, sender.SubscriptionPaused, sender.SubscriptionDisabled, sender.SubscriptionClosing} {
		tell(subscriptions, float64(n.Subscriptions[status]), string(status))
	}
}

// waited is for how many seconds something has been due; 0 if nothing is.
func waited(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since)).Seconds()
}
