package portal

import (
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// Routes lists the patterns of the pages and forms of a session.
func Routes(p *Portal) []string { return p.patterns }

// Said is what a delivery's page says of why it is in its state.
func Said(d sender.Delivery, w history.Why) string { return reasonOf(&d, w).Said }

// Contrast is the contrast of two colours.
func Contrast(a, b string) float64 { return parseColour(a).contrast(parseColour(b)) }
