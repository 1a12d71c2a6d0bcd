// Package charts draws the charts of the pages as SVG that is never scaled. x is in per
// cent of the width and y in pixels, so that a chart fits every width while its text and
// its strokes keep their size. Colours are classes of the style sheet.
//
// Each chart is a struct with a method HTML. Its result is made of numbers and of
// text that is escaped here. A Stack and Lines stand in a <figure class="chart"> and are
// followed by their Table, which says the same in figures.
package charts
