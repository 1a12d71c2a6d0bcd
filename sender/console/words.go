package console

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/surehook/surehook/sender"
)

// maxShown bounds the part of a body that is shown, in bytes.
const maxShown = 64 << 10

// words are the functions with which the pages put values into words.
var words = template.FuncMap{
	"count":  count,
	"moment": momentOf,
	"took":   took,
	"human":  func(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") },
	"plain":  plain,
	"join":   func(all []string) string { return strings.Join(all, ", ") },
	"shown":  shown,
	"lane":   lane,
	"rate":   func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
	"row":    func(l any, item any) row { return row{l, item} },
}

// row hands a part of a page both the layout and the item that it shows.
type row struct{ Layout, Item any }

// moment is a time in forms that people read.
type moment struct {
	Exact string // RFC 3339; "": there is none
	Long  string
	Ago   string
}

func momentOf(now, t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	t = t.UTC()
	m := moment{Exact: t.Format(time.RFC3339Nano), Long: t.Format("2006-01-02 15:04:05")}
	switch d := now.Sub(t); {
	case d >= time.Second:
		m.Ago = took(d) + " ago"
	case d <= -time.Second:
		m.Ago = "in " + took(-d)
	default:
		m.Ago = "now"
	}
	return m
}

// took is a duration in one or two units.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// count is a whole number, its digits grouped by three.
func count(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plain writes characters that cannot be seen, or that change the direction of text, as
// escapes: control characters except tabs and line feeds, and Unicode's format
// characters.
func plain(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if r != '\t' && r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)) {
			fmt.Fprintf(&b, `\u{%x}`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// text is the part of some bytes that a page shows.
type text struct {
	Text string
	Size string // of the whole; "": it is shown whole
}

func shown(b []byte) text {
	if len(b) <= maxShown {
		return text{Text: plain(string(b))}
	}
	return text{Text: plain(string(b[:maxShown])), Size: count(len(b))}
}

func lane(l sender.Lane) string {
	switch l {
	case sender.LaneNew:
		return "new: few places until it has answered"
	case sender.LaneProbation:
		return "slow or failing: few places"
	}
	return "answers fast"
}
