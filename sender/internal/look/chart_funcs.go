package look

import (
	"html/template"

	"github.com/surehook/surehook/sender/internal/look/charts"
)

// chartFuncs draw the small charts that stand in rows and tiles.
func chartFuncs() template.FuncMap {
	return template.FuncMap{
		"meter":      func(share float64, class, name string) template.HTML { return charts.Meter(share, class, name, false) },
		"shortmeter": func(share float64, class, name string) template.HTML { return charts.Meter(share, class, name, true) },
		"bars":       charts.Bars,
		"swatch":     swatch,
		"stroke":     stroke,
	}
}

// swatch and stroke are what stands before a name in a legend.
func swatch(class string) template.HTML {
	return template.HTML(`<svg viewBox="0 0 12 12" aria-hidden="true"><rect class="` + Escape(class) + `" y="1" width="12" height="10" rx="2"/></svg>`) //nolint:gosec // escaped
}

func stroke(class string) template.HTML {
	return template.HTML(`<svg viewBox="0 0 12 12" aria-hidden="true"><path class="l ` + Escape(class) + `" d="M0 6h12"/></svg>`) //nolint:gosec // escaped
}
