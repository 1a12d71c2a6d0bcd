package console

import (
	"context"
	"fmt"
	"time"

	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/internal/look/charts"
)

// hourlySpans are those of a subscription, whose figures are kept by the hour.
var hourlySpans = []span{{"24h", "24 hours", time.Hour, 24}, week, month}

func hourlySpanOf(name string) span {
	for _, s := range hourlySpans {
		if s.Name == name {
			return s
		}
	}
	return week
}

// hourly is the chart of a subscription's attempts, and what they come to together.
func (c *Console) hourly(ctx context.Context, id string, s span) (f figure, whole history.SubscriptionRollup, err error) {
	from := c.cfg.Now().UTC().Truncate(s.Step).Add(-time.Duration(s.N-1) * s.Step)
	hours, err := c.History.SubscriptionRollups(ctx, []string{id}, from, from.Add(time.Duration(s.N)*s.Step))
	if err != nil {
		return f, whole, err
	}
	parts := make([]history.SubscriptionRollup, s.N)
	for i := range hours {
		if k := int(hours[i].Hour.Sub(from) / s.Step); k >= 0 && k < s.N {
			parts[k].Merge(&hours[i])
		}
		whole.Merge(&hours[i])
	}
	chart := charts.Stack{Name: "Attempts over " + s.Words + ", stacked by outcome", Height: 150, Series: attemptSeries}
	table := charts.Table{Heads: []string{"UTC", "Delivered", "Failed, retried", "Dead-lettered", "p95"}}
	for i := range parts {
		p := &parts[i]
		at, retried := from.Add(time.Duration(i)*s.Step), p.Failed+p.Interrupted
		chart.Columns = append(chart.Columns, charts.Column{
			From: at, To: at.Add(s.Step), Values: []float64{float64(p.Delivered), float64(retried), float64(p.DeadLettered)},
			Title: fmt.Sprintf("%s: %s delivered, %s failed and retried, %s dead-lettered", between(at, at.Add(s.Step)), look.Count(p.Delivered), look.Count(retried), look.Count(p.DeadLettered)),
		})
		if p.Attempts() > 0 {
			table.Rows = append(table.Rows, []string{at.Format("Jan 2, 15:04"), look.Count(p.Delivered), look.Count(retried), look.Count(p.DeadLettered), look.Took(p.Duration.Quantile(.95))})
		}
	}
	return figure{chart.HTML(), table.HTML()}, whole, nil
}
