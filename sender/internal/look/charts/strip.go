package charts

import (
	"html/template"
	"math"
	"time"
)

// Strip is a line of stops by the time since a beginning, logarithmic: from the beginning
// to the last of the stops, or further.
type Strip struct {
	From  time.Time
	Next  time.Time // a stop that is to come; zero: none is
	Stops []Stop
	Say   func(time.Duration) string
}

// Stop is an attempt.
type Stop struct {
	At    time.Time
	Class string // f-ok, f-warn or f-bad
	Title string
}

// stripLabels are what a strip's foot may say.
var stripLabels = []struct {
	at   time.Duration
	text string
}{{time.Second, "1 s"}, {10 * time.Second, "10 s"}, {time.Minute, "1 min"}, {10 * time.Minute, "10 min"}, {time.Hour, "1 h"}, {6 * time.Hour, "6 h"}, {24 * time.Hour, "1 d"}, {72 * time.Hour, "3 d"}, {7 * 24 * time.Hour, "7 d"}}

// HTML draws the strip; nothing if there are no stops.
func (c *Strip) HTML() template.HTML {
	if len(c.Stops) == 0 {
		return ""
	}
	last := c.Stops[len(c.Stops)-1].At
	if c.Next.After(last) {
		last = c.Next
	}
	whole := max(10*time.Second, last.Sub(c.From)*5/4)
	scale := func(t time.Duration) float64 { return math.Log10(1 + max(0, t.Seconds())*10) }
	x := func(t time.Duration) string { return num(2 + scale(t)/scale(whole)*96) }
	var s svg
	s.add(`<figure class="strip"><svg height="42" role="img" aria-label="%s, the last one %s after the event was published">`, attempts(len(c.Stops)), escape(c.Say(max(0, c.Stops[len(c.Stops)-1].At.Sub(c.From)))))
	s.add(`<line class="base" x1="0" x2="100%%" y1="12" y2="12"/>`)
	if c.Next.After(c.From) {
		s.add(`<g class="col"><title>The next attempt, +%s</title><svg x="%s%%" y="12" overflow="visible"><circle class="next" r="5"/></svg></g>`, escape(c.Say(c.Next.Sub(c.From))), x(c.Next.Sub(c.From)))
	}
	for _, stop := range c.Stops {
		shape := `<path d="m-2-2 4 4m0-4-4 4" stroke="var(--panel)" stroke-width="1.5" stroke-linecap="round"/>`
		if stop.Class == "f-ok" {
			shape = `<path d="m-2.4.2 1.7 1.7 3.2-3.6" fill="none" stroke="var(--panel)" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"/>`
		}
		s.add(`<g class="col"><title>%s</title><svg x="%s%%" y="12" overflow="visible"><rect class="%s" x="-5" y="-5" width="10" height="10" rx="2.5"/>%s</svg></g>`,
			escape(stop.Title), x(stop.At.Sub(c.From)), escape(stop.Class), shape)
	}
	s.add(`<text x="0" y="38">published</text>`)
	placed := 12.0
	for _, l := range stripLabels {
		at := 2 + scale(l.at)/scale(whole)*96
		if l.at > whole || at < placed {
			continue
		}
		placed = at + 9
		s.add(`<text x="%s%%" y="38">%s</text>`, num(at), l.text)
	}
	s.add(`</svg></figure>`)
	return s.html()
}
