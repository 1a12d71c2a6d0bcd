package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// print writes a result as Markdown.
func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "\n## %s\n%s\n\n", r.Name, r.Question)
	fmt.Fprintf(w, "| | %s |\n|%s\n", strings.Join(r.columns, " | "), strings.Repeat(" --- |", len(r.columns)+1))
	for _, m := range r.Medians {
		fmt.Fprintf(w, "| %s |", m.Variant)
		for _, c := range r.columns {
			if v, ok := m.Figures[c]; ok {
				fmt.Fprintf(w, " %s |", short(v))
			} else {
				fmt.Fprint(w, " |")
			}
		}
		fmt.Fprintln(w)
	}
	if len(r.Ratios) == 0 {
		return
	}
	fmt.Fprint(w, "\n| ratio | median | from – to | asked for | aim | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, c := range r.Ratios {
		fmt.Fprintf(w, "| %s | %.2f | %.2f – %.2f | %s | %s | %s |\n",
			c.label(), c.Median, c.Lowest, c.Highest, c.bound(c.Least), c.bound(c.Aim), c.verdict())
	}
}

func (c *compared) label() string {
	label := c.Of
	switch len(c.Over) {
	case 0:
	case 1:
		label += " ÷ " + c.Over[0]
	default:
		label += " ÷ the better of " + strings.Join(c.Over, ", ")
	}
	return label + ": " + c.Figure
}

func (c *compared) bound(v float64) string {
	switch {
	case v == 0:
		return ""
	case c.SmallerBetter:
		return "≤ " + short(v)
	}
	return "≥ " + short(v)
}

func (c *compared) verdict() string {
	reached := func(bound float64) bool {
		if c.SmallerBetter {
			return c.Median <= bound
		}
		return c.Median >= bound
	}
	switch {
	case c.Least == 0:
		return ""
	case !reached(c.Least):
		return "missed"
	case c.Aim != 0 && reached(c.Aim):
		return "aim reached"
	}
	return "reached"
}

// short formats a figure with about three digits.
func short(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func inLine(figures map[string]float64, columns []string) string {
	var b strings.Builder
	for _, c := range columns {
		if v, ok := figures[c]; ok {
			fmt.Fprintf(&b, " %s %s,", short(v), c)
		}
	}
	return strings.TrimSuffix(b.String(), ",")
}
