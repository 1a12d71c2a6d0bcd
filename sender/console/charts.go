package console

import (
	"fmt"
	"html/template"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/internal/look/charts"
)

// figure is a chart with the table that says the same.
type figure struct{ Chart, Table template.HTML }

type overviewCharts struct{ Attempts, First figure }

// attemptSeries are the parts of a bar of attempts.
var attemptSeries = []charts.Series{{Name: "Delivered", Class: "f-bar"}, {Name: "Failed, retried", Class: "f-warn"}, {Name: "Dead-lettered", Class: "f-bad"}}

func chartsOf(s *series) overviewCharts {
	return overviewCharts{Attempts: attemptsChart(s), First: firstChart(s)}
}

// between is an interval in words.
func between(from, to time.Time) string {
	form := "15:04"
	if to.Sub(from) >= time.Hour {
		form = "Jan 2, 15:04"
	}
	return from.Format(form) + " to " + to.Format("15:04") + " UTC"
}

func attemptsChart(s *series) figure {
	c := charts.Stack{Name: "Attempts a minute over " + s.Words + ", stacked by outcome: delivered, failed and retried, dead-lettered. The table below has the same figures.", Height: 200, Series: attemptSeries}
	for i := range s.Intervals {
		v := &s.Intervals[i]
		retried := v.Failed + v.Interrupted
		c.Columns = append(c.Columns, charts.Column{
			From: v.From, To: v.From.Add(s.Step), Values: []float64{float64(v.Delivered) / v.Minutes(s.Step), float64(retried) / v.Minutes(s.Step), float64(v.DeadLettered) / v.Minutes(s.Step)},
			Title: fmt.Sprintf("%s: %s delivered, %s failed and retried, %s dead-lettered", between(v.From, v.To), look.Count(v.Delivered), look.Count(retried), look.Count(v.DeadLettered)),
		})
	}
	t := charts.Table{Heads: []string{"UTC", "Delivered", "Failed, retried", "Dead-lettered"}}
	for _, h := range s.coarse() {
		t.Rows = append(t.Rows, []string{h.label, look.Count(h.Delivered), look.Count(h.Failed + h.Interrupted), look.Count(h.DeadLettered)})
	}
	return figure{c.HTML(), t.HTML()}
}

// quantiles are the lines of a chart of latencies.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", .5}, {"p95", .95}, {"p99", .99}}

// oursToFirst is the time to the first attempt where it waits for the dispatchers alone: what
// is on probation waits for slow and failing endpoints.
func oursToFirst(r *history.Rollup) (l history.Latency) {
	for lane := range r.Lanes {
		if sender.Lane(lane) != sender.LaneProbation { //nolint:gosec // there are three
			l.Merge(&r.Lanes[lane].FirstAttempt)
		}
	}
	return l
}

func firstChart(s *series) figure {
	c := charts.Lines{
		Name:   "Time from publishing to the first attempt over " + s.Words + ", without slow and failing endpoints, logarithmic: 50th, 95th and 99th percentile. The table below has the same figures.",
		Height: 222, From: s.Intervals[0].From, To: s.Intervals[len(s.Intervals)-1].From.Add(s.Step), Series: []string{"p50", "p95", "p99"}, Say: look.Took,
	}
	for i := range s.Intervals {
		v := &s.Intervals[i]
		p := charts.Point{At: v.From, Title: between(v.From, v.To) + ": no first attempt"}
		if ours := oursToFirst(&v.Rollup); ours.Count() > 0 {
			p.Title = between(v.From, v.To) + ": "
			for k, q := range quantiles {
				d := ours.Quantile(q.q)
				p.Values = append(p.Values, d)
				p.Title += []string{"", ", ", ", "}[k] + q.name + " " + look.Took(d)
			}
		}
		c.Points = append(c.Points, p)
	}
	t := charts.Table{Heads: []string{"UTC", "p50", "p95", "p99"}}
	for _, h := range s.coarse() {
		row := []string{h.label, "–", "–", "–"}
		if ours := oursToFirst(&h.Rollup); ours.Count() > 0 {
			for k, q := range quantiles {
				row[k+1] = look.Took(ours.Quantile(q.q))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return figure{c.HTML(), t.HTML()}
}

// coarser is a part of a table beside a chart.
type coarser struct {
	label string
	history.Rollup
}

// coarse are the intervals merged to about thirty rows.
func (s *series) coarse() (list []coarser) {
	each := max(1, s.N/24)
	for i := 0; i < len(s.Intervals); i += each {
		form := "15:04"
		if s.Step >= time.Hour {
			form = "Jan 2, 15:04"
		}
		sum := coarser{label: s.Intervals[i].From.Format(form)}
		for k := i; k < min(len(s.Intervals), i+each); k++ {
			sum.Merge(&s.Intervals[k].Rollup)
		}
		list = append(list, sum)
	}
	return list
}

// publishedChart shows the events that were published.
func publishedChart(s *series) figure {
	c := charts.Stack{Name: "Events published a minute, over " + s.Words, Height: 72, Series: []charts.Series{{Name: "Events", Class: "f-bar"}}}
	t := charts.Table{Heads: []string{"UTC", "Events", "Deliveries"}}
	for i := range s.Intervals {
		v := &s.Intervals[i]
		c.Columns = append(c.Columns, charts.Column{
			From: v.From, To: v.From.Add(s.Step), Values: []float64{float64(v.Published) / v.Minutes(s.Step)},
			Title: fmt.Sprintf("%s: %s events, %s deliveries", between(v.From, v.To), look.Count(v.Published), look.Count(v.Deliveries)),
		})
	}
	for _, h := range s.coarse() {
		t.Rows = append(t.Rows, []string{h.label, look.Count(h.Published), look.Count(h.Deliveries)})
	}
	return figure{c.HTML(), t.HTML()}
}
