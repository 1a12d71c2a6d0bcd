package look

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Funcs are the functions of the templates, by name.
func Funcs() template.FuncMap {
	funcs := template.FuncMap{
		// numbers
		"count": Count, "compact": Compact, "took": Took, "age": Age, "rate": Rate, "percent": Percent, "size": Size,
		// times
		"full": Full, "zoned": zoned, "ago": ago, "left": left, "stamp": stamp, "since": since, "gap": gap,
		// text
		"plain": Plain, "human": human, "join": join, "plural": Plural, "short": Short, "id": id, "copy": copyButton, "host": Host, "endpoint": endpoint,
		// states
		"icon": icon, "mark": Mark, "badge": badge, "tag": tag, "delivery": Delivery, "subscription": Subscription, "replaystate": Replay, "answer": Answer, "class": ClassWords,
		// bodies
		"shown": Show, "posted": posted, "text": text, "copybody": copyBody,
	}
	maps.Copy(funcs, chartFuncs())
	return funcs
}

// Count is a whole number, its digits grouped by three.
func Count(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Compact is a number in four characters or so: 1,284 up to ten thousand, then 39.3k,
// 1.20 M. A fraction is kept below ten.
func Compact(n any) string {
	var v float64
	switch n := n.(type) {
	case int:
		v = float64(n)
	case int64:
		v = float64(n)
	case float64:
		v = n
	}
	switch a := math.Abs(v); { // what is rounded to a thousand of a unit is one of the next
	case a >= 999.995e6:
		return strconv.FormatFloat(v/1e9, 'f', 2, 64) + " G"
	case a >= 999.95e3:
		return strconv.FormatFloat(v/1e6, 'f', 2, 64) + " M"
	case a >= 1e4:
		return strconv.FormatFloat(v/1e3, 'f', 1, 64) + "k"
	case a >= 10 || v == math.Trunc(v):
		return Count(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// Took is a duration with the precision of a measurement: 40 ms, 1.7 s, 36 min.
func Took(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + " s"
	}
	return Age(d)
}

// Age is a duration in whole seconds, minutes, hours or days, as the script writes it,
// too. A negative one counts as none.
func Age(d time.Duration) string {
	s := int64(max(0, d) / time.Second)
	switch {
	case s < 60:
		return strconv.FormatInt(s, 10) + " s"
	case s < 3600:
		return strconv.FormatInt(s/60, 10) + " min"
	case s < 48*3600:
		return fmt.Sprintf("%d h %02d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
}

// Rate is a number of things a second, as exact as it was given.
func Rate(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Percent is a share in per cent with one decimal, rounded down, so that only a share
// of all reads as 100 %. It is "–" of nothing.
func Percent(part, whole int64) string {
	switch {
	case whole == 0:
		return "–"
	case part == whole:
		return "100 %"
	}
	thousandths := part * 1000 / whole
	return Count(thousandths/10) + "." + Count(thousandths%10) + " %"
}

// Size is a number of bytes.
func Size(n int) string { return Count(n) + " B" }

// Plural is a number with its noun, which takes an s unless it is one.
func Plural(n any, noun string) string {
	s := Count(n)
	if s == "1" {
		return s + " " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		return s + " " + stem + "ries"
	}
	return s + " " + noun + "s"
}

// Plain writes characters that cannot be seen, or that change the direction of text, as
// escapes: control characters except tabs and line feeds, and Unicode's format
// characters. A carriage return before a line feed is left out: servers end lines by both. Those that join or part letters of Persian or Hindi, and emoji, stay between two
// such.
func Plain(s any) string {
	var b strings.Builder
	all := []rune(strings.ToValidUTF8(fmt.Sprint(s), "\uFFFD"))
	for i, r := range all {
		switch {
		case r == '\r' && i+1 < len(all) && all[i+1] == '\n':
		case r == '\t' || r == '\n' || !unseen(r), isJoiner(r) && i > 0 && i+1 < len(all) && joined(all[i-1]) && joined(all[i+1]):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

func unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }

// isJoiner tells whether a character is one of those that join and part others (Unicode,
// section 23.2).
func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

// joined tells whether a joiner beside a character may mean something. Among Latin letters it
// only makes a name pass for another one.
func joined(r rune) bool {
	return r > unicode.MaxLatin1 && !unseen(r) && !unicode.In(r, unicode.Latin, unicode.Z)
}

func human(v any) string { return strings.ReplaceAll(Plain(v), "_", " ") }

func join(all []string) string { return Plain(strings.Join(all, ", ")) }

// Short is an id shortened to its prefix and its last six characters.
func Short(id string) string {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || utf8.RuneCountInString(rest) <= 8 {
		return Plain(id)
	}
	r := []rune(rest)
	return Plain(prefix + "_…" + string(r[len(r)-6:]))
}

// Host is the host of a URL, with its port; the URL itself if it cannot be read.
func Host(u string) string {
	if p, err := url.Parse(u); err == nil && p.Host != "" {
		return Plain(p.Host)
	}
	return Plain(u)
}

// Escape makes a stranger's text fit for HTML.
func Escape(s string) string { return template.HTMLEscapeString(Plain(s)) }

// id shows an id shortened, with the whole in its title and behind a button.
func id(s string) template.HTML {
	whole := Escape(s)
	return template.HTML(`<code class="id" title="`+whole+`">`+Escape(Short(s))+`</code>`) + copyButton(s, "Copy the id") //nolint:gosec // escaped above
}

// copyButton copies a text as it is. There is none for a text that pages show with escapes:
// who pastes it would get what nobody has seen.
func copyButton(what, label string) template.HTML {
	if Plain(what) != what {
		return ""
	}
	return template.HTML(`<button class="copy" type="button" data-script data-copy="` + Escape(what) + `" aria-label="` + Escape(label) + //nolint:gosec // escaped
		`" hidden><svg class="i" aria-hidden="true"><use href="#i-copy"/></svg></button>`)
}

// endpoint is a URL without its scheme, the path paler than the host.
func endpoint(u string) template.HTML {
	p, err := url.Parse(u)
	if err != nil || p.Host == "" {
		return template.HTML(`<bdi>` + Escape(u) + `</bdi>`) //nolint:gosec // escaped
	}
	_, path, _ := strings.Cut(u, "//"+p.Host)
	if path = strings.TrimPrefix(path, "/"); path != "" {
		path = `<span class="path">/` + Escape(path) + `</span>`
	}
	return template.HTML(`<bdi>` + Escape(p.Host) + path + `</bdi>`) //nolint:gosec // escaped
}
