package portal

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

var colourForm = regexp.MustCompile(`^#[0-9A-Fa-f]{6}$`)

func isColour(s string) bool { return colourForm.MatchString(s) }

// imageForm has no character that ends a string or a line of a style sheet, or a directive
// of the policy's header.
var imageForm = regexp.MustCompile(`^[ !#$%&'()*+,\-./0-9:;=?@A-Z\[\]^_` + "`" + `a-z{|}~]*$`)

// isImage tells whether a text can stand between quotation marks in a style sheet, as the
// address of an image.
func isImage(s string) bool {
	if !imageForm.MatchString(s) {
		return false
	}
	if strings.HasPrefix(s, "data:image/") {
		return strings.Contains(s, ",")
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && hostForm.MatchString(u.Host) && u.User == nil && !strings.Contains(s, " ")
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?$`)

// The panels of the style sheet, on which colours must be read.
var (
	lightPanel = colour{255, 255, 255}
	darkPanel  = colour{0x15, 0x18, 0x1c}
)

// brand writes the style sheet of a configuration: values for the properties that the look
// leaves to its user, each made here or checked before.
func (c *Config) brand() []byte {
	var b strings.Builder
	b.WriteString(":root {\n")
	if c.Accent != "" {
		light, dark := parseColour(c.Accent), parseColour(c.Accent)
		if c.AccentDark != "" {
			dark = parseColour(c.AccentDark)
		}
		l, d := shadesOn(lightPanel, light), shadesOn(darkPanel, dark)
		for i, name := range shadeNames {
			fmt.Fprintf(&b, "\t--%s: light-dark(%s, %s);\n", name, l[i], d[i])
		}
	}
	if c.Logo != "" {
		fmt.Fprintf(&b, "\t--logo-width: %dpx;\n\t--logo: url(\"%s\");\n", c.LogoWidth, c.Logo)
	}
	b.WriteString("}\n")
	if c.LogoDark != c.Logo {
		fmt.Fprintf(&b, "@media (prefers-color-scheme: dark) {\n\t:root { --logo: url(\"%s\"); }\n}\n", c.LogoDark)
	}
	return []byte(b.String())
}

var shadeNames = [...]string{"accent", "accent-strong", "accent-soft", "on-accent", "bar"}

// shadesOn returns the shades of a colour on a panel: one that can be read there, a
// stronger one, a soft one to lie behind text, one for text on the first, and one for
// bars.
func shadesOn(panel, accent colour) (shades [len(shadeNames)]colour) {
	ink := colour{}
	if panel.light() < 0.5 {
		ink = lightPanel
	}
	accent = accent.readable(panel, ink, 4.5)
	soft := panel.mix(accent, 0.12)
	on := colour{255, 255, 255}
	if on.contrast(accent) < 4.5 {
		on = colour{0x0b, 0x0d, 0x10}
	}
	return [...]colour{accent, accent.mix(ink, 0.15).readable(soft, ink, 5), soft, on, accent.mix(panel, 0.25).readable(panel, ink, 3)}
}
