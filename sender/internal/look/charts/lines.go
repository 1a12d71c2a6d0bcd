package charts

import (
	"html/template"
	"math"
	"slices"
	"time"
)

// Lines is a chart of durations over time on a logarithmic axis, which begins at 10 ms.
type Lines struct {
	Name     string // what it shows, for those who cannot see it
	Height   float64
	From, To time.Time
	Points   []Point  // at equal distances, the oldest first
	Series   []string // the lines' names, which stand at their ends: at most three
	Say      func(time.Duration) string
}

// Point has a value of each line, at one time.
type Point struct {
	At     time.Time
	Values []time.Duration // none: nothing was measured, and the line has a gap
	Title  string          // says the same in words
}

// above is the room over the highest tick.
const above = 20

// HTML draws the chart.
func (c *Lines) HTML() template.HTML {
	if len(c.Points) < 2 {
		return ""
	}
	decades := 3
	for _, p := range c.Points {
		for _, v := range p.Values {
			decades = max(decades, int(math.Ceil(math.Log10(float64(v)/float64(10*time.Millisecond))-1e-9)))
		}
	}
	y := func(v time.Duration) float64 {
		share := math.Log10(max(1, float64(v)/float64(10*time.Millisecond))) / float64(decades)
		return c.Height - share*(c.Height-above)
	}
	var s svg
	s.add(`<svg height="%s" role="img" aria-label="%s">`, num(c.Height+22), escape(c.Name))
	c.ticks(&s, decades)
	s.add(`<svg viewBox="0 0 %d %s" preserveAspectRatio="none" width="100%%" height="%s">`, len(c.Points)-1, num(c.Height), num(c.Height))
	for k := len(c.Series) - 1; k >= 0; k-- {
		s.add(`<path class="l l-%d" d="`, k+1)
		c.path(&s, k, y)
		s.add(`"/>`)
	}
	s.add(`</svg>`)
	c.names(&s, y)
	width := 100 / float64(len(c.Points))
	for i, p := range c.Points {
		s.add(`<g class="col"><title>%s</title><rect class="hit" x="%s%%" y="0" width="%s%%" height="%s"/></g>`, escape(p.Title), num(float64(i)*width), num(width), num(c.Height))
	}
	s.xlabels(timeLabels(c.From, c.To), c.Height+16)
	s.add(`</svg>`)
	return s.html()
}

func (c *Lines) ticks(s *svg, decades int) {
	at := func(i int) float64 { return c.Height - (c.Height-above)*float64(i)/float64(decades) }
	s.add(`<g class="grid">`)
	for i := range decades + 1 {
		s.add(`<line x1="0" x2="100%%" y1="%s" y2="%s"/>`, num(at(i)), num(at(i)))
	}
	s.add(`</g><g class="ylab">`)
	for i := range decades + 1 {
		text := []string{"10 ms", "100 ms", "1 s", "10 s", "100 s", "17 min", "2.8 h", "28 h", "12 d"}[min(i, 8)]
		s.add(`<text x="-8" y="%s">%s</text>`, num(at(i)+4), text)
	}
	s.add(`</g>`)
}

// path is one line. A point between two gaps is a dot: a line of no length.
func (c *Lines) path(s *svg, k int, y func(time.Duration) float64) {
	gap := true
	for i, p := range c.Points {
		if len(p.Values) <= k {
			gap = true
			continue
		}
		if gap {
			s.add("M%d %sh0", i, num(y(p.Values[k])))
		} else {
			s.add("L%d %s", i, num(y(p.Values[k])))
		}
		gap = false
	}
}

// names writes each line's name and newest value at its end, without one covering
// another.
func (c *Lines) names(s *svg, y func(time.Duration) float64) {
	last := slices.IndexFunc(c.Points, func(p Point) bool { return len(p.Values) == len(c.Series) })
	for i, p := range c.Points {
		if len(p.Values) == len(c.Series) {
			last = i
		}
	}
	if last < 0 {
		return
	}
	s.add(`<g class="key">`)
	at := math.Inf(1)
	for k, name := range c.Series { // from the foot up, as quantiles ascend
		v := c.Points[last].Values[k]
		at = min(at-14, y(v)+4)
		s.add(`<text class="k-%d" x="100%%" dx="6" y="%s">%s %s</text>`, k+1, num(at), escape(name), escape(c.Say(v)))
	}
	s.add(`</g>`)
}
