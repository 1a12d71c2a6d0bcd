package charts

import (
	"html/template"
	"time"
)

// Stack is a chart of stacked bars, one for each stretch of time.
type Stack struct {
	Name    string // what it shows, for those who cannot see it
	Height  float64
	Columns []Column // of equal width, the oldest first
	Series  []Series // from the foot up
	Marks   []Mark
}

// Series is what one part of each bar counts.
type Series struct {
	Name  string
	Class string // f-bar, f-warn, f-bad
}

// Column is what happened from one time to another one.
type Column struct {
	From, To time.Time
	Values   []float64 // of each series: how tall its part is
	Title    string    // says the same in words
}

// Mark is a moment that explains what is beside it.
type Mark struct {
	At   time.Time
	Text string
}

// least is how tall a value above none is at least, or a failure would vanish.
const least = 1.5

// HTML draws the chart.
func (c *Stack) HTML() template.HTML {
	if len(c.Columns) == 0 {
		return ""
	}
	var highest float64
	for _, col := range c.Columns {
		var sum float64
		for _, v := range col.Values {
			sum += v
		}
		highest = max(highest, sum)
	}
	top, steps := linear(highest)
	from, to := c.Columns[0].From, c.Columns[len(c.Columns)-1].To
	var s svg
	s.add(`<svg height="%s" role="img" aria-label="%s">`, num(c.Height+22), escape(c.Name))
	s.grid(c.Height, top, steps)
	for i, col := range c.Columns {
		c.column(&s, i, col, top)
	}
	for _, m := range c.Marks {
		c.mark(&s, m, from, to)
	}
	s.xlabels(timeLabels(from, to), c.Height+16)
	s.add(`</svg>`)
	return s.html()
}

func (s *svg) grid(height, top float64, steps int) {
	s.add(`<g class="grid">`)
	for i := range steps + 1 {
		class := ""
		if i == 0 {
			class = ` class="base"`
		}
		y := num(height * (1 - float64(i)/float64(steps)))
		s.add(`<line x1="0" x2="100%%" y1="%s" y2="%s"%s/>`, y, y, class)
	}
	s.add(`</g><g class="ylab">`)
	for i := range steps + 1 {
		share := float64(i) / float64(steps)
		s.add(`<text x="-8" y="%s">%s</text>`, num(height*(1-share)+4), axisNumber(top*share))
	}
	s.add(`</g>`)
}

func (c *Stack) column(s *svg, i int, col Column, top float64) {
	width := 100 / float64(len(c.Columns))
	x := float64(i) * width
	s.add(`<g class="col"><title>%s</title><rect class="hit" x="%s%%" y="0" width="%s%%" height="%s"/>`, escape(col.Title), num(x), num(width), num(c.Height))
	y := c.Height
	for k, v := range col.Values {
		if v <= 0 {
			continue
		}
		h := max(least, v/top*c.Height)
		if y -= h; y < 0 {
			h, y = h+y, 0
		}
		s.add(`<rect class="%s" x="%s%%" y="%s" width="%s%%" height="%s"/>`, c.Series[k].Class, num(x+width*.12), num(y), num(width*.76), num(h))
	}
	s.add(`</g>`)
}

func (c *Stack) mark(s *svg, m Mark, from, to time.Time) {
	x := float64(m.At.Sub(from)) / float64(to.Sub(from)) * 100
	if x < 0 || x > 100 {
		return
	}
	class, dx := "mark-t", 6
	if x > 50 {
		class, dx = "mark-t before", -6
	}
	s.add(`<line class="mark-l" x1="%s%%" x2="%s%%" y1="-2" y2="%s"/>`, num(x), num(x), num(c.Height))
	s.add(`<text class="%s" x="%s%%" dx="%d" y="6">%s</text>`, class, num(x), dx, escape(m.Text))
}
