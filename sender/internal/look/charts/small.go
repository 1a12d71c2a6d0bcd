package charts

import (
	"html/template"
	"math"
	"strconv"
)

// Spark is a small line without axes, as wide as its place.
type Spark struct {
	Name   string // what it shows, for those who cannot see it
	Class  string // bad-s or ok-s; "": the accent
	Values []float64
	// Share: the axis goes from the least value up to 1, and not from none.
	Share bool
}

// HTML draws the line; nothing if there are fewer than two values.
func (c *Spark) HTML() template.HTML {
	if len(c.Values) < 2 {
		return ""
	}
	low, high := 0.0, 0.0
	if c.Share {
		low, high = 1, 1
	}
	for _, v := range c.Values {
		low, high = min(low, v), max(high, v)
	}
	const top, foot = 1.1, 22.3
	y := func(v float64) string {
		if high == low {
			if c.Share {
				return num(top)
			}
			return num(foot)
		}
		return strconv.FormatFloat(foot-(v-low)/(high-low)*(foot-top), 'f', 1, 64)
	}
	var line svg
	for i, v := range c.Values {
		line.add("%c%d %s", "ML"[min(i, 1)], i, y(v))
	}
	n := len(c.Values) - 1
	var s svg
	s.add(`<svg class="spark %s" viewBox="0 0 %d 24" preserveAspectRatio="none" role="img" aria-label="%s">`, escape(c.Class), n, escape(c.Name))
	s.add(`<path class="area" d="%sL%d 24L0 24Z"/><path class="l l-1" d="%s"/></svg>`, line.String(), n, line.String())
	return s.html()
}

// Outcome is what an attempt came to.
type Outcome uint8

// The outcomes of attempts.
const (
	NoAttempt Outcome = iota
	Success
	Failure
)

// Bars are the outcomes of the last attempts, the oldest first: failures are tall and
// successes short, and where there was no attempt is a line at the foot.
func Bars(outcomes []Outcome) template.HTML {
	var short, tall, foot svg
	var good, bad int
	for i, o := range outcomes {
		x := 4 * i
		switch o {
		case Success:
			good++
			short.add("M%d 9h2.8v11h-2.8z", x)
		case Failure:
			bad++
			tall.add("M%d 1h2.8v19h-2.8z", x)
		default:
			foot.add("M%d 18h2.8v2h-2.8z", x)
		}
	}
	name := "no attempts yet"
	if good+bad > 0 {
		name = "The last " + attempts(good+bad) + ": " + strconv.Itoa(good) + " answered 2xx, " + strconv.Itoa(bad) + " failed"
	}
	w := 4 * len(outcomes)
	var s svg
	s.add(`<svg class="sb" width="%d" height="20" viewBox="0 0 %d 20" preserveAspectRatio="none" role="img" aria-label="%s"><title>%s</title>`, w, w, name, name)
	s.add(`<path class="f-quiet" d="%s"/><path class="f-bad" d="%s"/><path class="f-quiet" d="%s"/></svg>`, short.String(), tall.String(), foot.String())
	return s.html()
}

// attempts counts them in words.
func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return strconv.Itoa(n) + " attempts"
}

// Meter is a share from 0 to 1 as a bar that is filled so far. short: it stands beside
// text.
func Meter(share float64, class, name string, short bool) template.HTML {
	share = min(1, max(0, share))
	if math.IsNaN(share) {
		share = 0
	}
	size := "meter"
	if short {
		size += " short"
	}
	var s svg
	s.add(`<svg class="%s" role="img" aria-label="%s"><rect class="%s" width="%s%%" height="100%%"/></svg>`, size, escape(name), escape(class), num(share*100))
	return s.html()
}

// Part is a part of a Mix.
type Part struct {
	Value float64
	Class string
}

// Mix is a whole divided into parts, as one bar.
func Mix(parts []Part, name string) template.HTML {
	var whole, x float64
	for _, p := range parts {
		whole += p.Value
	}
	var s svg
	s.add(`<svg class="mix" role="img" aria-label="%s">`, escape(name))
	for _, p := range parts {
		if whole > 0 && p.Value > 0 {
			w := p.Value / whole * 100
			s.add(`<rect class="%s" x="%s%%" width="%s%%" height="100%%"/>`, escape(p.Class), num(x), num(w))
			x += w
		}
	}
	s.add(`</svg>`)
	return s.html()
}
