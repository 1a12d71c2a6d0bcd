package console

import (
	"context"
	"time"

	"github.com/surehook/surehook/sender/history"
)

// span is a stretch of time up to now that a chart shows, divided into equal parts.
type span struct {
	Name  string
	Words string
	Step  time.Duration
	N     int
}

var (
	hour = span{"1h", "an hour", time.Minute, 60}
	day  = span{"24h", "24 hours", 15 * time.Minute, 96}
	week = span{"7d", "7 days", 2 * time.Hour, 84}
	// month is the longest that figures by the hour are asked for.
	month = span{"30d", "30 days", 12 * time.Hour, 60}
)

var spans = []span{hour, day, week, month}

// Label is its name for people.
func (s span) Label() string { return s.Name[:len(s.Name)-1] + " " + s.Name[len(s.Name)-1:] }

// spanOf is the one that a query names; else the given one.
func spanOf(name string, otherwise span) span {
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	return otherwise
}

// interval is what happened in one part of a span.
type interval struct {
	history.Rollup
	From, To time.Time // To of the last one is now
}

// Minutes is how long it lasted, of a step's length. One that has just begun counts as a
// fifth of its step, or its first seconds would make a rate of nothing.
func (i *interval) Minutes(step time.Duration) float64 {
	return max(step.Minutes()/5, i.To.Sub(i.From).Minutes())
}

// series are the intervals of a span, oldest first. The last one is not over.
type series struct {
	span
	Intervals []interval
	Whole     history.Rollup // all of them together
}

func (c *Console) series(ctx context.Context, now time.Time, s span) (*series, error) {
	now = now.UTC()
	from := now.Truncate(s.Step).Add(-time.Duration(s.N-1) * s.Step)
	rollups := c.History.Rollups
	if s.Step >= time.Hour {
		rollups = c.History.HourRollups
	}
	parts, err := rollups(ctx, from, from.Add(time.Duration(s.N)*s.Step))
	if err != nil {
		return nil, err
	}
	all := &series{span: s, Intervals: make([]interval, s.N)}
	for i := range all.Intervals {
		at := from.Add(time.Duration(i) * s.Step)
		all.Intervals[i] = interval{From: at, To: at.Add(s.Step)}
	}
	all.Intervals[s.N-1].To = now
	for i := range parts {
		if k := int(parts[i].Minute.Sub(from) / s.Step); k >= 0 && k < s.N {
			all.Intervals[k].Merge(&parts[i])
			all.Whole.Merge(&parts[i])
		}
	}
	return all, nil
}

// last are the intervals of the last part of a span.
func (s *series) last(d time.Duration) (sum history.Rollup) {
	n := min(len(s.Intervals), max(1, int(d/s.Step)))
	for i := len(s.Intervals) - n; i < len(s.Intervals); i++ {
		sum.Merge(&s.Intervals[i].Rollup)
	}
	return sum
}
