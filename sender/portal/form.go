package portal

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// storable tells whether all that was typed is text that a database takes.
func storable(v url.Values) bool {
	for name, values := range v {
		for _, text := range append(values, name) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return false
			}
		}
	}
	return true
}

// timeOf reads a time in RFC 3339, or as browsers send the field for a local time. The
// pages label that field as UTC.
func timeOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, badInput(name + ": " + strconv.Quote(text) + " is no time: give one such as 2006-01-02T15:04 (UTC).")
}

// typed is a time as the field for one takes it.
func typed(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04")
}

func exactly(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// with is a query with one parameter changed, as a link; an empty value removes it.
func with(q url.Values, name, value string) string {
	next := url.Values{}
	for n, values := range q {
		if n != "said" && len(values) > 0 && values[0] != "" {
			next.Set(n, values[0])
		}
	}
	next.Set(name, value)
	if value == "" {
		next.Del(name)
	}
	return "?" + next.Encode()
}
