package portal

import (
	"fmt"
	"math"
	"strconv"
)

// colour is one in sRGB: red, green, blue.
type colour [3]uint8

// parseColour reads what isColour takes.
func parseColour(s string) colour {
	n, _ := strconv.ParseUint(s[1:], 16, 32)
	return colour{uint8(n >> 16), uint8(n >> 8 & 0xff), uint8(n & 0xff)} //nolint:gosec // each is a byte
}

func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// light is the relative luminance (WCAG 2.2, definition of relative luminance).
func (c colour) light() float64 {
	part := func(v uint8) float64 {
		f := float64(v) / 255
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c[0]) + 0.7152*part(c[1]) + 0.0722*part(c[2])
}

// contrast is the ratio of two colours, from 1 to 21 (WCAG 2.2, contrast ratio).
func (c colour) contrast(with colour) float64 {
	a, b := c.light(), with.light()
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

// mix is a colour with so much of another one in it.
func (c colour) mix(other colour, share float64) (mixed colour) {
	for i := range c {
		mixed[i] = uint8(math.Round(float64(c[i])*(1-share) + float64(other[i])*share))
	}
	return mixed
}

// readable is a colour with as much ink in it as it takes to be read on a ground.
func (c colour) readable(ground, ink colour, ratio float64) colour {
	for share := 0.0; share < 1; share += 0.02 {
		if m := c.mix(ink, share); m.contrast(ground) >= ratio {
			return m
		}
	}
	return ink
}
