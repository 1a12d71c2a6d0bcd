package look

import (
	"html/template"
	"time"
)

const dash = `<span class="mute">–</span>`

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// element writes a time for people and, exactly, for the script, which rewrites it as
// its data-as says. A zero time is a dash.
func element(t time.Time, as, text string) template.HTML {
	if t.IsZero() {
		return dash
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `" data-as="` + as + `" title="` + t.Format("2006-01-02 15:04:05") + ` UTC">` + text + `</time>`) //nolint:gosec // made of times alone
}

// Full is a date and a time of day.
func Full(t time.Time) template.HTML {
	return element(t, "full", t.UTC().Format("2006-01-02 15:04:05"))
}

// zoned is Full with its zone, for a sentence. The script exchanges both.
func zoned(t time.Time) template.HTML {
	if t.IsZero() {
		return dash
	}
	return Full(t) + ` <span data-zone>UTC</span>`
}

// ago is how long ago something was.
func ago(now, t time.Time) template.HTML { return element(t, "ago", Age(now.Sub(t))) }

// left is how long it is until something, after the word "in".
func left(now, t time.Time) template.HTML {
	if !t.IsZero() && !t.After(now) {
		return "a moment"
	}
	return element(t, "left", Age(t.Sub(now)))
}

// since is the duration from a time to another one, without an element of its own; "–" if
// one of them is zero.
func since(now, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return Age(now.Sub(t))
}

// gap is how much later than another time one is: +36 min.
func gap(from, t time.Time) string { return "+" + Took(max(0, t.Sub(from))) }

// TypedTime reads a time in RFC 3339, or in the form in which browsers send the field for
// a local time. The pages label that field as UTC. "" is the zero time. ok is false for
// any other text.
func TypedTime(text string) (t time.Time, ok bool) {
	if text == "" {
		return time.Time{}, true
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
