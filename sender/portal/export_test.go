package portal

// Routes lists the patterns of the pages and forms of a session.
func Routes(p *Portal) []string { return p.patterns }

// Contrast is the contrast of two colours.
func Contrast(a, b string) float64 { return parseColour(a).contrast(parseColour(b)) }
