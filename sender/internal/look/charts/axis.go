package charts

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// svg collects markup. Its input is escaped, or a number.
type svg struct{ strings.Builder }

func (s *svg) add(format string, args ...any) { fmt.Fprintf(s, format, args...) }

func (s *svg) html() template.HTML { return template.HTML(s.String()) } //nolint:gosec // see svg

func escape(s string) string { return template.HTMLEscapeString(s) }

// num is a coordinate, with at most two decimals.
func num(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// linear is the end of an axis that shows v, and how many steps it has: the next 1,
// 1.5, 2, 3, 4 or 6 times a power of ten.
func linear(v float64) (top float64, steps int) {
	if !(v > 0) {
		return 1, 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, t := range []struct {
		top   float64
		steps int
	}{{1, 2}, {1.5, 3}, {2, 2}, {3, 3}, {4, 2}, {6, 3}, {10, 2}} {
		if top := t.top * power; v <= top*(1+1e-9) {
			return top, t.steps
		}
	}
	return 10 * power, 2
}

// axisNumber is a number at an axis: 600, 1.2k.
func axisNumber(v float64) string {
	trim := func(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
	switch {
	case v >= 1e6:
		return trim(v/1e6) + "M"
	case v >= 1e3:
		return trim(v/1e3) + "k"
	}
	return trim(v)
}

// label is a time at the foot of a chart.
type label struct {
	x    float64 // per cent
	text string
	alt  bool // left out on narrow screens
	edge bool // it begins at x
}

// labelSteps are how far labels may be apart.
var labelSteps = []time.Duration{
	time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 48 * time.Hour, 5 * 24 * time.Hour, 10 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// timeLabels are the labels of a stretch of time: at whole minutes, hours or days, nine
// at most, every second one to be left out on narrow screens.
func timeLabels(from, to time.Time) (list []label) {
	from, to = from.UTC(), to.UTC()
	whole := to.Sub(from)
	if whole <= 0 {
		return nil
	}
	step := labelSteps[len(labelSteps)-1]
	for _, s := range labelSteps {
		if whole <= 9*s {
			step = s
			break
		}
	}
	for t := from.Truncate(step); !t.After(to); t = t.Add(step) {
		x := float64(t.Sub(from)) / float64(whole) * 100
		if x < 0 || x > 97 {
			continue
		}
		text := t.Format("15:04")
		switch {
		case step >= 24*time.Hour && whole <= 8*24*time.Hour:
			text = t.Format("Mon 2")
		case step >= 24*time.Hour || t.Hour() == 0 && t.Minute() == 0:
			text = t.Format("Jan 2")
		}
		list = append(list, label{x: x, text: text, alt: len(list)%2 == 1, edge: x < 3})
	}
	return list
}

func (s *svg) xlabels(list []label, y float64) {
	s.add(`<g class="xlab">`)
	for _, l := range list {
		class := ""
		switch {
		case l.edge:
			class = ` class="edge"`
		case l.alt:
			class = ` class="alt"`
		}
		s.add(`<text x="%s%%" y="%s"%s>%s</text>`, num(l.x), num(y), class, escape(l.text))
	}
	s.add(`</g>`)
}
